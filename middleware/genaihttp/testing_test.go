package genaihttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
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
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("spans seen:\n%s", o.seen())
		}
	})
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

// seen renders the spans that ended.
func (o *telemetry) seen() string {
	var b strings.Builder
	for _, s := range o.spans.Ended() {
		fmt.Fprintf(&b, "%s %s %v parent=%s\n", s.SpanKind(), s.Name(), s.Status(), s.Parent().SpanID())
		for _, a := range s.Attributes() {
			fmt.Fprintf(&b, "    %s = %s\n", a.Key, a.Value.String())
		}
	}
	return b.String()
}

// checkEnding checks how a span says it ended. An errorType of "" means that
// the span is no failure; a terminal of "", that it tells of no stream.
func checkEnding(t *testing.T, span sdktrace.ReadOnlySpan, terminal semconv.GenAIStreamTerminalAttr, errorType string) {
	t.Helper()
	got := attributes(span)
	if terminal == "" {
		assert.NotContains(t, got, semconv.GenAIStreamTerminalKey)
	} else {
		assert.EqualValues(t, terminal, got[semconv.GenAIStreamTerminalKey])
	}
	if errorType == "" {
		assert.Equal(t, codes.Unset, span.Status().Code)
		assert.NotContains(t, got, otelsemconv.ErrorTypeKey)
		return
	}
	assert.Equal(t, codes.Error, span.Status().Code)
	assert.Equal(t, errorType, got[otelsemconv.ErrorTypeKey])
}

// What servers of chat completions send.
const (
	roleEvent   = `data: {"id":"c1","model":"gpt-fx-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	textEvent   = `data: {"id":"c1","model":"gpt-fx-1","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
	finishEvent = `data: {"id":"c1","model":"gpt-fx-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent  = `data: {"id":"c1","model":"gpt-fx-1","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":2}}` + "\n\n"
	errorEvent  = `data: {"error":{"message":"secret","type":"server_error"}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
	answer      = `{"id":"c1","model":"gpt-fx-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":2}}`
)

// say writes events and flushes, as servers of streams do.
func say(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = io.WriteString(w, e)
	}
	_ = http.NewResponseController(w).Flush()
}

// quiet is a server log that nobody reads.
var quiet = log.New(io.Discard, "", 0)

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

// routeOf is the http.route of the only series of a histogram.
func (o *telemetry) routeOf(name string) string {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(o.t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
				require.Len(o.t, h.DataPoints, 1)
				route, _ := h.DataPoints[0].Attributes.Value(otelsemconv.HTTPRouteKey)
				return route.AsString()
			}
		}
	}
	return ""
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
	server := &http.Server{Handler: h, ErrorLog: quiet}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	transport = &http.Transport{DialContext: l.dial, DisableCompression: true}
	return transport, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		wg.Wait()
	}
}
