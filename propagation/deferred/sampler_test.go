package deferred_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/propagation/deferred"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

var bridge = propagation.New(propagation.WithFormats(
	propagation.TraceBin, propagation.B3, propagation.Jaeger, propagation.Contract, propagation.XTraceID))

// request is the context of a request with the given headers.
func request(fields ...string) context.Context {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return bridge.Extract(context.Background(), propagation.HTTPHeader(h))
}

// serve starts the spans of a request: one for the request, one below it.
func serve(t *testing.T, ctx context.Context, s sdktrace.Sampler) (server, child trace.SpanContext) {
	t.Helper()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(s))
	defer func() { assert.NoError(t, provider.Shutdown(context.Background())) }()
	ctx, outer := provider.Tracer("test").Start(ctx, "serve")
	_, inner := provider.Tracer("test").Start(ctx, "infer")
	return outer.SpanContext(), inner.SpanContext()
}

func TestWhatACallerSaysOfSamplingIsHeard(t *testing.T) {
	on, off := sdktrace.AlwaysSample(), sdktrace.NeverSample()
	const b3 = traceID + "-" + spanID
	for _, tt := range []struct {
		name    string
		fields  []string
		root    sdktrace.Sampler // of ParentBased
		sampled bool
		joins   bool
	}{
		{"deferred by b3, and we sample", []string{"b3", b3}, on, true, true},
		{"deferred by b3, and we do not", []string{"b3", b3}, off, false, true},
		{"deferred by the contract headers", []string{"trace-id", traceID, "span-id", spanID}, on, true, true},
		{"deferred by trace-bin without flags", []string{"grpc-trace-bin", "AABL+S81d7NNpqPOkp0ODkc2AQDwZ6oLqQK3"}, on, true, true},
		{"deferred by a trace without span", []string{"x-trace-id", traceID}, on, true, true},
		{"deferred through W3C", []string{"traceparent", "00-" + traceID + "-" + spanID + "-00", "tracestate", "genai=s:d-0ba902b7"}, on, true, true},
		{"deferred by an earlier span", []string{"traceparent", "00-" + traceID + "-" + spanID + "-00", "tracestate", "genai=s:d-0ba902b8"}, on, false, true},
		{"denied by b3", []string{"b3", "0"}, on, false, false},
		{"denied by b3 with IDs", []string{"b3", b3 + "-0"}, on, false, true},
		{"denied by b3 headers", []string{"X-B3-Sampled", "0"}, on, false, false},
		{"sampled by b3", []string{"b3", b3 + "-1"}, off, true, true},
		{"debugged by b3", []string{"b3", b3 + "-d"}, off, true, true},
		{"not sampled by W3C", []string{"traceparent", "00-" + traceID + "-" + spanID + "-00"}, on, false, true},
		{"sampled by W3C", []string{"traceparent", "00-" + traceID + "-" + spanID + "-01"}, off, true, true},
		{"nothing said, and we sample", nil, on, true, false},
		{"nothing said, and we do not", nil, off, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, child := serve(t, request(tt.fields...), deferred.NewSampler(sdktrace.ParentBased(tt.root)))
			assert.Equal(t, tt.sampled, server.IsSampled())
			assert.Equal(t, tt.sampled, child.IsSampled(), "a part of the trace alone")
			assert.Equal(t, tt.joins, server.TraceID().String() == traceID)
		})
	}
}

// Without the wrapper the same contexts are decided wrongly, so the tests above
// test something.
func TestThePlainSamplerHearsNeitherDeferralNorDenial(t *testing.T) {
	plain := sdktrace.ParentBased(sdktrace.AlwaysSample())
	server, _ := serve(t, request("b3", traceID+"-"+spanID), plain)
	assert.False(t, server.IsSampled())
	server, _ = serve(t, request("b3", "0"), plain)
	assert.True(t, server.IsSampled())
}

// Samplers that do not look at the parent are overruled by a denial only.
func TestADenialHoldsForTheWholeRequest(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"without IDs": request("b3", "0"),
		"with IDs":    request("b3", traceID+"-"+spanID+"-0"),
	} {
		server, child := serve(t, ctx, deferred.NewSampler(sdktrace.AlwaysSample()))
		assert.False(t, server.IsSampled(), name)
		assert.False(t, child.IsSampled(), name)
	}
}

func TestADeferredTraceKeepsItsTracestate(t *testing.T) {
	ctx := request("traceparent", "00-"+traceID+"-"+spanID+"-00", "tracestate", "a=1,genai=s:d-0ba902b7,0x=2")
	server, _ := serve(t, ctx, deferred.NewSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	assert.Equal(t, "a=1", server.TraceState().String())
	next := propagation.Map{}
	bridge.Inject(trace.ContextWithSpanContext(ctx, server), next)
	assert.Equal(t, "a=1,0x=2", next["tracestate"], "the decision is made, so the deferral is over")
	assert.Equal(t, "01", next["traceparent"][53:])
}

func TestCallersCannotFloodUsWithSampledFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := deferred.NewSampler(sdktrace.ParentBased(sdktrace.NeverSample()), deferred.WithSampledLimit(10))
		flood := func(n int) (sampled int) {
			for i := range n {
				id := fmt.Sprintf("%032x", i+1)
				server, child := serve(t, request("traceparent", "00-"+id+"-"+spanID+"-01"), s)
				assert.Equal(t, server.IsSampled(), child.IsSampled(), "a part of the trace alone")
				assert.Equal(t, id, server.TraceID().String())
				if server.IsSampled() {
					sampled++
				}
			}
			return sampled
		}
		assert.Equal(t, 10, flood(100))
		assert.EqualValues(t, 90, s.Limited())
		time.Sleep(500 * time.Millisecond) // of the bubble
		assert.Equal(t, 5, flood(100))
		time.Sleep(time.Hour)
		assert.Equal(t, 10, flood(100), "time alone gives no more than a second's worth")
	})
}

func TestALimitIsForCallersAlone(t *testing.T) {
	s := deferred.NewSampler(nil, deferred.WithSampledLimit(1), nil)
	for range 10 {
		server, _ := serve(t, context.Background(), s)
		assert.True(t, server.IsSampled())
	}
	assert.Zero(t, s.Limited())
	for _, n := range []int{0, -1} {
		s = deferred.NewSampler(nil, deferred.WithSampledLimit(n))
		server, _ := serve(t, request("traceparent", "00-"+traceID+"-"+spanID+"-01"), s)
		assert.True(t, server.IsSampled())
	}
	assert.Equal(t, "Deferred{AlwaysOnSampler}", deferred.NewSampler(sdktrace.AlwaysSample()).Description())
}

func TestASamplerIsUsedByManyGoroutines(t *testing.T) {
	s := deferred.NewSampler(nil, deferred.WithSampledLimit(5))
	ctx := request("traceparent", "00-"+traceID+"-"+spanID+"-01")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				s.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx})
			}
		})
	}
	all.Wait()
	assert.GreaterOrEqual(t, s.Limited(), int64(700))
}
