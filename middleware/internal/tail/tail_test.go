package tail_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/internal/tail"
	"github.com/genaitrace/otelgenai/propagation"
)

// keeps promises the span of ctx, where it is to be kept.
type keeps bool

func (k keeps) Promise(ctx context.Context, _ bool) trace.SpanContext {
	sc := trace.SpanContextFromContext(ctx)
	return sc.WithTraceFlags(sc.TraceFlags().WithSampled(bool(k)))
}

func (keeps) CalleeResponded(context.Context, trace.SpanContext) {}

// A callee hears that the trace is kept, and of the span whatever it would hear without.
func TestAPromiseChangesWhatIsToldOfTheTraceAlone(t *testing.T) {
	bridge := propagation.New(propagation.WithFormats(propagation.W3C, propagation.Contract))
	sent := func(ctx context.Context) map[string]string {
		carrier := map[string]string{}
		bridge.Inject(ctx, propagation.Map(carrier))
		return carrier
	}
	for name, sampler := range map[string]sdktrace.Sampler{
		"recorded, not sampled": recordOnly{},
		"sampled":               sdktrace.AlwaysSample(),
	} {
		t.Run(name, func(t *testing.T) {
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)).Tracer("test")
			ctx, _ := tracer.Start(t.Context(), "server")
			ctx, span := tracer.Start(ctx, "client")
			plain := sent(ctx)
			assert.NotEmpty(t, plain["parent-span-id"])
			for _, s := range []tail.Sampler{nil, keeps(false)} {
				assert.Equal(t, plain, sent(tail.Promised(ctx, s)))
			}

			kept := sent(tail.Promised(ctx, keeps(true)))
			assert.Equal(t, plain["parent-span-id"], kept["parent-span-id"])
			assert.Equal(t, plain["span-id"], kept["span-id"])
			sc := span.SpanContext()
			assert.Equal(t, "00-"+sc.TraceID().String()+"-"+sc.SpanID().String()+"-01", kept["traceparent"])
		})
	}
}

type recordOnly struct{ sdktrace.Sampler }

func (recordOnly) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}

func (recordOnly) Description() string { return "recordOnly" }
