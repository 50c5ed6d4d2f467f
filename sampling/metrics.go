package sampling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// counts are what a shard counts, under its lock.
type counts struct {
	kept, keyPath []uint64 // traces, by reason
	dropped       uint64   // traces
	droppedSpans  uint64   // by a policy

	lateKept, lateDropped uint64 // spans whose segment was not there
	truncatedSpans        uint64
	shedTraces, shedSpans uint64
	aged, evicted         uint64 // traces
	lostTraces            uint64 // by a full queue
	parts                 parts  // of kept traces, in other processes
	answered              parts  // kept traces whose parts all were kept, and others
}

// Attributes of the metrics.
const (
	decisionKey = attribute.Key("genai.sampling.decision")
	outcomeKey  = attribute.Key("genai.sampling.outcome")
	causeKey    = attribute.Key("genai.sampling.cause")
	policyKey   = attribute.Key("genai.sampling.policy")
	groupKey    = attribute.Key("genai.sampling.group")
	completeKey = attribute.Key("genai.sampling.complete")
)

// metrics are what a Tail tells of itself, read when somebody collects them, and what it
// tells of all requests, recorded as they are decided.
type metrics struct {
	t              *Tail
	duration, ttft metric.Float64Histogram

	options atomic.Pointer[map[requestKey][]metric.RecordOption]
	mu      sync.Mutex // held to add options
	names   bound.Set
	errors  bound.Set

	traces, spans, early, late, faults metric.Int64ObservableCounter
	parts, answered                    metric.Int64ObservableCounter
	bufferBytes, bufferTraces          metric.Int64ObservableGauge
	queueBytes                         metric.Int64ObservableGauge
	horizon, probability, threshold    metric.Float64ObservableGauge
}

func newMetrics(t *Tail) *metrics {
	const names, errorTypes = 100, 100
	m := &metrics{t: t, names: bound.Set{Limit: names}, errors: bound.Set{Limit: errorTypes}}
	m.options.Store(&map[requestKey][]metric.RecordOption{})
	provider := t.config.meter
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	if err := m.create(provider.Meter(ScopeName)); err != nil {
		otel.Handle(fmt.Errorf("sampling: metrics: %w", err))
	}
	return m
}

func (m *metrics) create(meter metric.Meter) error {
	var errs [15]error
	seconds := metric.WithUnit("s")
	m.duration, errs[0] = meter.Float64Histogram("genai.sampling.request.duration", seconds,
		metric.WithDescription("duration of the local roots of all traces, kept or not"),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120))
	m.ttft, errs[1] = meter.Float64Histogram("genai.sampling.request.time_to_first_token", seconds,
		metric.WithDescription("time to first token of all traces that report one, kept or not"),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24))
	m.traces, errs[2] = meter.Int64ObservableCounter("genai.sampling.traces", metric.WithUnit("{trace}"),
		metric.WithDescription("local traces by decision and by what kept them"))
	m.spans, errs[3] = meter.Int64ObservableCounter("genai.sampling.spans", metric.WithUnit("{span}"),
		metric.WithDescription("ended spans by what became of them"))
	m.early, errs[4] = meter.Int64ObservableCounter("genai.sampling.evicted", metric.WithUnit("{trace}"),
		metric.WithDescription("traces that gave way to a limit"))
	m.late, errs[5] = meter.Int64ObservableCounter("genai.sampling.late_spans", metric.WithUnit("{span}"),
		metric.WithDescription("spans that ended after their trace was forgotten"))
	m.faults, errs[6] = meter.Int64ObservableCounter("genai.sampling.faults", metric.WithUnit("{fault}"),
		metric.WithDescription("panics of custom policies"))
	m.bufferBytes, errs[7] = meter.Int64ObservableGauge("genai.sampling.buffer.bytes", metric.WithUnit("By"),
		metric.WithDescription("estimated size of the spans of undecided traces"))
	m.bufferTraces, errs[8] = meter.Int64ObservableGauge("genai.sampling.buffer.traces", metric.WithUnit("{trace}"),
		metric.WithDescription("traces that are undecided or have open spans"))
	m.queueBytes, errs[9] = meter.Int64ObservableGauge("genai.sampling.queue.bytes", metric.WithUnit("By"),
		metric.WithDescription("estimated size of the spans that wait for the exporter"))
	m.horizon, errs[10] = meter.Float64ObservableGauge("genai.sampling.event_horizon", seconds,
		metric.WithDescription("age of the oldest trace that holds spans: how far back a decision can reach"))
	m.probability, errs[11] = meter.Float64ObservableGauge("genai.sampling.probability", metric.WithUnit("1"),
		metric.WithDescription("share of traces that a policy keeps at present"))
	m.threshold, errs[12] = meter.Float64ObservableGauge("genai.sampling.slow_threshold", seconds,
		metric.WithDescription("duration above which above_quantile keeps a trace at present"))
	m.parts, errs[13] = meter.Int64ObservableCounter("genai.sampling.parts", metric.WithUnit("{part}"),
		metric.WithDescription("parts of kept traces in called services that answered, by what these did with them"))
	m.answered, errs[14] = meter.Int64ObservableCounter("genai.sampling.answered_traces", metric.WithUnit("{trace}"),
		metric.WithDescription("kept traces with answers from called services, by whether all of these kept their parts"))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(m.observe, m.traces, m.spans, m.early, m.late, m.faults, m.parts, m.answered,
		m.bufferBytes, m.bufferTraces, m.queueBytes, m.horizon, m.probability, m.threshold)
	return err
}

