package genaihttp_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A telemetry collects what one test records, and counts starts and ends.
type telemetry struct {
	t              *testing.T
	spans          *tracetest.SpanRecorder
	tp             *sdktrace.TracerProvider
	reader         *sdkmetric.ManualReader
	mp             *sdkmetric.MeterProvider
	started, ended atomic.Int32
}

func newTelemetry(t *testing.T) *telemetry {
	t.Helper()
	o := &telemetry{t: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	o.tp = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans), sdktrace.WithSpanProcessor(o))
	o.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	return o
}

func (o *telemetry) OnStart(context.Context, sdktrace.ReadWriteSpan) { o.started.Add(1) }
func (o *telemetry) OnEnd(sdktrace.ReadOnlySpan)                     { o.ended.Add(1) }
func (o *telemetry) Shutdown(context.Context) error                  { return nil }
func (o *telemetry) ForceFlush(context.Context) error                { return nil }

func (o *telemetry) options() []genaihttp.Option {
	return []genaihttp.Option{genaihttp.WithTracerProvider(o.tp), genaihttp.WithMeterProvider(o.mp)}
}

// only returns the one span of the test, and checks that it ended once.
func (o *telemetry) only() sdktrace.ReadOnlySpan {
	o.t.Helper()
	require.EqualValues(o.t, 1, o.started.Load(), "spans started")
	require.EqualValues(o.t, 1, o.ended.Load(), "spans ended")
	return o.spans.Ended()[0]
}

// named returns the span of that name.
func (o *telemetry) named(name string) sdktrace.ReadOnlySpan {
	o.t.Helper()
	ended := o.spans.Ended()
	i := slices.IndexFunc(ended, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == name })
	require.GreaterOrEqual(o.t, i, 0, "no span named %q among %d", name, len(ended))
	return ended[i]
}

// attributes returns the values of a span by key.
func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]any {
	all := make(map[attribute.Key]any)
	for _, a := range s.Attributes() {
		all[a.Key] = a.Value.AsInterface()
	}
	return all
}

// histogram returns count and sum of a metric over all attribute sets.
func (o *telemetry) histogram(name string) (count uint64, sum float64) {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(o.t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
				for _, p := range h.DataPoints {
					count += p.Count
					sum += p.Sum
				}
			}
		}
	}
	return count, sum
}

// A pipeListener connects clients and servers in memory, so that they may run
// in a testing/synctest bubble.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve runs h in memory until the returned stop is called, and returns the
// plain transport that reaches it under any host name.
func serve(h http.Handler) (transport *http.Transport, stop func()) {
	l := newPipeListener()
	server := &http.Server{Handler: h} //nolint:gosec // in memory
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	transport = &http.Transport{DialContext: l.dial, DisableCompression: true}
	return transport, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		wg.Wait()
	}
}
