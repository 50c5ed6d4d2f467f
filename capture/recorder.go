package capture

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// defaultMax is how many spans, and how many log records, a Recorder keeps.
const defaultMax = 100_000

// A Recorder keeps what the SDK records in memory, at once: after the end of a
// span there is nothing to flush and nothing to wait for. It starts no goroutine
// and sets no global. It is safe for concurrent use.
type Recorder struct {
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
	loggers *sdklog.LoggerProvider
	max     int
	source  bool
	only    bool // keeps what records, sampled or not

	mu        sync.Mutex
	started   int
	open      map[spanKey][]*recorded // of one identifier there may be several, from a broken generator
	ended     []*recorded
	openCount int
	refused   int // spans that have not ended and were not kept
	logs      []*Log
	dropped   int
	readers   []*reader
	shared    shared
}

// spanKey is the identity of a span.
type spanKey struct {
	trace trace.TraceID
	span  trace.SpanID
}

// recorded is a span that was kept.
type recorded struct {
	span   sdktrace.ReadOnlySpan // the live one, until it has ended
	order  int                   // of the start
	stack  []uintptr             // where it was started; nil once source is resolved
	source Source
	forgot bool // by Reset, before its end
}

// Option configures [NewRecorder].
type Option interface{ apply(*config) }

type config struct {
	tracers []sdktrace.TracerProviderOption
	meters  []sdkmetric.Option
	loggers []sdklog.LoggerProviderOption
	max     int
	source  bool
	only    bool // see WithRecordOnly
}

type optionFunc func(*config)

func (o optionFunc) apply(c *config) { o(c) }

// WithResource sets what the telemetry of the Recorder's own providers is about.
// Default: that of the SDK, whose service.name is unknown_service and the name of
// the program.
func WithResource(r *resource.Resource) Option {
	return optionFunc(func(c *config) {
		c.tracers = append(c.tracers, sdktrace.WithResource(r))
		c.meters = append(c.meters, sdkmetric.WithResource(r))
		c.loggers = append(c.loggers, sdklog.WithResource(r))
	})
}

// WithSampler sets the sampler of the Recorder's own provider. Default: what the
// parent's process decided, and every span without such a parent, whatever
// OTEL_TRACES_SAMPLER says.
func WithSampler(s sdktrace.Sampler) Option {
	return optionFunc(func(c *config) { c.tracers = append(c.tracers, sdktrace.WithSampler(s)) })
}

// WithSpanLimits sets the limits of the spans of the Recorder's own provider.
// Default: those of the SDK.
func WithSpanLimits(limits sdktrace.SpanLimits) Option {
	return optionFunc(func(c *config) { c.tracers = append(c.tracers, sdktrace.WithRawSpanLimits(limits)) })
}

// WithView adds views to the Recorder's own MeterProvider.
func WithView(views ...sdkmetric.View) Option {
	return optionFunc(func(c *config) { c.meters = append(c.meters, sdkmetric.WithView(views...)) })
}

// WithMax bounds how many spans, and how many log records, are kept; what comes
// beyond is counted in Capture.Dropped. Default, and where n is not positive:
// 100,000. The series of metrics are bounded by the SDK.
func WithMax(n int) Option {
	return optionFunc(func(c *config) {
		if n > 0 {
			c.max = n
		}
	})
}

// WithRecordOnly keeps spans that record and are not sampled, too: those of a
// sampling.Tail, which decides later, and of other samplers that answer RECORD_ONLY.
// Default: only sampled spans, which are what exporters get.
func WithRecordOnly() Option {
	return optionFunc(func(c *config) { c.only = true })
}

// WithoutSource leaves out the lines that start spans. That saves about a
// microsecond a span.
func WithoutSource() Option {
	return optionFunc(func(c *config) { c.source = false })
}

