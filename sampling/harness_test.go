package sampling_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/sampling"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		if err := play(name); err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// A service is a provider of the real SDK that samples with a Tail, and what came out.
type service struct {
	trace.Tracer

	t        testing.TB
	tail     *sampling.Tail
	provider *sdktrace.TracerProvider
	exporter *exporter
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
}

// serve makes a service. It is shut down at the end of the test.
func serve(t testing.TB, p sampling.Policy, opts ...sampling.Option) *service {
	t.Helper()
	return serveTo(t, &exporter{}, p, opts...)
}

func serveTo(t testing.TB, e *exporter, p sampling.Policy, opts ...sampling.Option) *service {
	t.Helper()
	s := &service{t: t, exporter: e, reader: sdkmetric.NewManualReader()}
	s.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	opts = append([]sampling.Option{sampling.WithMeterProvider(s.meters)}, opts...)
	var err error
	s.tail, err = sampling.NewTail(s.exporter, p, opts...)
	require.NoError(t, err)
	s.provider = sdktrace.NewTracerProvider(s.tail.ProviderOptions()...)
	s.Tracer = s.provider.Tracer("test")
	t.Cleanup(func() { s.shutdown() })
	return s
}

func (s *service) shutdown() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	assert.NoError(s.t, s.tail.Shutdown(ctx))
	assert.NoError(s.t, s.provider.Shutdown(ctx))
}

func (s *service) flush() {
	s.t.Helper()
	require.NoError(s.t, s.tail.ForceFlush(context.Background()))
}

// exported flushes and returns what was exported so far, by name of the span.
func (s *service) exported() []string {
	s.t.Helper()
	s.flush()
	return s.exporter.names()
}

// span returns the only exported span of a name.
func (s *service) span(name string) tracetest.SpanStub {
	s.t.Helper()
	s.flush()
	var found []tracetest.SpanStub
	for _, span := range s.exporter.all() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	require.Len(s.t, found, 1, "exported spans named %q", name)
	return found[0]
}

// request runs a request of a root and two children that takes as long as d.
func (s *service) request(name string, d time.Duration, fail bool) trace.TraceID {
	start := time.Now()
	at := func(share float64) trace.SpanEventOption {
		return trace.WithTimestamp(start.Add(time.Duration(share * float64(d))))
	}
	ctx, root := s.Start(context.Background(), name, at(0), trace.WithSpanKind(trace.SpanKindServer))
	_, a := s.Start(ctx, name+".a", at(0.1))
	a.End(at(0.5))
	_, b := s.Start(ctx, name+".b", at(0.5))
	if fail {
		b.SetStatus(codes.Error, "")
	}
	b.End(at(0.9))
	root.End(at(1))
	return root.SpanContext().TraceID()
}

// metric returns the sums of a counter or gauge by the value of one of its attributes.
func (s *service) metric(name string, by attribute.Key) map[string]int64 {
	s.t.Helper()
	sums := map[string]int64{}
	switch data := s.collect(name).(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			v, _ := p.Attributes.Value(by)
			sums[v.AsString()] += p.Value
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			v, _ := p.Attributes.Value(by)
			sums[v.AsString()] += p.Value
		}
	}
	return sums
}

// points returns what a counter has counted.
func (s *service) points(name string) []metricdata.DataPoint[int64] {
	s.t.Helper()
	data, _ := s.collect(name).(metricdata.Sum[int64])
	return data.DataPoints
}

func (s *service) collect(name string) metricdata.Aggregation {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return m.Data
			}
		}
	}
	return nil
}

// An exporter keeps what it is given.
type exporter struct {
	mu    sync.Mutex
	spans tracetest.SpanStubs
	calls int
	shut  int
	// before is called before anything is taken, if it is set.
	before func(context.Context, []sdktrace.ReadOnlySpan) error
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.before != nil {
		if err := e.before(ctx, spans); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	e.spans = append(e.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (e *exporter) Shutdown(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut++
	return nil
}

func (e *exporter) all() tracetest.SpanStubs {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append(tracetest.SpanStubs(nil), e.spans...)
}

func (e *exporter) names() []string {
	names := []string{}
	for _, span := range e.all() {
		names = append(names, span.Name)
	}
	return names
}

// attr returns an attribute of an exported span as text, empty where it is absent.
func attr(span tracetest.SpanStub, key attribute.Key) string {
	for _, kv := range span.Attributes {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// remote is the context of a caller in another process, whose trace has the randomness
// r, from 0 to 1.
func remote(r float64, sampled bool, tracestate string) context.Context {
	var id trace.TraceID
	id[0] = 1
	binary.BigEndian.PutUint64(id[8:], uint64(r*(1<<56)))
	state, err := trace.ParseTraceState(tracestate)
	if err != nil {
		panic(err)
	}
	return trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: trace.TraceFlags(0).WithSampled(sampled), TraceState: state,
	}))
}
