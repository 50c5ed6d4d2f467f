package contract_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/contract"
)

var detectorNames = []string{"email", "api-key", "bearer", "card", "private-key"}

// detectorContracts holds a contract for each detector alone.
func detectorContracts(t testing.TB) map[string]*contract.Contract {
	t.Helper()
	all := map[string]*contract.Contract{}
	for _, name := range detectorNames {
		all[name] = parse(t, `forbid: {values: ["builtin:`+name+`"]}`)
	}
	return all
}

// detected returns the detectors that find something in a text.
func detected(all map[string]*contract.Contract, value string) []string {
	var found []string
	for _, name := range detectorNames {
		r := all[name].Check(traces(span("job", 0, 1, text("note", value))))
		for _, f := range r.Findings {
			if f.Rule == "forbid.value" {
				found = append(found, name)
			}
		}
	}
	return found
}

// random is what a secret looks like; the same each time.
func random(alphabet string, n int) string {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

const (
	letters      = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alphanumeric = letters + "0123456789"
	urlSafe      = alphanumeric + "-_"
	hexadecimal  = "0123456789abcdef"
)

func TestDetectorsFindWhatMustNotBeRecorded(t *testing.T) {
	jwt := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"1234567890"}`)) + "." + random(urlSafe, 43)
	for want, values := range map[string][]string{
		"email": {
			"ops@example.com", "write to first.last+tag@mail.example.co.uk, please", "<ops@example.com>", `{"to":"ops@example.com"}`,
			"OPS@EXAMPLE.COM", "a@b.cd", "jörg@example.com", "ops@exämple.com", "x@163.com", "mailto:ops@example.com?subject=hi",
			"user@1and1.com", "postgres://app:secret@db.example.com/orders", "two@@ops@example.com", "end ops@example.com.", "pkg@1.2.3 and ops@example.com",
		},
		"api-key": {
			"sk-" + random(alphanumeric, 48),
			"sk-proj-" + random(urlSafe, 120),
			"sk-ant-api03-" + random(urlSafe, 95),
			"sk-or-v1-" + random(hexadecimal, 64),
			"sk-" + random(hexadecimal, 32),
			"OPENAI_API_KEY=sk-" + random(alphanumeric, 48),
			"the task-key is sk-" + random(alphanumeric, 48),
			"risk-sk-" + random(alphanumeric, 48),
			"AKIAIOSFODNN7EXAMPLE", "aws:ASIAIOSFODNN7EXAMPLE",
			"AIza" + random(urlSafe, 35),
			"ya29." + random(urlSafe, 80),
			"ghp_" + random(alphanumeric, 36), "gho_" + random(alphanumeric, 36), "ghs_" + random(alphanumeric, 36),
			"github_pat_" + random(alphanumeric, 22) + "_" + random(alphanumeric, 59),
			"glpat-" + random(urlSafe, 20),
			"xoxb-2516171819-2516171819-" + random(alphanumeric, 24),
			"hf_" + random(letters, 34),
			"gsk_" + random(alphanumeric, 52), "nvapi-" + random(urlSafe, 64), "r8_" + random(alphanumeric, 37),
			"pplx-" + random(alphanumeric, 48), "xai-" + random(alphanumeric, 80), "csk-" + random(alphanumeric, 48),
			"pcsk_" + random(alphanumeric, 6) + "_" + random(alphanumeric, 60), "lsv2_pt_" + random(hexadecimal, 32) + "_" + random(hexadecimal, 10),
			"sk_live_" + random(alphanumeric, 24), "npm_" + random(alphanumeric, 36), "dapi" + random(hexadecimal, 32),
			`curl -H "x-api-key: sk-ant-api03-` + random(urlSafe, 95) + `"`,
		},
		"bearer": {
			"Bearer " + random(alphanumeric, 40), "authorization: bearer " + random(urlSafe, 64), "AUTHORIZATION: BEARER " + random(alphanumeric, 32),
			"the bearer of news, then Bearer " + random(alphanumeric, 40),
			"Bearer " + jwt, jwt, "token=" + jwt,
			"Bearer 123e4567-e89b-12d3-a456-426614174000",
			"Basic " + base64.StdEncoding.EncodeToString([]byte("admin:hunter2")),
		},
		"card": {
			"4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "card 5500000000000004.", "5500 0000 0000 0004",
			"378282246310005", "3782 822463 10005", "6011111111111117", "3530111333300000", "30569309025904", "2223003122003222",
			"4111 1111 1111 1111 12/29", "pay with 4111111111111111, please", "6250947000000014",
		},
		"private-key": {
			"-----BEGIN PRIVATE KEY-----\nMIIEvQ", "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpA", "-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----",
			"-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----",
		},
	} {
		all := detectorContracts(t)
		for _, value := range values {
			assert.Contains(t, detected(all, value), want, value)
		}
	}
}

func TestDetectorsLetTelemetryPass(t *testing.T) {
	timeline := make([]byte, 1500)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range timeline {
		timeline[i] = byte(r.Uint32())
	}
	now := time.Date(2026, 3, 1, 12, 30, 45, 123456789, time.UTC)
	values := []string{
		// Models, packages and images.
		"claude-3-5-sonnet@20240620", "gemini-2.5-pro@001", "publishers/google/models/text-bison@002", "qwen2.5-7b-instruct@v1.2", "model@latest",
		"pkg@1.2.3", "@scope/pkg@1.2.3-beta.rc", "react@18.2.0", "npm:lodash@4.17.21", "github.com/genaitrace/otelgenai@v0.0.0-20240101120000-abcdef123456", "go.example/mod@v1.2.3-rc.one",
		"registry.example.com/team/image@sha256:" + random(hexadecimal, 64), "sha256:" + random(hexadecimal, 64),
		"logo@2x.png", "git@github.com:org/repo.git", "user@host", "celery@worker-1.local", "app@10.0.0.1", "root@ip-10-0-0-1.ec2.internal",
		"com.example.Order@1a2b3c4d", "@decorator", "a @ b.com", "fw529a3039@dt=FfAAAAIS9",
		// Identifiers, hashes and numbers.
		random(hexadecimal, 16), random(hexadecimal, 32), random(hexadecimal, 64), "00-" + random(hexadecimal, 32) + "-" + random(hexadecimal, 16) + "-01",
		"123e4567-e89b-12d3-a456-426614174000", "45320151-1283-4366-8111-111111111111", "chatcmpl-" + random(alphanumeric, 29), "req_" + random(alphanumeric, 24), "call_" + random(alphanumeric, 24), "msg_01" + random(alphanumeric, 22),
		"GPU-" + "8f4a2b1c-1d2e-3f4a-5b6c-7d8e9f0a1b2c", "1234567890123", "4111111111111112", "411111111111111", "1.4111111111111111", "4111111111111111.5", "id-4111111111111111", "x4111111111111111", "4111111111111111abc",
		"4915112345678", "+49 151 12345678", "2024-06-20 12:30:45", "20240620123045", "2024-06-20-12-30-45", fmt.Sprint(now.UnixNano()), fmt.Sprint(now.UnixMilli()), now.Format(time.RFC3339Nano),
		"5 10 20 40 80 160 320 640 1280", "0.01 0.02 0.04 0.08 0.16 0.32", "4-6-8-10-12-14-16-18", "4000 5000 6000 7000 8000",
		// Words.
		"task-classifier-of-long-names-2024", "sk-learn-classifier-v20240101", "risk-assessment-model-2024-version-12", "hf_hub_download_cache_directory_v2", "desk-booking-agent-with-long-name",
		"the bearer of bad news is authentication2", "Bearer authentication-v2-token", "a basic state-of-the-art approach", "Basic internationalization", "Basic InternationalizationSupport", "basic understanding", "Bearer", "Bearer token",
		"AKIAH", "AIzawa", "xai-grok-2-vision-1212-with-a-long-name-for-an-endpoint", "pplx-70b-online-with-a-long-name-for-an-endpoint", "r8_", "eyJ.eyJ.x", "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "PRIVATE KEY",
		// Addresses.
		"http://localhost:8080/v1/chat/completions", "https://api.example.com:443/v1?model=a&b=c", "10.0.0.1:4317", "[::1]:4317", "/v1/projects/x/locations/us-central1/models/gemini-1.5-pro@default:generate",
		"v1.2.3-rc.1+build.5", "1.2.3", "OpenTelemetry/1.31.0 (linux; amd64) Go/go1.26", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
		// Packed numbers.
		base64.StdEncoding.EncodeToString(timeline), base64.RawURLEncoding.EncodeToString(timeline), hex.EncodeToString(timeline),
		`["stop","length"]`, `{"temperature":0.7,"top_p":1}`, strings.Repeat("a", 5000), strings.Repeat("sk-", 2000), strings.Repeat("4111 ", 500), strings.Repeat("@", 3000), strings.Repeat("Bearer ", 500), strings.Repeat("eyJ", 1000),
	}
	all := detectorContracts(t)
	for _, value := range values {
		assert.Empty(t, detected(all, value), value)
	}
}

func TestASecretIsFoundWhereverItStands(t *testing.T) {
	c := parse(t, `forbid: {values: ["builtin:email"], except: ["contact*"]}`+"\nseverity: {attribute.type: \"off\"}")
	const secret = "ops@example.com"
	for name, value := range map[string]attribute.Value{
		"text":  attribute.StringValue(secret),
		"list":  attribute.StringSliceValue([]string{"a", secret}),
		"bytes": attribute.ByteSliceValue([]byte(secret)),
		"items": attribute.SliceValue(attribute.IntValue(1), attribute.StringValue(secret)),
		"map":   attribute.MapValue(attribute.String("deep", secret)),
	} {
		assert.Equal(t, []string{"forbid.value"}, rulesOf(c.Check(traces(job(attribute.KeyValue{Key: "note", Value: value})))), name)
	}
	for name, got := range map[string]*node{
		"event":        job(event("saved", 1, text("note", secret))),
		"link":         job(link(1, 2), linkWith("note", secret)),
		"status":       job(failed, statusMessage(secret)),
		"name":         span("job "+secret, 0, 1),
		"event's name": job(event(secret, 1)),
	} {
		assert.Equal(t, []string{"forbid.value"}, rulesOf(c.Check(traces(got))), name)
	}
	assert.Empty(t, c.Check(traces(job(text("contact.mail", secret)))).Findings)
}

// What was found is not repeated, wherever else the report could show it.
func TestAReportDoesNotRepeatSecrets(t *testing.T) {
	c := parse(t, `
spans:
  job: {match: {name: "job *"}, name: "job {size}", attributes: {note: {value: a}, gone: forbidden, size: {type: int}, gen_ai.input.messages: forbidden}}
forbid: {values: ["/CASE-[0-9]+/"]}
scope: {undeclared: deny}
agree: [{keys: [note], optional: true}]
`)
	const secret, number, message = "ops@example.com", "CASE-4711", "what the user said"
	r := c.Check(traces(span("job "+secret, 0, 100, text("note", secret), text("gone", "sk-proj-abcdEFGH1234abcdEFGH1234"), text("size", secret), text("gen_ai.input.messages", message),
		span("job "+number, 1, 200, text("note", "for "+number), neverEnded), span(secret, 1, 2), event("to "+secret, 500), text("genai."+secret, "x"))))
	assert.Greater(t, len(r.Findings), 8)
	for _, f := range r.Findings {
		for _, hidden := range []string{secret, number, message, "sk-proj"} {
			assert.NotContains(t, f.Text(), hidden)
		}
	}
}
