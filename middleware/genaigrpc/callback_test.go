package genaigrpc_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// faults returns how many faults of a kind were counted.
func (o *telemetry) faults(kind semconv.GenAIFaultAttr) (n int64) {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(context.Background(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != semconv.GenAITelemetryFaultsName {
				continue
			}
			for _, p := range sum.DataPoints {
				if got, _ := p.Attributes.Value(semconv.GenAIFaultKey); got.AsString() == string(kind) {
					n += p.Value
				}
			}
		}
	}
	return n
}

// handled collects what is reported to the error handler.
func handled(t *testing.T) func() []error {
	t.Helper()
	var mu sync.Mutex
	var errs []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return append([]error(nil), errs...)
	}
}

// A brokenTail is a tail sampler each method of which panics.
type brokenTail struct{}

func (brokenTail) Promise(context.Context, bool) trace.SpanContext    { panic("promise") }
func (brokenTail) CalleeResponded(context.Context, trace.SpanContext) { panic("callee") }

func TestATailSamplerThatPanicsNeverBreaksAnRPC(t *testing.T) {
	reported := handled(t)
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	o, interceptors := newTelemetry(t), newTelemetry(t)
	otel.SetMeterProvider(interceptors.mp)
	failure := status.Error(codes.Internal, "it failed")
	served := service{generate: three, complete: func(_ context.Context, prompt string) (string, error) {
		if prompt == "fail" {
			return "", failure
		}
		return "done", nil
	}}
	l := connect(t, served,
		append(genaigrpc.TailServerOptions(brokenTail{}), grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))),
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(genaigrpc.WithTailSampler(brokenTail{}))...))})

	// of a span that is not sampled the sampler is asked what is certain
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Len(t, texts, 3)
	text, err := complete(t.Context(), l.conn)
	require.NoError(t, err)
	assert.Equal(t, "done", text)
	l.stop()

	assert.EqualValues(t, 1, o.faults(semconv.GenAIFaultPanic), "the promise to the callee")
	assert.EqualValues(t, 2, interceptors.faults(semconv.GenAIFaultPanic), "the promises to the callers")
	assert.Len(t, reported(), 2, "once for each")
	o.ended()
}

// What a trailer says is told to a sampler whose panic must not reach gRPC.
func TestATailSamplerThatCannotHearNeverBreaksAnRPC(t *testing.T) {
	handled(t)
	o := newTelemetry(t)
	l := connect(t, service{generate: three},
		append(genaigrpc.TraceResponseServerOptions(), grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))),
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(genaigrpc.WithTailSampler(brokenTail{}))...))})
	stream, err := generate(t.Context(), t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Len(t, texts, 3)
	l.stop()
	assert.EqualValues(t, 1, o.faults(semconv.GenAIFaultPanic))
	o.client()
}

// What panics with each RPC must not flood the error handler.
func TestWhatPanicsWithEachRPCIsReportedOnceAndCounted(t *testing.T) {
	reported := handled(t)
	o := newTelemetry(t)
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(
			genaigrpc.WithPropagators(brokenPropagator{panics: true}),
			genaigrpc.WithTenant(func(context.Context, string) string { panic("tenant") }))...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(
			genaigrpc.WithMember(func(context.Context) propagation.Member { panic("member") }),
			genaigrpc.WithModelCall(genaigrpc.ModelCall{
				Method:  generateMethod,
				Request: func(any) genaitrace.Request { panic(errors.New("secret")) },
			}))...))})
	for range 3 {
		stream, err := generate(t.Context(), t, l.conn)
		require.NoError(t, err)
		_, err = read(stream)
		require.NoError(t, err)
	}
	l.stop()
	assert.EqualValues(t, 12, o.faults(semconv.GenAIFaultPanic))
	require.Len(t, reported(), 4)
	for _, err := range reported() {
		assert.NotContains(t, err.Error(), "secret", "what a message says is content")
	}
}
