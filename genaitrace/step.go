package genaitrace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// maxStepEvents bounds what WithStepEvents can ask for: with the other events of a
// phase they stay below 100, since the SDK keeps 128 and drops the oldest.
const maxStepEvents = 64

// WithStepEvents asks for an event engine_step for the costliest steps of each
// phase that reports them by [Phase.RecordStep], limit of them at most (1 to 64):
// those with the largest sum of kernel, KV cache and tokenizer times, since it is
// they that explain a stall. The span counts all of them in genai.step.count, so
// what has no event is known. Default: none, and RecordStep does nothing.
//
// A step costs a lock and a comparison, an event what AddEvent does, at the end of
// the phase; until then limit × 128 bytes of memory.
func WithStepEvents(limit int) Option {
	return optionFunc(func(c config) config {
		if limit < 1 || limit > maxStepEvents {
			c.err = errors.Join(c.err, fmt.Errorf("WithStepEvents: limit is %d: want 1 to %d", limit, maxStepEvents))
			return c
		}
		c.stepEvents = limit
		return c
	})
}

// A Step is what one step of the engine spent on a phase, and the keys to join it
// with what others recorded of the step. nil fields are unknown; use new(n) for a
// known one, 0 included.
type Step struct {
	// ID is the number of the scheduler's step.
	ID *int
	// StreamID is the number of the device stream that ran it.
	StreamID *int
	// Position is the position, from 0, of the first token that it computed.
	Position *int
	// Kernel is the run time of its kernels, KVCache the time spent reading and
	// writing the KV cache, TokenizerWait how long the engine stood still for the
	// tokenizer.
	Kernel, KVCache, TokenizerWait *time.Duration
}

// stepRecord is a Step by value.
type stepRecord struct {
	at, cost               int64 // ns; at since arrival
	id, stream, position   count
	kernel, kv, tokenizing count // ns
}

// record is what is known and sane.
func (s Step) record(at int64) (r stepRecord, sane bool) {
	r, sane = stepRecord{at: at}, true
	for _, f := range [...]struct {
		from *int
		to   *count
	}{{s.ID, &r.id}, {s.StreamID, &r.stream}, {s.Position, &r.position}} {
		if f.from != nil {
			*f.to = count{n: *f.from, known: true}
		}
	}
	for _, f := range [...]struct {
		from *time.Duration
		to   *count
	}{{s.Kernel, &r.kernel}, {s.KVCache, &r.kv}, {s.TokenizerWait, &r.tokenizing}} {
		switch {
		case f.from == nil:
		case *f.from < 0 || *f.from > maxQueueTime:
			sane = false
		default:
			*f.to = count{n: int(*f.from), known: true}
			r.cost += int64(*f.from)
		}
	}
	return r, sane
}

// attributes are those of the step's event.
func (r *stepRecord) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 6)
	for _, f := range [...]struct {
		key attribute.Key
		count
	}{
		{semconv.GenAIStepIDKey, r.id},
		{semconv.AIGPUStreamIDKey, r.stream},
		{semconv.GenAITokenPositionKey, r.position},
	} {
		if f.known {
			attrs = append(attrs, f.key.Int(f.n))
		}
	}
	for _, f := range [...]struct {
		key attribute.Key
		count
	}{
		{semconv.AIKernelDurationMsKey, r.kernel},
		{semconv.AIKVCacheLatencyMsKey, r.kv},
		{semconv.AITokenizerWaitMsKey, r.tokenizing},
	} {
		if f.known {
			attrs = append(attrs, f.key.Float64(ms(int64(f.n))))
		}
	}
	return attrs
}

// A stepLog keeps the costliest steps of a phase.
type stepLog struct {
	count int
	kept  []stepRecord
	least int // index of the cheapest, once kept is full
}

// add counts a step, and keeps it where it is among the costliest. Of two that
// cost the same the earlier one stays.
func (l *stepLog) add(r stepRecord, limit int) {
	l.count++
	switch {
	case len(l.kept) < limit:
		l.kept = append(l.kept, r)
	case r.cost > l.kept[l.least].cost:
		l.kept = append(slices.Delete(l.kept, l.least, l.least+1), r)
	default:
		return
	}
	if len(l.kept) == limit {
		l.least = 0
		for i := range l.kept {
			if l.kept[i].cost <= l.kept[l.least].cost {
				l.least = i
			}
		}
	}
}

var errStepDuration = errors.New("step: duration that is negative or longer than 24 h dropped")

// RecordStep notes what one step of the engine spent on the phase, now. It does
// nothing unless [WithStepEvents] asks for steps and the span records.
func (p *Phase) RecordStep(s Step) {
	if p == nil || p.inf == nil || p.inf.t.stepEvents == 0 || !p.span.IsRecording() {
		return
	}
	inf := p.inf
	r, sane := s.record(inf.now())
	if !sane {
		inf.t.metrics.fault(inf.ctx, semconv.GenAIFaultTime, errStepDuration)
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if p.ended {
		return
	}
	if p.steps == nil {
		p.steps = &stepLog{kept: make([]stepRecord, 0, inf.t.stepEvents)}
	}
	p.steps.add(r, inf.t.stepEvents)
}

// RecordStep is [Phase.RecordStep].
func (d *Decode) RecordStep(s Step) { d.phase().RecordStep(s) }

// describeSteps writes the events of the steps, in the order of time, and appends
// their number.
func (p *Phase) describeSteps(attrs []attribute.KeyValue) []attribute.KeyValue {
	if p.steps == nil {
		return attrs
	}
	slices.SortStableFunc(p.steps.kept, func(a, b stepRecord) int { return cmp.Compare(a.at, b.at) })
	for i := range p.steps.kept {
		r := &p.steps.kept[i]
		p.span.AddEvent(semconv.EventEngineStep,
			trace.WithTimestamp(p.inf.base.Add(time.Duration(r.at)-p.inf.after)),
			trace.WithAttributes(r.attributes()...))
	}
	return append(attrs, semconv.GenAIStepCount(p.steps.count))
}