// observe reads everything that is counted.
func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	t := m.t
	sum, bytes, traces, oldest := t.sum()
	count := func(c metric.Int64Observable, n uint64, attrs ...attribute.KeyValue) {
		if n > 0 {
			o.ObserveInt64(c, int64(n), metric.WithAttributes(attrs...))
		}
	}
	for i, name := range t.policy.reasons {
		count(m.traces, sum.kept[i], decisionKey.String("kept"), ReasonKey.String(name))
		count(m.traces, sum.keyPath[i], decisionKey.String("key_path"), ReasonKey.String(name))
	}
	count(m.traces, sum.dropped, decisionKey.String("dropped"))

	count(m.spans, t.queue.exported.Load(), outcomeKey.String("exported"))
	count(m.spans, sum.droppedSpans, outcomeKey.String("dropped"))
	count(m.spans, sum.lateDropped, outcomeKey.String("late"))
	count(m.spans, sum.truncatedSpans, outcomeKey.String("truncated"))
	count(m.spans, sum.shedSpans, outcomeKey.String("shed"))
	count(m.spans, t.queue.offPath.Load(), outcomeKey.String("off_key_path"))
	count(m.spans, t.queue.lostFull.Load(), outcomeKey.String("queue_full"))
	count(m.spans, t.queue.lostFailed.Load(), outcomeKey.String("export_failed"))
	count(m.spans, t.queue.lostShutdown.Load(), outcomeKey.String("shutdown"))

	count(m.early, sum.shedTraces, causeKey.String("bytes"))
	count(m.early, sum.evicted, causeKey.String("traces"))
	count(m.early, sum.aged, causeKey.String("age"))
	count(m.early, sum.lostTraces, causeKey.String("queue"))
	count(m.late, sum.lateKept, decisionKey.String("kept"))
	count(m.late, sum.lateDropped, decisionKey.String("dropped"))
	count(m.parts, sum.parts.kept, decisionKey.String("kept"))
	count(m.parts, sum.parts.dropped, decisionKey.String("dropped"))
	count(m.answered, sum.answered.kept, completeKey.Bool(true))
	count(m.answered, sum.answered.dropped, completeKey.Bool(false))
	if t.judge != nil {
		count(m.faults, t.judge.faults.Load())
	}

	select {
	case <-t.stop:
		return nil // what was counted stays true; what was the case does not
	default:
	}
	o.ObserveInt64(m.bufferBytes, int64(bytes))
	o.ObserveInt64(m.bufferTraces, int64(traces))
	o.ObserveInt64(m.queueBytes, int64(t.queue.size()))
	o.ObserveFloat64(m.horizon, oldest.Seconds())
	for _, g := range t.policy.gauges {
		o.ObserveFloat64(m.probability, g.read(), metric.WithAttributes(policyKey.String(g.policy)))
	}
	for _, l := range t.policy.learners {
		for name, g := range *l.groups.Load() {
			if limit := time.Duration(g.limit.Load()); limit > 0 {
				o.ObserveFloat64(m.threshold, limit.Seconds(), metric.WithAttributes(groupKey.String(name)))
			}
		}
	}
	return nil
}

