package propagation_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

func parseBaggage(t testing.TB, list string) baggage.Baggage {
	t.Helper()
	bag, err := baggage.Parse(list)
	require.NoError(t, err)
	return bag
}

func TestABridgeWritesEveryFormatItReads(t *testing.T) {
	bag := parseBaggage(t, "tenant=acme")
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent, "a=1"))
	ctx = baggage.ContextWithBaggage(ctx, bag)

	w3c := http.Header{"Traceparent": {benchTraceparent}, "Tracestate": {"a=1"}, "Baggage": {"tenant=acme"}}
	withBin := w3c.Clone()
	withBin["Grpc-Trace-Bin"] = []string{binBase64}

	for name, tt := range map[string]struct {
		bridge *propagation.Bridge
		want   http.Header
	}{
		"default":        {propagation.New(), w3c},
		"zero value":     {&propagation.Bridge{}, w3c},
		"nil":            {nil, w3c},
		"with trace-bin": {propagation.New(propagation.WithFormats(propagation.TraceBin)), withBin},
		"W3C again":      {propagation.New(propagation.WithFormats(propagation.W3C, propagation.TraceBin, propagation.TraceBin, 99)), withBin},
		"reads more":     {propagation.New(propagation.WithReadFormats(propagation.TraceBin)), w3c},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			tt.bridge.Inject(ctx, propagation.HTTPHeader(h))
			assert.Equal(t, tt.want, h)

			var fields []string
			for _, f := range tt.bridge.Fields() {
				fields = append(fields, http.CanonicalHeaderKey(f))
			}
			assert.ElementsMatch(t, propagation.HTTPHeader(h).Keys(), fields)

			got := tt.bridge.Extract(context.Background(), propagation.HTTPHeader(h))
			assert.Equal(t, extractW3C(benchTraceparent, "a=1"), trace.SpanContextFromContext(got))
			assert.Equal(t, bag, baggage.FromContext(got))
			assert.Equal(t, propagation.Stats{}, tt.bridge.Stats())
		})
	}
}

// Each format by itself, and all of them at once, in the order of the constants.
func TestOfSeveralFormatsTheFirstValidOneIsTheParent(t *testing.T) {
	headers := map[propagation.Format]http.Header{
		propagation.W3C:           {"Traceparent": {"00-" + traceHex[:31] + "1-" + spanHex + "-01"}},
		propagation.TraceBin:      {"Grpc-Trace-Bin": {binBase64}},
		propagation.B3:            {"B3": {traceHex[:31] + "3-" + spanHex + "-1"}},
		propagation.Jaeger:        {"Uber-Trace-Id": {traceHex[:31] + "5:" + spanHex + ":0:1"}},
		propagation.Contract:      {"Trace-Id": {traceHex[:31] + "7"}, "Span-Id": {spanHex}},
		propagation.XTraceID:      {"X-Trace-Id": {traceHex[:31] + "8"}},
		propagation.JaegerTraceID: {"Trace_id": {traceHex[:31] + "9"}},
	}
	order := []propagation.Format{
		propagation.W3C, propagation.TraceBin, propagation.B3, propagation.Jaeger,
		propagation.Contract, propagation.XTraceID, propagation.JaegerTraceID,
	}
	backwards := []propagation.Format{
		propagation.JaegerTraceID, propagation.XTraceID, propagation.Contract, propagation.Jaeger, propagation.B3, propagation.TraceBin,
	}
	for i, first := range order {
		bridge := propagation.New(propagation.WithReadFormats(backwards...))
		all := http.Header{}
		for _, f := range order[i:] {
			for key, values := range headers[f] {
				all[key] = values
			}
		}
		ctx, got := bridge.Receive(context.Background(), propagation.HTTPHeader(all))
		alone := trace.SpanContextFromContext(first.Extract(context.Background(), propagation.HTTPHeader(all)))
		require.True(t, alone.HasTraceID())
		assert.Equal(t, alone, trace.SpanContextFromContext(ctx), first)
		assert.Equal(t, first, got.Format)

		var sources []string
		links := 0
		for j, c := range got.Conflicts {
			assert.Equal(t, order[i+1+j].String(), c.Source)
			sources = append(sources, c.Source)
			if c.SpanContext.IsValid() {
				assert.Equal(t, c.SpanContext, propagation.Links(ctx)[links].SpanContext)
				links++
			}
		}
		assert.Len(t, sources, len(order)-i-1)
		assert.Len(t, propagation.Links(ctx), links)
		assert.EqualValues(t, len(sources), bridge.Stats().Conflicts)

		// What a default bridge does not know is not there for it.
		ctx, got = propagation.New().Receive(context.Background(), propagation.HTTPHeader(all))
		assert.Equal(t, first == propagation.W3C, trace.SpanContextFromContext(ctx).IsValid())
		assert.Empty(t, got.Conflicts)
	}
}

func TestFormatsThatSayTheSameDoNotContradict(t *testing.T) {
	bridge := propagation.New(propagation.WithReadFormats(allFormats...))
	h := http.Header{}
	propagation.New(propagation.WithFormats(allFormats...)).Inject(
		trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent)), propagation.HTTPHeader(h))
	require.Greater(t, len(h), 8)
	h.Set("X-B3-Traceid", halfHex) // Zipkin before it had 128 bits
	ctx, got := bridge.Receive(context.Background(), propagation.HTTPHeader(h))
	assert.Empty(t, got.Conflicts)
	assert.Empty(t, propagation.Links(ctx))

	h.Set("Span-Id", parentHex)
	_, got = bridge.Receive(context.Background(), propagation.HTTPHeader(h))
	require.Len(t, got.Conflicts, 1, "the same trace, but another span")
	assert.Equal(t, "contract", got.Conflicts[0].Source)
}

