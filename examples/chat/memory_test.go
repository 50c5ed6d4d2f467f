package main

import (
	"context"
	"flag"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hops are the three hops of the program on connections in memory, so that they
// can run in a synctest bubble, where every duration is exact.
type hops struct {
	tel       *telemetry.Telemetry
	spans     *tracetest.SpanRecorder
	metrics   *sdkmetric.ManualReader
	transport *http.Transport
	stop      func()
}

func startHops(t *testing.T, cfg toy.Config) *hops {
	t.Helper()
	spans, metrics := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	h := startHopsOn(t, cfg, serving.Dial,
		sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(metrics)))
	h.spans, h.metrics = spans, metrics
	return h
}

type dialer func(target string, tel *telemetry.Telemetry, opts ...grpc.DialOption) (*grpc.ClientConn, error)

// startHopsOn starts the hops with providers of one's own, and the way in which the
// gateway connects with the service.
func startHopsOn(t *testing.T, cfg toy.Config, connect dialer, traces *sdktrace.TracerProvider, meters *sdkmetric.MeterProvider) *hops {
	t.Helper()
	h := &hops{tel: telemetry.On(traces, meters)}

	grpcLis := bufconn.Listen(1 << 16)
	server := serving.NewService(toy.New(cfg, h.tel.Tracer), h.tel)
	go server.Serve(grpcLis)
	conn, err := connect("passthrough:///memory", h.tel, grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) { return grpcLis.DialContext(ctx) },
	))
	if err != nil {
		t.Fatal(err)
	}

	httpLis := newPipeListener()
	gateway := &http.Server{Handler: traced(serving.NewGateway(conn, h.tel), h.tel)}
	go gateway.Serve(httpLis)
	h.transport = &http.Transport{DialContext: httpLis.DialContext}

	h.stop = sync.OnceFunc(func() {
		h.transport.CloseIdleConnections()
		serving.Shutdown(gateway)
		conn.Close()
		server.GracefulStop()
	})
	t.Cleanup(h.stop)
	return h
}

// client is the real client, connected with the gateway.
func (h *hops) client(cfg *config) *chatclient.Client {
	return newClient("http://gateway", h.transport, cfg)
}

// ended stops the hops and returns their spans.
func (h *hops) ended() []sdktrace.ReadOnlySpan {
	h.stop()
	return h.spans.Ended()
}

// histogram adds up the points of a histogram whose attributes contain want.
func (h *hops) histogram(t *testing.T, name string, want ...string) (sum float64, count uint64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := h.metrics.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			data, ok := m.Data.(metricdata.Histogram[float64])
			if m.Name != name || !ok {
				continue
			}
			for _, point := range data.DataPoints {
				var values []string
				for _, kv := range point.Attributes.ToSlice() {
					values = append(values, kv.Value.String())
				}
				if !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(values, w) }) {
					sum += point.Sum
					count += point.Count
				}
			}
		}
	}
	return sum, count
}

// pipeListener is a network of its own: what dials it is accepted by it.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// compareGolden compares got with a file of testdata.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the spans differ from %s (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}
