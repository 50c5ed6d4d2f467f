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
	"github.com/genaitrace/otelgenai/semconv"
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
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	counter := func(i described) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(i.Name(), metric.WithUnit(i.Unit()), metric.WithDescription(i.Description()))
		note(err)
		return c
	}
	gauge := func(i described) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(i.Name(), metric.WithUnit(i.Unit()), metric.WithDescription(i.Description()))
		note(err)
		return g
	}
	floats := func(i described) metric.Float64ObservableGauge {
		g, err := meter.Float64ObservableGauge(i.Name(), metric.WithUnit(i.Unit()), metric.WithDescription(i.Description()))
		note(err)
		return g
	}
	duration, err := semconv.NewGenAISamplingRequestDuration(meter)
	note(err)
	ttft, err := semconv.NewGenAISamplingRequestTimeToFirstToken(meter)
	note(err)
	m.duration, m.ttft = duration.Inst(), ttft.Inst()
	m.traces = counter(semconv.GenAISamplingTraces{})
	m.spans = counter(semconv.GenAISamplingSpans{})
	m.early = counter(semconv.GenAISamplingEvicted{})
	m.late = counter(semconv.GenAISamplingLateSpans{})
	m.faults = counter(semconv.GenAISamplingFaults{})
	m.parts = counter(semconv.GenAISamplingParts{})
	m.answered = counter(semconv.GenAISamplingAnsweredTraces{})
	m.bufferBytes = gauge(semconv.GenAISamplingBufferBytes{})
	m.bufferTraces = gauge(semconv.GenAISamplingBufferTraces{})
	m.queueBytes = gauge(semconv.GenAISamplingQueueBytes{})
	m.horizon = floats(semconv.GenAISamplingEventHorizon{})
	m.probability = floats(semconv.GenAISamplingProbability{})
	m.threshold = floats(semconv.GenAISamplingSlowThreshold{})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = meter.RegisterCallback(m.observe, m.traces, m.spans, m.early, m.late, m.faults, m.parts, m.answered,
		m.bufferBytes, m.bufferTraces, m.queueBytes, m.horizon, m.probability, m.threshold)
	return err
}

// described is an instrument of the registry. These here are read rather than recorded.
type described interface {
	Name() string
	Unit() string
	Description() string
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
		count(m.traces, sum.kept[i], semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionKept), semconv.GenAISamplingReason(name))
		count(m.traces, sum.keyPath[i], semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionKeyPath), semconv.GenAISamplingReason(name))
	}
	count(m.traces, sum.dropped, semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionDropped))

	count(m.spans, t.queue.exported.Load(), semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeExported))
	count(m.spans, sum.droppedSpans, semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeDropped))
	count(m.spans, sum.lateDropped, semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeLate))
	count(m.spans, sum.truncatedSpans, semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeTruncated))
	count(m.spans, sum.shedSpans, semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeShed))
	count(m.spans, t.queue.offPath.Load(), semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeOffKeyPath))
	count(m.spans, t.queue.lostFull.Load(), semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeQueueFull))
	count(m.spans, t.queue.lostFailed.Load(), semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeExportFailed))
	count(m.spans, t.queue.lostShutdown.Load(), semconv.GenAISamplingOutcome(semconv.GenAISamplingOutcomeShutdown))

	count(m.early, sum.shedTraces, semconv.GenAISamplingCause(semconv.GenAISamplingCauseBytes))
	count(m.early, sum.evicted, semconv.GenAISamplingCause(semconv.GenAISamplingCauseTraces))
	count(m.early, sum.aged, semconv.GenAISamplingCause(semconv.GenAISamplingCauseAge))
	count(m.early, sum.lostTraces, semconv.GenAISamplingCause(semconv.GenAISamplingCauseQueue))
	count(m.late, sum.lateKept, semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionKept))
	count(m.late, sum.lateDropped, semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionDropped))
	count(m.parts, sum.parts.kept, semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionKept))
	count(m.parts, sum.parts.dropped, semconv.GenAISamplingDecision(semconv.GenAISamplingDecisionDropped))
	count(m.answered, sum.answered.kept, semconv.GenAISamplingComplete(true))
	count(m.answered, sum.answered.dropped, semconv.GenAISamplingComplete(false))
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
		o.ObserveFloat64(m.probability, g.read(), metric.WithAttributes(semconv.GenAISamplingPolicy(g.policy)))
	}
	for _, l := range t.policy.learners {
		for name, g := range *l.groups.Load() {
			if limit := time.Duration(g.limit.Load()); limit > 0 {
				o.ObserveFloat64(m.threshold, limit.Seconds(), metric.WithAttributes(semconv.GenAISamplingGroup(name)))
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
		semconv.GenAISamplingRootName(name),
		semconv.GenAISamplingRootKind(semconv.GenAISamplingRootKindAttr(key.kind.String())),
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