// sum adds up the shards: what they counted, the bytes and traces they hold, and the
// age of the oldest trace that holds spans.
func (t *Tail) sum() (sum counts, bytes, traces int, oldest time.Duration) {
	sum.kept = make([]uint64, len(t.policy.reasons))
	sum.keyPath = make([]uint64, len(t.policy.reasons))
	now := t.sinceEpoch()
	for i := range t.table.shards {
		s := &t.table.shards[i]
		s.mu.Lock()
		for r := range sum.kept {
			sum.kept[r] += s.counts.kept[r]
			sum.keyPath[r] += s.counts.keyPath[r]
		}
		sum.dropped += s.counts.dropped
		sum.droppedSpans += s.counts.droppedSpans
		sum.lateKept += s.counts.lateKept
		sum.lateDropped += s.counts.lateDropped
		sum.truncatedSpans += s.counts.truncatedSpans
		sum.shedTraces += s.counts.shedTraces
		sum.shedSpans += s.counts.shedSpans
		sum.aged += s.counts.aged
		sum.evicted += s.counts.evicted
		sum.lostTraces += s.counts.lostTraces
		sum.parts.kept += s.counts.parts.kept
		sum.parts.dropped += s.counts.parts.dropped
		sum.answered.kept += s.counts.answered.kept
		sum.answered.dropped += s.counts.answered.dropped
		bytes += s.used
		traces += len(s.segments)
		if seg := s.buffered.head; seg != nil {
			oldest = max(oldest, now-seg.born)
		}
		s.mu.Unlock()
	}
	return sum, bytes, traces, oldest
}

// A requestKey is the dimensions of a request.
type requestKey struct {
	name    string
	kind    trace.SpanKind
	errType string
}

// maxRequestKeys is how many combinations are told apart.
const maxRequestKeys = 1000

// request records a local root that ended. Exemplars point at kept traces only: the
// context of a dropped one has no span.
func (m *metrics) request(o *outcome, root sdktrace.ReadOnlySpan) {
	ctx := context.Background()
	if m.duration == nil || !m.duration.Enabled(ctx) {
		return
	}
	if o.kept {
		sc := root.SpanContext()
		ctx = trace.ContextWithSpanContext(ctx, sc.WithTraceFlags(sc.TraceFlags()|trace.FlagsSampled))
	}
	key := requestKey{name: root.Name(), kind: root.SpanKind()}
	if root.Status().Code == codes.Error {
		key.errType = errorType(root.Attributes())
	}
	opts := (*m.options.Load())[key]
	if opts == nil {
		opts = m.newOptions(key)
	}
	m.duration.Record(ctx, root.EndTime().Sub(root.StartTime()).Seconds(), opts...)
	if o.ttft > 0 {
		m.ttft.Record(ctx, o.ttft/1000, opts...)
	}
}

func errorType(attrs []attribute.KeyValue) string {
	for i := range attrs {
		if attrs[i].Key == "error.type" && attrs[i].Value.Type() == attribute.STRING {
			return attrs[i].Value.AsString()
		}
	}
	return bound.Other
}

// newOptions makes the options of a combination, and remembers them while there is room.
func (m *metrics) newOptions(key requestKey) []metric.RecordOption {
	name, errType := m.names.Value(bound.String(key.name, 256)), m.errors.Value(bound.String(key.errType, 256))
	attrs := []attribute.KeyValue{
		attribute.String("span.name", name),
		attribute.String("span.kind", key.kind.String()),
	}
	if errType != "" {
		attrs = append(attrs, attribute.String("error.type", errType))
	}
	opts := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
	if name == bound.Other || errType == bound.Other && key.errType != bound.Other {
		return opts // such keys have no end
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := *m.options.Load(); len(known) < maxRequestKeys {
		more := maps.Clone(known)
		more[key] = opts
		m.options.Store(&more)
	}
	return opts
}
