package propagation_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

var everything = []propagation.Option{propagation.WithFormats(allFormats...), propagation.WithPromptChain()}

// fullContext is a context with everything that can be propagated.
func fullContext(t testing.TB) context.Context {
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "Tracestate": {"a=1,0x=2"}}
	ctx := propagation.W3C.Extract(context.Background(), h)
	ctx = baggage.ContextWithBaggage(ctx, parseBaggage(t, "tenant=acme,session=s1;ttl=60"))
	return propagation.ContextWithHop(ctx, "router", trace.SpanID{1})
}

func TestHostsAreOurOwnOrThirdParties(t *testing.T) {
	for host, own := range map[string]bool{
		"localhost": true, "localhost:8080": true, "127.0.0.1": true, "127.8.8.8:1": true, "[::1]:443": true, "::1": true,
		"10.1.2.3": true, "172.16.0.1": true, "172.31.255.255": true, "192.168.1.1:80": true,
		"169.254.1.1": true, "fe80::1%eth0": true, "[fd00::1]:8000": true, "::ffff:10.0.0.1": true,
		"engine": true, "engine:8000": true, "engine.": true, "vllm.ns.svc.cluster.local": true, "VLLM.Internal:443": true, "a.localhost": true,

		"": false, "api.openai.com": false, "api.openai.com:443": false, "internal.example.com": false,
		"engine.internal.evil.org": false, "notlocal": true, "x.notlocal": false,
		"8.8.8.8": false, "172.32.0.1": false, "11.0.0.1": false, "100.64.0.1": false, "[2001:db8::1]:443": false, "::ffff:8.8.8.8": false,
		"api。openai。com": false, "api．openai｡com": false, "１３４７４４０７２": false, "ｅngine": false,
		"0.0.0.0": false, "134744072": false, "0x08080808:443": false, "engine1": true, "1engine": true,
	} {
		assert.Equal(t, own, propagation.IsOwnHost(host), "%q", host)
	}
}

func TestThirdPartiesGetTheTraceparentAlone(t *testing.T) {
	bridge := propagation.New(append(everything, propagation.WithTrustedHosts("Gateway.Example.com", "203.0.113.7:8443"), propagation.WithTrustedHosts("b.example.com."))...)
	all := http.Header{}
	bridge.Inject(fullContext(t), propagation.HTTPHeader(all))
	require.Len(t, all, 14)

	for host, own := range map[string]bool{
		"localhost:1": true, "10.0.0.1": true, "engine": true, "gateway.example.com:443": true, "GATEWAY.example.com.": true, "203.0.113.7": true, "b.example.com": true,
		"api.openai.com": false, "8.8.8.8:443": false, "gateway.example.com.evil.org": false, "203.0.113.8": false, "": false,
	} {
		got := http.Header{"X-Own": {"kept"}}
		for key := range all {
			got.Set(key, "copied")
		}
		bridge.InjectTo(fullContext(t), propagation.HTTPHeader(got), host)
		want := http.Header{"Traceparent": {benchTraceparent}}
		if own {
			want = all.Clone()
		}
		want.Set("X-Own", "kept")
		assert.Equal(t, want, got, "%q", host)
	}

	req, err := http.NewRequestWithContext(fullContext(t), http.MethodPost, "https://api.openai.com/v1/chat/completions", http.NoBody)
	require.NoError(t, err)
	bridge.ToHTTP(req)
	assert.Equal(t, http.Header{"Traceparent": {benchTraceparent}}, req.Header)

	none := propagation.Map{"baggage": "copied", "tracestate": "copied=1", "grpc-trace-bin": "copied"}
	propagation.InjectTraceparent(context.Background(), none)
	assert.Empty(t, none)
}

