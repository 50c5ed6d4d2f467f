package genaitrace_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A recording is a Tracer on the real SDK, and what it recorded.
type recording struct {
	*genaitrace.Tracer

	t        testing.TB
	provider *sdktrace.TracerProvider
	recorder *tracetest.SpanRecorder
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
	started  atomic.Int64
	ended    atomic.Int64
}

// record makes a Tracer. At the end of the test each span must have ended
// exactly once, and a failed test prints the tree that it saw.
func record(t testing.TB, opts ...sdktrace.TracerProviderOption) *recording {
	t.Helper()
	r := &recording{t: t, recorder: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	opts = append([]sdktrace.TracerProviderOption{
		sdktrace.WithSpanProcessor(r.recorder),
		sdktrace.WithSpanProcessor(countingProcessor{r}),
	}, opts...)
	r.provider = sdktrace.NewTracerProvider(opts...)
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters))
	t.Cleanup(func() {
		assert.Equal(t, r.started.Load(), r.ended.Load(), "spans started and ended")
		if t.Failed() {
			t.Logf("spans seen:\n%s", r.tree())
		}
	})
	return r
}

// countingProcessor counts starts and ends, so that a span that ended twice or
// never shows.
type countingProcessor struct{ r *recording }

func (p countingProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) { p.r.started.Add(1) }
func (p countingProcessor) OnEnd(sdktrace.ReadOnlySpan)                     { p.r.ended.Add(1) }
func (countingProcessor) Shutdown(context.Context) error                    { return nil }
func (countingProcessor) ForceFlush(context.Context) error                  { return nil }

// startForeign starts a span of some other instrumentation.
func (r *recording) startForeign(ctx context.Context, name string) (context.Context, trace.Span) {
	return r.provider.Tracer("foreign").Start(ctx, name)
}

// A seen span has look-ups for a test to read.
type seen struct {
	sdktrace.ReadOnlySpan

	t testing.TB
}

// span returns the only ended span of that name.
func (r *recording) span(name string) seen {
	r.t.Helper()
	found := r.spans(name)
	require.Len(r.t, found, 1, "spans named %q", name)
	return found[0]
}

func (r *recording) spans(name string) (found []seen) {
	for _, s := range r.recorder.Ended() {
		if s.Name() == name {
			found = append(found, seen{s, r.t})
		}
	}
	return found
}

func (s seen) has(key attribute.Key) bool {
	return slices.ContainsFunc(s.Attributes(), func(kv attribute.KeyValue) bool { return kv.Key == key })
}

func (s seen) value(key attribute.Key) attribute.Value {
	s.t.Helper()
	for _, kv := range s.Attributes() {
		if kv.Key == key {
			return kv.Value
		}
	}
	require.Fail(s.t, "attribute is absent", "span %q, key %s", s.Name(), key)
	return attribute.Value{}
}

func (s seen) text(key attribute.Key) string   { s.t.Helper(); return s.value(key).AsString() }
func (s seen) float(key attribute.Key) float64 { s.t.Helper(); return s.value(key).AsFloat64() }
func (s seen) int(key attribute.Key) int64     { s.t.Helper(); return s.value(key).AsInt64() }

// nanos is a house key in milliseconds, as whole nanoseconds.
func (s seen) nanos(key attribute.Key) int64 {
	s.t.Helper()
	return int64(math.Round(s.float(key) * 1e6))
}

