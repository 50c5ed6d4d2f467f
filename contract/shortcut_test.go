package contract_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// A gateway that answers from its cache, or that refuses by a guardrail, asks no model,
// whatever status it answers with.
func TestARequestThatNeedsNoModelIsComplete(t *testing.T) {
	c, err := contract.Builtin("gateway")
	require.NoError(t, err)
	for _, tt := range []struct {
		name     string
		without  func(tr *genaitrace.Tracer, r *http.Request)
		shortcut int
		want     []string
	}{
		{"a cached answer", func(tr *genaitrace.Tracer, r *http.Request) {
			_, lookup := tr.StartCache(r.Context())
			lookup.SetHit(true)
			lookup.End()
		}, 1, nil},
		{"a refusal", func(tr *genaitrace.Tracer, r *http.Request) {
			_, check := tr.StartGuardrail(r.Context(), genaitrace.GuardrailCheck{RuleID: "no-secrets", Target: semconv.GenAIGuardrailTargetInput})
			check.SetVerdict(semconv.GenAIGuardrailOutcomeBlock, "secret")
			check.End()
		}, 1, nil},
		{"a look-up in vain and a check that passes", func(tr *genaitrace.Tracer, r *http.Request) {
			_, lookup := tr.StartCache(r.Context())
			lookup.SetHit(false)
			lookup.End()
			_, check := tr.StartGuardrail(r.Context(), genaitrace.GuardrailCheck{RuleID: "no-secrets"})
			check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
			check.End()
		}, 0, []string{"request.incomplete"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := capture.NewRecorder()
			tr := genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider()))
			mux := http.NewServeMux()
			mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
				tt.without(tr, r)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"no"},"finish_reason":"stop"}]}`)
			})
			server := httptest.NewServer(genaihttp.NewHandler(mux, genaihttp.WithTracerProvider(rec.TracerProvider()), genaihttp.WithMeterProvider(rec.MeterProvider())))
			defer server.Close()
			resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", nil)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()

			got, err := rec.Capture(t.Context())
			require.NoError(t, err)
			r := c.Check(got)
			var incomplete []string
			for _, f := range r.Findings {
				if f.Rule == "request.incomplete" {
					incomplete = append(incomplete, f.Rule)
				}
			}
			assert.Equal(t, tt.want, incomplete)
			assert.Equal(t, tt.shortcut, r.Requests["shortcut"])
		})
	}
}