// A proxy copied the headers of its caller, also those of formats that it reads and
// does not write, and of the other form of b3.
func TestThirdPartiesGetNothingThatWasReadOfACaller(t *testing.T) {
	for name, bridge := range map[string]*propagation.Bridge{
		"all are written":      propagation.New(propagation.WithFormats(allFormats...)),
		"all are read":         propagation.New(propagation.WithReadFormats(allFormats...)),
		"one form of b3":       propagation.New(propagation.WithFormats(propagation.B3), propagation.WithReadFormats(allFormats...)),
		"the other form of b3": propagation.New(propagation.WithFormats(propagation.B3Multi), propagation.WithReadFormats(allFormats...)),
	} {
		copied := http.Header{}
		propagation.New(propagation.WithFormats(allFormats...)).Inject(fullContext(t), propagation.HTTPHeader(copied))
		copied.Set("X-B3-Flags", "1")
		bridge.InjectTo(fullContext(t), propagation.HTTPHeader(copied), "api.openai.com")
		assert.Equal(t, http.Header{"Traceparent": {benchTraceparent}}, copied, name)
	}
}

// A stranger neither joins our traces nor decides what is recorded, nor says
// anything that goes further than the link.
func TestAPublicEndpointTakesNothingFromAStrangerButALink(t *testing.T) {
	full := http.Header{}
	propagation.New(everything...).Inject(fullContext(t), propagation.HTTPHeader(full))
	for name, h := range map[string]http.Header{
		"everything":       full,
		"b3 debug":         {"B3": {traceHex + "-" + spanHex + "-d"}},
		"b3 denial":        {"B3": {"0"}},
		"a trace alone":    {"X-Trace-Id": {traceHex}},
		"forged mark":      {"Traceparent": {benchTraceparent}, "Tracestate": {"genai=c:1;k:1"}},
		"forged proof":     {"Traceparent": {benchTraceparent}, "Baggage": {"genai.tenant=AAAAAAAAAAAAAAAAAAAAAA"}},
		"nothing":          {},
		"contradictions":   {"Traceparent": {benchTraceparent}, "B3": {traceHex[:31] + "1-" + spanHex + "-1"}},
		"too much baggage": {"Baggage": {string(make([]byte, 10_000))}},
	} {
		t.Run(name, func(t *testing.T) {
			bridge := propagation.New(append(everything, propagation.WithPublicEndpoint(), propagation.WithTenants([]byte("key")))...)
			ctx, got := bridge.Receive(context.Background(), propagation.HTTPHeader(h))
			assert.False(t, got.Parent)
			assert.False(t, trace.SpanContextFromContext(ctx).HasTraceID())
			assert.Zero(t, baggage.FromContext(ctx).Len())
			assert.Equal(t, propagation.SamplingDecided, propagation.SamplingFromContext(ctx))
			links := propagation.Links(ctx)
			if got.SpanContext.IsValid() {
				require.NotEmpty(t, links)
				assert.Equal(t, got.SpanContext, links[0].SpanContext)
			} else {
				assert.Empty(t, links)
			}
			if name == "contradictions" {
				assert.Len(t, links, 2)
			}

			provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
			defer provider.Shutdown(context.Background())
			ctx, span := provider.Tracer("test").Start(ctx, "serve", trace.WithLinks(links...))
			defer span.End()
			assert.False(t, span.SpanContext().IsSampled())
			assert.NotEqual(t, traceHex, span.SpanContext().TraceID().String())
			next := propagation.Map{}
			bridge.Inject(ctx, next)
			assert.NotContains(t, next, "tracestate")
			assert.NotContains(t, next, "baggage")
			assert.NotContains(t, next, "x-prompt-trace")
			assert.Equal(t, span.SpanContext().TraceID().String(), next["x-trace-id"])
		})
	}
}

func TestOurOwnBaggageSurvivesAPublicEndpoint(t *testing.T) {
	bag := parseBaggage(t, "region=eu")
	ctx := propagation.New(propagation.WithPublicEndpoint()).Extract(
		baggage.ContextWithBaggage(context.Background(), bag), propagation.Map{"baggage": "region=evil", "traceparent": benchTraceparent})
	assert.Equal(t, bag, baggage.FromContext(ctx))
}
