package genaitrace

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otellog "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// ScopeName is the name of the instrumentation scope of every span and metric
// that this package makes.
const ScopeName = "github.com/genaitrace/otelgenai/genaitrace"

// maxQueueTime bounds how long before now an arrival may lie. An older one is
// a broken clock or a zero value rather than a fact.
const maxQueueTime = 24 * time.Hour

// A Tracer starts the spans of inference services and of their callers, and
// records their metrics. Make one a process with [New] and share it: it is safe
// for concurrent use. The methods of a nil Tracer start nothing.
type Tracer struct {
	tracer  trace.Tracer
	metrics *metrics
	models  bound.Set             // models that may appear in span names
	names   *[nameKinds]nameCache // of operations, with those of tools, agents and the like
	words   semconv.Vocabulary
	content *contentPolicy
	logs    logs

	profileLabels bool
	stacks        bool
	stepEvents    int // of a phase
	stalls        stallRule
	// tokenEvents is how many tokens of a decode phase get an event each.
	tokenEvents int
}

type config struct {
	tracerProvider trace.TracerProvider
	meterProvider  metric.MeterProvider
	loggerProvider otellog.LoggerProvider
	vocabulary     semconv.Vocabulary
	dimensions     [extraKinds]bool
	chosen         bool // by option
	profileLabels  bool
	stacks         bool
	stalls         stallRule
	tokenEvents    int
	err            error // what was wrong with the options

	stepEvents int

	contentLevel content.Level
	levelChosen  bool // by option
	contentPlace content.Place
	sanitizer    content.Sanitizer
}

// An Option configures [New].
type Option interface{ apply(config) config }

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

// WithTracerProvider sets where spans go. Default, and where tp is nil: the
// global provider at the time of [New].
func WithTracerProvider(tp trace.TracerProvider) Option {
	return optionFunc(func(c config) config {
		if tp != nil {
			c.tracerProvider = tp
		}
		return c
	})
}

// WithMeterProvider sets where metrics go. Default, and where mp is nil: the
// global provider at the time of [New].
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		if mp != nil {
			c.meterProvider = mp
		}
		return c
	})
}

// New makes a Tracer. It cannot fail: an option that is wrong, or a metric
// instrument that the provider refuses, is reported through [otel.Handle] and left
// out.
func New(opts ...Option) *Tracer {
	c, err := configure(opts)
	if err != nil {
		reportOnce(err)
	}
	if c.tracerProvider == nil {
		c.tracerProvider = otel.GetTracerProvider()
	}
	if c.meterProvider == nil {
		c.meterProvider = otel.GetMeterProvider()
	}
	if c.loggerProvider == nil {
		c.loggerProvider = otel.GetLoggerProvider()
	}
	return &Tracer{
		models:  bound.Set{Limit: maxDistinct},
		names:   new([nameKinds]nameCache),
		tracer:  c.tracerProvider.Tracer(ScopeName, trace.WithInstrumentationVersion(Version)),
		metrics: newMetrics(c.meterProvider.Meter(ScopeName, metric.WithInstrumentationVersion(Version)), c.vocabulary, c.dimensions),
		words:   c.vocabulary,
		content: &contentPolicy{Sanitizer: c.sanitizer, level: c.contentLevel, place: c.contentPlace},
		logs:    logs{c.loggerProvider.Logger(ScopeName, otellog.WithInstrumentationVersion(Version))},

		profileLabels: c.profileLabels,
		stacks:        c.stacks,
		stepEvents:    c.stepEvents,
		stalls:        c.stalls, tokenEvents: c.tokenEvents,
	}
}

type contextKey int

const (
	arrivalKey contextKey = iota
	callKey
	factsKey
	contentKey
	labelsKey
	agentKey
)