// events returns the events of that name.
func (s seen) events(name string) (found []sdktrace.Event) {
	for _, e := range s.Events() {
		if e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// event returns the only event of that name.
func (s seen) event(name string) sdktrace.Event {
	s.t.Helper()
	found := s.events(name)
	require.Len(s.t, found, 1, "events %q of span %q", name, s.Name())
	return found[0]
}

// assertStatus checks the status and error.type; an empty want is no error.
func (s seen) assertStatus(wantErrorType string) {
	s.t.Helper()
	if wantErrorType == "" {
		assert.Equal(s.t, codes.Unset, s.Status().Code, "status of %q", s.Name())
		assert.False(s.t, s.has("error.type"), "error.type of %q", s.Name())
		return
	}
	assert.Equal(s.t, codes.Error, s.Status().Code, "status of %q", s.Name())
	assert.Equal(s.t, wantErrorType, s.text("error.type"), "error.type of %q", s.Name())
}

// points returns the points of a histogram; none where nothing was recorded.
func (r *recording) points(name string) []metricdata.HistogramDataPoint[float64] {
	r.t.Helper()
	m, ok := r.metric(name)
	if !ok {
		return nil
	}
	h, ok := m.Data.(metricdata.Histogram[float64])
	require.True(r.t, ok, "%s is a %T", name, m.Data)
	registered, ok := semconv.LookupMetric(name)
	require.True(r.t, ok, name)
	assert.Equal(r.t, registered.Unit, m.Unit, name)
	return h.DataPoints
}

// point returns the only point of a histogram.
func (r *recording) point(name string) metricdata.HistogramDataPoint[float64] {
	r.t.Helper()
	points := r.points(name)
	require.Len(r.t, points, 1, "points of %s", name)
	return points[0]
}

// once returns the value of a histogram that was recorded once.
func (r *recording) once(name string) float64 {
	r.t.Helper()
	p := r.point(name)
	require.Equal(r.t, uint64(1), p.Count, "values of %s", name)
	return p.Sum
}

// total returns how many values a histogram has over all its points.
func (r *recording) total(name string) (n int) {
	r.t.Helper()
	for _, p := range r.points(name) {
		n += int(p.Count)
	}
	return n
}

func (r *recording) metric(name string) (metricdata.Metrics, bool) {
	r.t.Helper()
	m, ok := r.allMetrics()[name]
	return m, ok
}

// allMetrics returns what was recorded so far, by name.
func (r *recording) allMetrics() map[string]metricdata.Metrics {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(r.t, r.reader.Collect(context.Background(), &all))
	byName := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// sums returns the points of a counter; none where nothing was added.
func (r *recording) sums(name string) []metricdata.DataPoint[int64] {
	r.t.Helper()
	m, ok := r.metric(name)
	if !ok {
		return nil
	}
	sum, ok := m.Data.(metricdata.Sum[int64])
	require.True(r.t, ok, "%s is a %T", name, m.Data)
	return sum.DataPoints
}

// sumBy returns the values of a counter by one of its dimensions; "" where a point
// has it not.
func (r *recording) sumBy(name string, key attribute.Key) map[string]int64 {
	r.t.Helper()
	by := map[string]int64{}
	for _, p := range r.sums(name) {
		value, _ := p.Attributes.Value(key)
		by[value.AsString()] += p.Value
	}
	return by
}

// faults returns how many faults of each kind were counted.
func (r *recording) faults() map[semconv.GenAIFaultAttr]int {
	r.t.Helper()
	counted := map[semconv.GenAIFaultAttr]int{}
	for kind, n := range r.sumBy(semconv.GenAITelemetryFaultsName, semconv.GenAIFaultKey) {
		counted[semconv.GenAIFaultAttr(kind)] += int(n)
	}
	return counted
}

// dims renders the attributes of a metric point.
func dims(set attribute.Set) map[string]any {
	m := map[string]any{}
	for _, kv := range set.ToSlice() {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

// tree renders the ended spans: name, kind, status, then attribute keys and
// events. Children stand in the order they started.
func (r *recording) tree() string {
	ended := r.recorder.Ended()
	// Spans that start at the same instant stay in the order the SDK saw.
	order := map[trace.SpanID]int{}
	for i, s := range r.recorder.Started() {
		order[s.SpanContext().SpanID()] = i
	}
	slices.SortFunc(ended, func(a, b sdktrace.ReadOnlySpan) int {
		return order[a.SpanContext().SpanID()] - order[b.SpanContext().SpanID()]
	})
	children := map[trace.SpanID][]sdktrace.ReadOnlySpan{}
	for _, s := range ended {
		parent := s.Parent().SpanID()
		if _, known := order[parent]; !known {
			parent = trace.SpanID{}
		}
		children[parent] = append(children[parent], s)
	}
	var b strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		for _, s := range children[parent] {
			fmt.Fprintf(&b, "%s%s %s", indent, s.Name(), strings.ToUpper(s.SpanKind().String()))
			if s.Status().Code != codes.Unset {
				fmt.Fprintf(&b, " %s", s.Status().Code)
			}
			b.WriteByte('\n')
			for _, key := range keys(s.Attributes()) {
				fmt.Fprintf(&b, "%s    %s\n", indent, key)
			}
			for _, e := range s.Events() {
				fmt.Fprintf(&b, "%s    * %s %v\n", indent, e.Name, keys(e.Attributes))
			}
			draw(s.SpanContext().SpanID(), indent+"  ")
		}
	}
	draw(trace.SpanID{}, "")
	return b.String()
}

func keys(attrs []attribute.KeyValue) []string {
	names := make([]string, 0, len(attrs))
	for _, kv := range attrs {
		names = append(names, string(kv.Key))
	}
	slices.Sort(names)
	return names
}

// golden compares got with a file of testdata; -update rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	assert.Equal(t, string(want), got)
}

// handled collects what reaches otel.Handle while the test runs.
func handled(t testing.TB) func() []error {
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
		return slices.Clone(errs)
	}
}
