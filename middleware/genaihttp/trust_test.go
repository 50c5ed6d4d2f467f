package genaihttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
)

// Hosts of one's own get the whole context, with the mark that keeps them from
// counting the usage again. Third parties get traceparent alone.
func TestWhoGetsTheWholeContext(t *testing.T) {
	for _, tt := range []struct {
		host    string
		trusted bool
	}{
		{"localhost:8000", true},
		{"127.0.0.1:8000", true},
		{"127.9.9.9", true},
		{"[::1]:8000", true},
		{"[::ffff:10.0.0.1]", true},
		{"10.1.2.3", true},
		{"172.16.0.1", true},
		{"192.168.1.1:80", true},
		{"169.254.1.1", true},
		{"[fd00::1]", true},
		{"[fe80::1]", true},
		{"vllm", true},
		{"vllm.models.svc.cluster.local", true},
		{"Engine.INTERNAL.", true},
		{"app.localhost", true},
		{"gateway.example.com", true},
		{"GATEWAY.example.com.:8443", true},
		{"api.openai.com", false},
		{"gateway.example.com.evil.org", false},
		{"local.example.com", false},
		{"notgateway.example.com", false},
		{"internal.", true},
		{"8.8.8.8", false},
		{"172.32.0.1", false},
		{"[2001:db8::1]:443", false},
	} {
		t.Run(tt.host, func(t *testing.T) {
			o := newTelemetry(t)
			var sent http.Header
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				sent = r.Header
				return answers(200, "application/json", answer)(r)
			})
			member, err := baggage.NewMember("tenant", "t1")
			require.NoError(t, err)
			bag, err := baggage.New(member)
			require.NoError(t, err)
			state, err := trace.ParseTraceState("vendor=1")
			require.NoError(t, err)
			ctx := trace.ContextWithRemoteSpanContext(t.Context(), callerSpan.WithTraceState(state))
			req, err := http.NewRequestWithContext(baggage.ContextWithBaggage(ctx, bag), http.MethodPost,
				"http://"+tt.host+"/v1/chat/completions", strings.NewReader(chatRequest))
			require.NoError(t, err)
			// What a proxy copies from the request that it forwards.
			req.Header.Set("Tracestate", "copied=1")
			req.Header.Set("Baggage", "copied=1")

			opts := append(o.options(), genaihttp.WithTrustedHosts("other.example.com"), genaihttp.WithTrustedHosts("Gateway.Example.com"))
			resp, err := genaihttp.NewTransport(base, opts...).RoundTrip(req)
			require.NoError(t, err)
			resp.Body.Close()

			assert.Equal(t, traceparent(o.only().SpanContext()), sent.Get("Traceparent"))
			if tt.trusted {
				assert.Equal(t, []string{"genai=c:1,vendor=1"}, sent["Tracestate"])
				assert.Equal(t, []string{"tenant=t1"}, sent["Baggage"])
			} else {
				assert.NotContains(t, sent, "Tracestate")
				assert.NotContains(t, sent, "Baggage")
			}
		})
	}
}

// A service that was called with the mark passes it on and writes its own
// counts under the house keys.
func TestAMarkedCallLeavesTheUsageToItsCaller(t *testing.T) {
	o := newTelemetry(t)
	ctx := propagation.ContextWithCallerMark(trace.ContextWithRemoteSpanContext(t.Context(), callerSpan))
	resp, err := post(ctx, &http.Client{Transport: genaihttp.NewTransport(answers(200, "application/json", answer), o.options()...)})
	require.NoError(t, err)
	_, _ = readAll(resp)
	resp.Body.Close()
	got := attributes(o.only())
	assert.NotContains(t, got, attribute.Key("gen_ai.usage.input_tokens"))
	assert.EqualValues(t, 19, got["ai.tokens.input"])
}

// WithPropagators(nil) is the default, and a given propagator is used as it is.
func TestTheTransportWritesWithTheGivenPropagators(t *testing.T) {
	for name, tt := range map[string]struct {
		option genaihttp.Option
		bin    bool
	}{
		"nil":            {genaihttp.WithPropagators(nil), false},
		"none":           {nil, false},
		"with trace-bin": {genaihttp.WithPropagators(propagation.New(propagation.WithFormats(propagation.TraceBin))), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			var sent http.Header
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				sent = r.Header
				return answers(200, "application/json", answer)(r)
			})
			req := httptest.NewRequest(http.MethodPost, "http://engine/v1/chat/completions", strings.NewReader(chatRequest))
			resp, err := genaihttp.NewTransport(base, append(o.options(), tt.option)...).RoundTrip(req)
			require.NoError(t, err)
			resp.Body.Close()
			assert.NotEmpty(t, sent.Get("Traceparent"))
			assert.Equal(t, tt.bin, sent.Get("Grpc-Trace-Bin") != "")
		})
	}
}
