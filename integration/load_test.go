package integration_test

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/sampling"
)

var load = flag.Duration("load", 3*time.Second, "how long the mixed load lasts; 30m before a release")

// sink is an OTLP backend that counts the spans of each trace.
type sink struct {
	collectortrace.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[trace.TraceID]int
}

func (s *sink) Export(_ context.Context, req *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		for _, scope := range r.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.spans[trace.TraceID(span.GetTraceId())]++
			}
		}
	}
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

// TestMixedLoadLosesNothing asks a gateway and an engine under a Tail for as long as
// -load says: answers, failures, slow first tokens and readers that leave. At the end each
// failed trace must be in the backend with all of its spans, the metrics must have counted
// every request, no request may be under way, and the heap must be what it was.
//
//	cd integration && GOWORK=off go test -run MixedLoad -load 30m -timeout 40m .
func TestMixedLoadLosesNothing(t *testing.T) {
	backend := &sink{spans: make(map[trace.TraceID]int)}
	server := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(server, backend)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)

	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(lis.Addr().String()), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	tail, err := sampling.NewTail(exporter, sampling.Any(sampling.Errors(), sampling.Slow(200*time.Millisecond)))
	require.NoError(t, err)
	tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	reader := sdkmetric.NewManualReader()
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithExemplarFilter(tail.Kept))
	s := startService(t, tp, mp)

	failed := s.failedTrace(t) // how many spans the trace of a failure has
	require.NoError(t, tail.ForceFlush(t.Context()))
	whole := backend.spans[failed]
	require.Positive(t, whole)

	var (
		asked, left atomic.Int64
		mu          sync.Mutex
		failures    []trace.TraceID
		heap        = []uint64{heapInUse()}
	)
	asked.Add(1)
	deadline := time.Now().Add(*load)
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for time.Now().Before(deadline) {
				asked.Add(1)
				switch n := random.IntN(100); {
				case n < 5:
					id := s.failedTrace(t)
					mu.Lock()
					failures = append(failures, id)
					mu.Unlock()
				case n < 6:
					s.ask(t, "slow")
				case n < 10:
					left.Add(1)
					s.leave(t)
				default:
					s.ask(t, "hello")
				}
			}
		})
	}
	for range 3 {
		time.Sleep(*load / 3)
		heap = append(heap, heapInUse())
		t.Logf("after %s: %d requests, heap %d KiB, %d goroutines",
			time.Since(deadline.Add(-*load)).Round(time.Second), asked.Load(), heap[len(heap)-1], runtime.NumGoroutine())
	}
	workers.Wait()
	s.gateway.Close()
	s.engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, tail.Shutdown(ctx))

	lost, spans := 0, 0
	for _, id := range failures {
		if backend.spans[id] != whole {
			lost++
		}
	}
	for _, n := range backend.spans {
		spans += n
	}
	t.Logf("%d requests in %s, %d failed, %d left early; %d traces kept, of %d spans; %d failed ones not whole; heap at the start and after each third %d KiB",
		asked.Load(), *load, len(failures)+1, left.Load(), len(backend.spans), spans, lost, heap)
	assert.NotEmpty(t, failures)
	assert.Zero(t, lost, "failed traces that are not whole in the backend")
	assert.Less(t, heap[3], heap[1]+heap[1]/2+8<<10, "the heap grows")

	var metrics metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(ctx, &metrics))
	assert.EqualValues(t, 2*asked.Load(), count(metrics, "http.server.request.duration"), "gateway and engine, each request")
	assert.Zero(t, sum(metrics, "genai.active_requests"))
	assert.Zero(t, sum(metrics, "genai.active_calls"))
	assert.Zero(t, sum(metrics, "genai.telemetry.faults"))
	require.NoError(t, tp.Shutdown(ctx))
	require.NoError(t, mp.Shutdown(ctx))
}

// heapInUse is what is alive on the heap, in KiB.
func heapInUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc >> 10
}

// failedTrace asks for a failure, and returns its trace.
func (s *service) failedTrace(t *testing.T) trace.TraceID {
	resp := s.send(t, context.Background(), "fail")
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	assert.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	return propagation.ReadResponse(propagation.HTTPHeader(resp.Header)).SpanContext.TraceID()
}

// leave reads a little and goes.
func (s *service) leave(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	resp := s.send(t, ctx, "slow")
	_, _ = io.ReadFull(resp.Body, make([]byte, 10))
	cancel()
	_ = resp.Body.Close()
}

func count(m metricdata.ResourceMetrics, name string) (n uint64) {
	for _, scope := range m.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if h, ok := metric.Data.(metricdata.Histogram[float64]); ok && metric.Name == name {
				for _, p := range h.DataPoints {
					n += p.Count
				}
			}
		}
	}
	return n
}

func sum(m metricdata.ResourceMetrics, name string) (n int64) {
	for _, scope := range m.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if s, ok := metric.Data.(metricdata.Sum[int64]); ok && metric.Name == name {
				for _, p := range s.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}
