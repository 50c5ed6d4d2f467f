package propagation_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

func TestABridgeWritesEveryFormatItReads(t *testing.T) {
	bag, err := baggage.Parse("tenant=acme")
	require.NoError(t, err)
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
		})
	}
}

func TestABridgeReadsTraceBinOnlyIfAskedTo(t *testing.T) {
	h := propagation.HTTPHeader{"Grpc-Trace-Bin": {binBase64}}
	ctx := propagation.New().Extract(context.Background(), h)
	assert.False(t, trace.SpanContextFromContext(ctx).IsValid())
}

func TestBaggageTravelsWithoutASpanContext(t *testing.T) {
	bag, err := baggage.Parse("tenant=acme")
	require.NoError(t, err)
	h := propagation.HTTPHeader{}
	propagation.New().Inject(baggage.ContextWithBaggage(context.Background(), bag), h)
	assert.Equal(t, propagation.HTTPHeader{"Baggage": {"tenant=acme"}}, h)
	assert.Equal(t, bag, baggage.FromContext(propagation.New().Extract(context.Background(), h)))
}

func TestFieldsHaveAFixedOrder(t *testing.T) {
	var p otelprop.TextMapPropagator = propagation.New(propagation.WithFormats(propagation.TraceBin), propagation.WithFormats(propagation.TraceBin))
	want := []string{"traceparent", "tracestate", "grpc-trace-bin", "baggage"}
	assert.True(t, slices.Equal(want, p.Fields()), "%v", p.Fields())
}
