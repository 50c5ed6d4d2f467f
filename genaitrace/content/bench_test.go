package content_test

import (
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/genaitrace/content"
)

// BenchmarkRedact goes over texts that would cost a search with a quadratic worst
// case dearly: ns per byte stay alike when the text is eight times as long.
func BenchmarkRedact(b *testing.B) {
	for name, unit := range map[string]string{
		"prose": "The quick brown fox jumps over the lazy dog. ", "at": "@", "addresses": "a@b.cd ", "joined": "a@b.cd@", "local": "aaaa", "domain": "a@a.",
		"keys": "sk-", "key": "sk-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy ", "bearer": "Bearer ", "basic": "Basic YWRtaW46aHVudGVyMg ", "jwt": "eyJ", "dots": "eyJaaaaaaaaaaaaaa.eyJ.",
		"digits": "4111", "cards": "4111 1111 1111 1111 ", "groups": "4111 ", "pem": "-----BEGIN PRIVATE KEY-----", "begin": "-----BEGIN ", "random": "f8Kq2ZtR7wXb1NvM4cLp9HsJ6dGy3TaE5uQoW0iB ",
		"cjk": "a@b.com谢谢", "dash": "a@-",
	} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"32K", 32 << 10}, {"256K", 256 << 10}} {
			text := strings.Repeat(unit, size.bytes/len(unit)+1)[:size.bytes]
			b.Run(name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					content.Redact(text)
				}
			})
		}
	}
}
