package clients_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// With anthropic-sdk-go and its own span, which is on by default, exactly one span of
// a trace says what the call cost: the library's, also where a gateway stands between.
func TestTheUsageOfACallIsCountedOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		gateway bool
		spans   []string
	}{
		{"alone", false, []string{"client anthropic.messages.create"}},
		{"through a gateway", true, []string{
			"client anthropic.messages.create", "client chat claude-fx", "server POST /v1/messages",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
			ours := genaihttp.WithTracerProvider(traces)
			server := httptest.NewServer(http.HandlerFunc(claude))
			defer server.Close()
			address, stop := server.URL, func() {}
			if tt.gateway {
				upstream, err := url.Parse(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				base := http.DefaultTransport.(*http.Transport).Clone()
				defer base.CloseIdleConnections()
				gateway := httptest.NewServer(genaihttp.NewReverseProxy(&httputil.ReverseProxy{
					Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
					Transport: base,
				}, ours))
				address, stop = gateway.URL, gateway.Close
			}
			base := http.DefaultTransport.(*http.Transport).Clone()
			defer base.CloseIdleConnections()
			client := anthropic.NewClient(
				option.WithBaseURL(address), option.WithAPIKey("none"), option.WithTracerProvider(traces),
				option.WithHTTPClient(&http.Client{Transport: genaihttp.NewTransport(base, ours)}),
			)
			stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
				Model: "claude-fx", MaxTokens: 64,
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Say hello."))},
			})
			for stream.Next() { // to its end
			}
			if err := stream.Err(); err != nil {
				t.Error(err)
			}
			base.CloseIdleConnections()
			stop() // waits for the gateway's spans

			var names, counted []string
			for _, s := range spans.Ended() {
				names = append(names, s.SpanKind().String()+" "+s.Name())
				if slices.ContainsFunc(s.Attributes(), func(kv attribute.KeyValue) bool {
					return strings.HasPrefix(string(kv.Key), "gen_ai.usage.")
				}) {
					counted = append(counted, s.Name())
				}
				if s.SpanContext().TraceID() != spans.Ended()[0].SpanContext().TraceID() {
					t.Errorf("%s is in a trace of its own", s.Name())
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, tt.spans) {
				t.Errorf("spans: %q, want %q", names, tt.spans)
			}
			if want := []string{"anthropic.messages.create"}; !slices.Equal(counted, want) {
				t.Errorf("gen_ai.usage.* stands on %q, want %q", counted, want)
			}
		})
	}
}
