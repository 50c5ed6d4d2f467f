package contract_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// small is a capture with something for most rules.
func small() *capture.Capture {
	return with(traces(
		span("POST /ask", 0, 100, server, text("genai.span.role", "gateway"), text("http.request.method", "POST"),
			span("chat toy-1", 10, 90, client, text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", "toy-1"), number("llm.ttft_ms", 20), event("first_token", 30),
				span("engine", 20, 80, link(2, 1)))),
		span("job", 0, 9, failed, text("error.type", "timeout"), orphaned(capture.OriginRemote)),
	), histogram("gen_ai.client.inference.duration", "s", 1, 0.08), &capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 2)})
}

// FuzzParse reads contracts from any bytes: a broken one is an error that names the
// file, and what is read can be checked.
func FuzzParse(f *testing.F) {
	f.Add([]byte(header + everything))
	f.Add([]byte(header + exercised))
	f.Add([]byte(header + aroundRoles))
	f.Add([]byte(header + chatService))
	f.Add([]byte(header + bomb()))
	profiles, err := filepath.Glob("profiles/*.yaml")
	require.NoError(f, err)
	for _, name := range profiles {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	got := small()
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := contract.Parse("fuzz.yaml", data)
		if err != nil {
			assert.Contains(t, err.Error(), "fuzz.yaml")
			return
		}
		require.NoError(t, c.Check(got).WriteText(io.Discard))
	})
}

// FuzzCheck checks captures of any shape against every kind of rule.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{9, 1, 1, 0, 1, 1, 2, 40, 0, 2, 1, 2, 3, 4, 1, 1, 5, 60})
	for seed := range byte(4) {
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(i)*(2*seed+3) + seed
		}
		f.Add(data)
	}
	c := parse(f, everything)
	f.Fuzz(func(t *testing.T, data []byte) {
		got := randomCapture(data)
		whole := c.Check(got)
		require.NoError(t, whole.WriteText(io.Discard))
		assert.LessOrEqual(t, whole.Count(contract.Error)+whole.Count(contract.Warn), len(whole.Findings))

		k := c.NewChecker(contract.WithQuiet(50*time.Millisecond), contract.WithMaxOpenBytes(4000), contract.WithExactTimes(), contract.WithRequests("chat"))
		for _, s := range got.Spans {
			k.Add(&capture.Capture{Spans: []*capture.Span{s}})
		}
		k.Add(&capture.Capture{Metrics: got.Metrics, Logs: got.Logs})
		assert.Equal(t, whole.Spans, k.Report().Spans)
	})
}

// FuzzDetectors searches any text. What is found lies within it.
func FuzzDetectors(f *testing.F) {
	for _, s := range []string{"ops@example.com", "sk-proj-abcdEFGH1234abcdEFGH1234", "Bearer abcdEFGH1234abcdEFGH1234", "Basic YWRtaW46aHVudGVyMg==", "4111 1111 1111 1111", "-----BEGIN PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.x", "a@b@c.de 5500-0000"} {
		f.Add(s)
	}
	c := parse(f, `forbid: {values: ["builtin:email", "builtin:api-key", "builtin:bearer", "builtin:card", "builtin:private-key"]}`)
	f.Fuzz(func(t *testing.T, s string) {
		r := c.Check(traces(job(text("note", s))))
		for _, found := range r.Findings {
			assert.Equal(t, "forbid.value", found.Rule)
			assert.True(t, utf8.ValidString(found.Text()))
		}
	})
}
