package genaitrace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// maxPreemptEvents is how many preemptions of a request get an event: the first.
const maxPreemptEvents = 16

// preemptions are the times at which the engine had put a request aside.
type preemptions struct {
	count int
	total int64
	away  bool  // now, since
	since int64 // since arrival
	first []preemption
}

type preemption struct {
	at, ns int64
	tokens int // generated before
}

// Preempt records that the engine puts the request aside and drops its KV cache,
// which it will have to compute again. Open prefill and decode phases end here:
// each stretch of work keeps a span of its own. The request counts as put aside
// until its next prefill or decode phase starts, or it ends; a second Preempt in
// between changes nothing.
//
// The time to first token stays that of the first token ever generated. Where a
// preemption comes before it, it takes a part of that time
// (genai.ttft.preempted_ms); a queue phase that starts while the request is put
// aside takes its own. The span gets genai.preemption.count and
// genai.preemption.duration_ms, and an event preempted for each of the first 16.
func (inf *Inference) Preempt() {
	if inf == nil || inf.t == nil {
		return
	}
	for _, p := range inf.working() {
		p.End()
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended {
		return
	}
	if inf.preempted == nil {
		inf.preempted = &preemptions{}
	}
	if s := inf.preempted; !s.away {
		s.count++
		s.away, s.since = true, inf.now()
	}
}

// working returns the open phases in which the device works on the request.
func (inf *Inference) working() (open []*Phase) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	for _, p := range inf.open {
		if p.kind.resumes() {
			open = append(open, p)
		}
	}
	return open
}

// resumes reports whether a phase of the kind ends a preemption.
func (k *phaseKind) resumes() bool { return k == &prefillPhase || k == &decodePhase }

// resume ends a preemption at a time since arrival. inf.mu is held, or the
// inference has ended.
func (inf *Inference) resume(at int64) {
	s := inf.preempted
	if s == nil || !s.away {
		return
	}
	s.away = false
	at = max(at, s.since)
	s.total += at - s.since
	if len(s.first) < maxPreemptEvents {
		s.first = append(s.first, preemption{at: s.since, ns: at - s.since, tokens: inf.tokens.count})
	}
	inf.ran(partPreempted, s.since, at)
}

// appendTo writes the events and appends the sums.
func (s *preemptions) appendTo(attrs []attribute.KeyValue, span trace.Span, when func(int64) time.Time) []attribute.KeyValue {
	if s == nil {
		return attrs
	}
	for _, p := range s.first {
		span.AddEvent(semconv.EventPreempted, trace.WithTimestamp(when(p.at)), trace.WithAttributes(
			semconv.GenAIPreemptionDurationMs(ms(p.ns)), semconv.GenAITokenCount(p.tokens)))
	}
	return append(attrs, semconv.GenAIPreemptionCount(s.count), semconv.GenAIPreemptionDurationMs(ms(s.total)))
}