// ContextWithArrival notes when the request that ctx belongs to reached this
// process. Server middleware calls it, so that the TTFT of the first inference
// below counts from there. Later inferences of the same request, such as those of
// a long-lived stream, count from their own start or from [Request.Arrived].
func ContextWithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey, &arrivalNote{at: at})
}

type arrivalNote struct {
	at      time.Time
	taken   atomic.Bool // by the first inference
	gateway *Call       // that noted it, if one did
}

// ArrivalFromContext returns what [ContextWithArrival] noted.
func ArrivalFromContext(ctx context.Context) (at time.Time, ok bool) {
	note, ok := ctx.Value(arrivalKey).(*arrivalNote)
	if !ok {
		return time.Time{}, false
	}
	return note.at, true
}

var errArrival = errors.New("arrival time in the future or more than 24 h ago: counting from the start of the operation")

// arrival is the time that everything counts from, and a clock reading now.
func (t *Tracer) arrival(ctx context.Context, given time.Time) (arrived, now time.Time) {
	now = time.Now()
	if given.IsZero() {
		return now, now
	}
	if age := now.Sub(given); age < 0 || age > maxQueueTime {
		t.metrics.fault(ctx, semconv.GenAIFaultArrival, fmt.Errorf("request: %w", errArrival))
		return now, now
	}
	return given, now
}

// takeArrival returns what [ContextWithArrival] noted, once.
func takeArrival(ctx context.Context) time.Time {
	note, ok := ctx.Value(arrivalKey).(*arrivalNote)
	if !ok || !note.taken.CompareAndSwap(false, true) {
		return time.Time{}
	}
	return note.at
}

// spanName is "{operation} {model}", or the operation alone where that is about a
// stored response, and once this process has named too many models.
func (t *Tracer) spanName(operation, model string) string {
	if model == "" || operation == string(genaiconv.OperationNameFetchResponse) || !t.models.Admits(model) {
		return operation
	}
	return operation + " " + model
}

// isInner reports whether an outer span of the same trace already carries the
// official usage keys: the caller's middleware marked the tracestate, or a live
// [Call] of this process is around.
func isInner(ctx context.Context) bool {
	return propagation.HasCallerMark(trace.SpanContextFromContext(ctx)) || CallFromContext(ctx).Span().IsRecording()
}

// noSpan is what handles hold where no span records.
var noSpan = trace.SpanFromContext(context.Background())

var kindOptions = [...]trace.SpanStartOption{
	trace.SpanKindInternal: trace.WithSpanKind(trace.SpanKindInternal),
	trace.SpanKindServer:   trace.WithSpanKind(trace.SpanKindServer),
	trace.SpanKindClient:   trace.WithSpanKind(trace.SpanKindClient),
}

// ofKind is the option for a kind, made once: it is one of those three.
func ofKind(kind trace.SpanKind) trace.SpanStartOption { return kindOptions[kind] }

// startOptions are the options of a span's start, with room for some more, and when
// it starts, in nanoseconds since arrival: now, or at the arrival where the caller gave
// it. An arrival that was noted in the context belongs to the server's span. The span
// gets the reading that its times count from, not another one of the SDK.
func startOptions(kind trace.SpanKind, attrs []attribute.KeyValue, given, arrived, now time.Time, room int) (options []trace.SpanStartOption, began int64) {
	at, began := now, int64(now.Sub(arrived))
	if !given.IsZero() && arrived.Before(now) {
		at, began = arrived, 0
	}
	return append(make([]trace.SpanStartOption, 0, 3+room), ofKind(kind), trace.WithAttributes(attrs...), trace.WithTimestamp(at)), began
}

// A spanEnd is where the option of a span's end stands, in the memory of its handle.
type spanEnd [1]trace.SpanEndOption

// end ends a span at the reading that its duration was taken from.
func (e *spanEnd) end(span trace.Span, at time.Time) {
	if !span.IsRecording() {
		span.End()
		return
	}
	e[0] = trace.WithTimestamp(at)
	span.End(e[:]...)
}