// NewRecorder returns a Recorder that has seen nothing.
func NewRecorder(opts ...Option) *Recorder {
	c := config{max: defaultMax, source: true}
	c.tracers = append(c.tracers, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	for _, o := range opts {
		o.apply(&c)
	}
	r := &Recorder{max: c.max, source: c.source, only: c.only, open: map[spanKey][]*recorded{}, shared: newShared()}
	r.tracers = sdktrace.NewTracerProvider(append(c.tracers, sdktrace.WithSpanProcessor(r.SpanProcessor()))...)
	r.meters = sdkmetric.NewMeterProvider(append(c.meters, sdkmetric.WithReader(r.MetricReader()))...)
	r.loggers = sdklog.NewLoggerProvider(append(c.loggers, sdklog.WithProcessor(r.LogProcessor()))...)
	return r
}

// TracerProvider returns a provider whose spans r records. Further processors, for
// example one that stamps attributes, may be registered with it.
func (r *Recorder) TracerProvider() *sdktrace.TracerProvider { return r.tracers }

// MeterProvider returns a provider whose metrics r records, cumulatively.
func (r *Recorder) MeterProvider() *sdkmetric.MeterProvider { return r.meters }

// LoggerProvider returns a provider whose log records r records.
func (r *Recorder) LoggerProvider() *sdklog.LoggerProvider { return r.loggers }

// SpanProcessor returns a processor for providers of one's own; several may share
// it. Where another processor passes on ended spans alone, their lines are unknown.
func (r *Recorder) SpanProcessor() sdktrace.SpanProcessor { return (*spanProcessor)(r) }

// LogProcessor returns a processor for a provider of one's own.
func (r *Recorder) LogProcessor() sdklog.Processor { return &logProcessor{r} }

// MetricReader returns a new reader for one provider of one's own.
func (r *Recorder) MetricReader() sdkmetric.Reader {
	rd := &reader{ManualReader: sdkmetric.NewManualReader()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = append(r.readers, rd)
	return rd
}

// Shutdown shuts the Recorder's own providers down. What was recorded until then
// can still be captured.
func (r *Recorder) Shutdown(ctx context.Context) error {
	return errors.Join(r.tracers.Shutdown(ctx), r.meters.Shutdown(ctx), r.loggers.Shutdown(ctx))
}

// Capture returns what was recorded so far: the spans in the order of their start,
// those included that have not ended, the log records, and the metrics as they are
// now. Spans that were sampled out are not there, but see [WithRecordOnly]. Later changes do not reach it.
//
// The error is of the collection of the metrics: that of a callback, or of ctx. The
// Capture then holds what could be had.
func (r *Recorder) Capture(ctx context.Context) (*Capture, error) {
	metrics, err := r.metrics(ctx) // before r is locked: callbacks may start spans

	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.Clone(r.ended)
	for _, spans := range r.open {
		kept = append(kept, spans...)
	}
	slices.SortFunc(kept, func(a, b *recorded) int { return cmp.Compare(a.order, b.order) })
	c := &Capture{Metrics: metrics, Logs: make([]*Log, 0, len(r.logs)), Dropped: r.dropped}
	for _, k := range kept {
		if k.forgot || !r.counts(k.span.SpanContext()) {
			continue
		}
		if k.stack != nil {
			k.source, k.stack = resolve(k.stack), nil
		}
		s := r.shared.span(k.span)
		s.Source = k.source
		c.Spans = append(c.Spans, s)
	}
	for _, l := range r.logs {
		record := *l
		record.Attributes = slices.Clone(l.Attributes)
		c.Logs = append(c.Logs, &record)
	}
	return c, err
}

// counts reports whether a span is kept.
func (r *Recorder) counts(sc trace.SpanContext) bool { return r.only || sc.IsSampled() }

// Reset forgets what was recorded so far. Spans that have not ended are forgotten
// for good. Counters and histograms count anew, so that metrics and spans still
// speak of the same requests; their minima and maxima are unknown from then on.
// Gauges and up-down counters, which say what is now, stand.
func (r *Recorder) Reset() {
	r.mu.Lock()
	for _, spans := range r.open {
		for _, k := range spans {
			k.forgot, k.stack = true, nil
		}
	}
	r.ended, r.logs, r.dropped = nil, nil, 0
	readers := slices.Clone(r.readers)
	r.mu.Unlock()

	for _, rd := range readers {
		rd.reset(context.Background(), r.convert)
	}
}

// metrics collects from every reader.
func (r *Recorder) metrics(ctx context.Context) ([]*Metric, error) {
	r.mu.Lock()
	readers := slices.Clone(r.readers)
	r.mu.Unlock()

	var all []*Metric
	var errs []error
	for _, rd := range readers {
		metrics, err := rd.capture(ctx, r.convert)
		all, errs = append(all, metrics...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// spanProcessor is the face that a Recorder shows to a TracerProvider.
type spanProcessor Recorder

// OnStart runs where the span is started, so the stack shows the line.
func (p *spanProcessor) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	k := &recorded{span: span}
	if p.source {
		k.stack = callers()
	}
	sc := span.SpanContext()
	key := spanKey{sc.TraceID(), sc.SpanID()}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.openCount+len(p.ended) >= p.max {
		p.refused++
		if (*Recorder)(p).counts(sc) {
			p.dropped++
		}
		return
	}
	p.started++
	k.order = p.started
	p.open[key] = append(p.open[key], k)
	p.openCount++
}

// OnEnd keeps the span as it ended. It may be a span that never started here: a
// processor that decides late passes on ended ones alone.
func (p *spanProcessor) OnEnd(span sdktrace.ReadOnlySpan) {
	sc := span.SpanContext()
	key := spanKey{sc.TraceID(), sc.SpanID()}

	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.close(key)
	switch {
	case k != nil && (k.forgot || !(*Recorder)(p).counts(sc)):
		return
	case k != nil:
		k.span = span
	case p.refused > 0: // counted when it started
		p.refused--
		return
	case !(*Recorder)(p).counts(sc):
		return
	case p.openCount+len(p.ended) >= p.max:
		p.dropped++
		return
	default:
		p.started++
		k = &recorded{span: span, order: p.started}
	}
	p.ended = append(p.ended, k)
}

// close takes the span out of those that are open, nil where it is not among them.
// Of several with one identifier it takes one that has ended.
func (p *spanProcessor) close(key spanKey) *recorded {
	spans := p.open[key]
	if len(spans) == 0 {
		return nil
	}
	i := max(0, slices.IndexFunc(spans, func(k *recorded) bool { return !k.span.EndTime().IsZero() }))
	k := spans[i]
	if len(spans) == 1 {
		delete(p.open, key)
	} else {
		p.open[key] = slices.Delete(spans, i, i+1)
	}
	p.openCount--
	return k
}

// Shutdown and ForceFlush have nothing to do; other providers may still record.
func (*spanProcessor) Shutdown(context.Context) error   { return nil }
func (*spanProcessor) ForceFlush(context.Context) error { return nil }

// logProcessor is the face that a Recorder shows to a LoggerProvider. It is not the
// Recorder itself: a provider must not share it.
type logProcessor struct{ r *Recorder }

func (*logProcessor) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

func (p *logProcessor) OnEmit(_ context.Context, record *sdklog.Record) error {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if len(p.r.logs) >= p.r.max {
		p.r.dropped++
		return nil
	}
	p.r.logs = append(p.r.logs, p.r.shared.log(record))
	return nil
}

func (*logProcessor) Shutdown(context.Context) error   { return nil }
func (*logProcessor) ForceFlush(context.Context) error { return nil }
