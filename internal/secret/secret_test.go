package secret_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/internal/secret"
)

// Where a secret ends matters to those who take it out: nothing of it may stay.
func TestASecretIsFoundInFull(t *testing.T) {
	for _, c := range []struct {
		kind              secret.Kind
		before, it, after string
	}{
		{secret.Email, "to ", "jane.doe@mail.example.com", "."},
		{secret.Email, "<", "a@b.cd", ">, x"},
		{secret.Email, "", "jane@example.com", "，谢谢"},
		{secret.Email, "", "jane@example.com", "谢谢大家的帮助和支持"},
		{secret.Email, "mailto:", "ops@exämple.com", "?subject=hi"},
		{secret.APIKey, "key=", "sk-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy", "\n"},
		{secret.APIKey, "(", "AKIAIOSFODNN7EXAMPLE", ")"},
		{secret.Bearer, "authorization: ", "Bearer q1W2e3R4t5Y6u7I8o9P0aSdFgHjKlZxC", "\r\n"},
		{secret.Bearer, "-H '", "Basic YWRtaW46aHVudGVyMg==", "'"},
		{secret.Bearer, "t=", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "&x"},
		{secret.Card, "card ", "4111 1111 1111 1111", " 12/29"},
		{secret.Card, "card ", "378282246310005", ","},
		{secret.Card, "on 2025-11-30 ", "4111 1111 1111 1111", ""},
		{secret.Card, "5 May 2025 ", "4111111111111111", "."},
		{secret.Card, "3 30 4000 ", "378282246310005", " 2"},
		{secret.Card, "我的卡号是", "4111111111111111", "，谢谢"},
		{secret.Card, `{"note":"card:\n`, "4111 1111 1111 1111", `\tthanks"}`},
		{secret.Card, "https://example.com/?card=%20", "4111111111111111", "&x"},
		{secret.Card, `\u0020`, "4111111111111111", `\u0020`},
		{secret.APIKey, `{"note":"key:\n`, "AKIAIOSFODNN7EXAMPLE", `\n"}`},
		{secret.APIKey, "https://example.com/?q=key%3D", "AKIAIOSFODNN7EXAMPLE", "&x"},
		{secret.Bearer, `{"headers":"Host: a\r\n`, "Basic YWRtaW46aHVudGVyMg==", `\r\n"}`},
		{secret.Bearer, "Basic ", "Basic YWRtaW46aHVudGVyMg==", "/x"},
		{secret.PrivateKey, "x\n", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "\nrest"},
		{secret.PrivateKey, "x\n", "-----BEGIN RSA PRIVATE KEY-----\nMIIE and no end", ""},
		{secret.Random, "h=", "f8Kq2ZtR7wXb1NvM4cLp9HsJ6dGy3TaE5uQoW0iB", ";"},
	} {
		text := c.before + c.it + c.after
		var found []string
		c.kind.Each(text, func(start, end int) bool {
			found = append(found, text[start:end])
			return true
		})
		assert.Equal(t, []string{c.it}, found, "%s in %q", c.kind.Name, text)
		assert.Equal(t, len(c.before), c.kind.Find(text))
	}
}

func TestEachEndsWhereItIsTold(t *testing.T) {
	const text = "a@b.cd b@c.de Bearer q1W2e3R4t5Y6u7I8o9P0aSdFgHjKlZxC Basic YWRtaW46aHVudGVyMg== Bearer q1W2e3R4t5Y6u7I8o9P0aSdFgHjKlZxD"
	for _, kind := range secret.All() {
		n := 0
		kind.Each(text, func(int, int) bool { n++; return false })
		assert.LessOrEqual(t, n, 1, kind.Name)
	}
}