// Only the span of the request links to what lost; those below have a parent.
func TestLinksAreForTheNextSpanAlone(t *testing.T) {
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "B3": {traceHex[:31] + "1-" + spanHex + "-1"}}
	ctx := propagation.New(propagation.WithFormats(propagation.B3)).Extract(context.Background(), h)
	require.Len(t, propagation.Links(ctx), 1)
	local := trace.SpanContextFromContext(ctx).WithRemote(false).WithSpanID(trace.SpanID{1})
	assert.Empty(t, propagation.Links(trace.ContextWithSpanContext(ctx, local)))
	assert.Empty(t, propagation.Links(context.Background()))
}

// What one extraction left in a context does not cling to the next one.
func TestANewExtractionReplacesTheStateOfAnEarlierOne(t *testing.T) {
	bridge := propagation.New(propagation.WithFormats(propagation.B3), propagation.WithPromptChain())
	ctx := bridge.Extract(context.Background(), propagation.Map{
		"b3":             traceHex + "-" + spanHex,
		"x-prompt-trace": `{"trace_id":"` + traceHex + `","prompt_chain":["a"]}`,
	})
	require.Equal(t, propagation.SamplingDeferred, propagation.SamplingFromContext(ctx))
	_, ok := propagation.PromptChainFromContext(ctx)
	require.True(t, ok)

	ctx = bridge.Extract(ctx, propagation.Map{"traceparent": benchTraceparent})
	assert.Equal(t, propagation.SamplingDecided, propagation.SamplingFromContext(ctx))
	_, ok = propagation.PromptChainFromContext(ctx)
	assert.False(t, ok)

	ctx = propagation.W3C.Extract(propagation.B3.Extract(ctx, propagation.Map{"b3": "0"}), propagation.Map{"traceparent": benchTraceparent})
	assert.Equal(t, propagation.SamplingDecided, propagation.SamplingFromContext(ctx))
}

func TestADenialGivesWayToATrace(t *testing.T) {
	bridge := propagation.New(propagation.WithFormats(propagation.B3, propagation.Contract))
	ctx, got := bridge.Receive(context.Background(), propagation.Map{"b3": "0", "trace-id": traceHex, "span-id": spanHex})
	assert.Equal(t, propagation.Contract, got.Format)
	assert.Equal(t, traceHex, trace.SpanContextFromContext(ctx).TraceID().String())
	assert.Equal(t, "deferred", propagation.SamplingFromContext(ctx).String())
}

func TestBaggageTravelsWithoutASpanContext(t *testing.T) {
	bag := parseBaggage(t, "tenant=acme")
	h := propagation.HTTPHeader{}
	propagation.New().Inject(baggage.ContextWithBaggage(context.Background(), bag), h)
	assert.Equal(t, propagation.HTTPHeader{"Baggage": {"tenant=acme"}}, h)
	assert.Equal(t, bag, baggage.FromContext(propagation.New().Extract(context.Background(), h)))
}

func TestFieldsHaveAFixedOrder(t *testing.T) {
	var p otelprop.TextMapPropagator = propagation.New(
		propagation.WithFormats(propagation.Jaeger, propagation.TraceBin), propagation.WithPromptChain())
	assert.Equal(t, []string{"traceparent", "tracestate", "grpc-trace-bin", "uber-trace-id", "x-prompt-trace", "baggage"}, p.Fields())
	p.Fields()[0] = "changed"
	assert.Equal(t, "traceparent", p.Fields()[0])
	assert.Equal(t, "traceparent", propagation.W3C.Fields()[0])
}

// The one-line helpers of a gateway are Extract and Inject over its carriers.
func TestAGatewayGoesFromHTTPToGRPCInOneLine(t *testing.T) {
	bridge := propagation.New()
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", http.NoBody)
	r.Header.Set("Traceparent", benchTraceparent)
	r.Header.Set("Baggage", "tenant=acme")
	r = r.WithContext(metadata.AppendToOutgoingContext(r.Context(), "x-key", "kept"))

	out := bridge.ToGRPC(bridge.FromHTTP(r))
	md, _ := metadata.FromOutgoingContext(out)
	want := metadata.MD{"traceparent": {benchTraceparent}, "baggage": {"tenant=acme"}, "x-key": {"kept"}}
	assert.Equal(t, want, md)
	before, _ := metadata.FromOutgoingContext(r.Context())
	assert.Equal(t, metadata.MD{"x-key": {"kept"}}, before)

	in := bridge.FromGRPC(metadata.NewIncomingContext(context.Background(), md))
	req, err := http.NewRequestWithContext(in, http.MethodGet, "http://engine:8000/health", http.NoBody)
	require.NoError(t, err)
	req.Header = nil
	bridge.ToHTTP(req)
	assert.Equal(t, http.Header{"Traceparent": {benchTraceparent}, "Baggage": {"tenant=acme"}}, req.Header)

	assert.Equal(t, context.Background(), bridge.FromGRPC(context.Background()))
}
