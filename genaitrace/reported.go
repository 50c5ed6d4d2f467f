package genaitrace

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
)

// PhaseTimes holds how long the phases of a request took by the engine's own
// account, given after the fact: in the last chunk of a stream, in a header, or by
// an engine that runs in the same process and keeps the times itself. nil fields
// are unknown; use new(d) for a known duration, or [ReportedSeconds] for a number
// from the wire.
type PhaseTimes struct {
	// Queue is the wait for the scheduler.
	Queue *time.Duration
	// Load is the time to bring the model into memory.
	Load *time.Duration
	// Tokenize and Schedule are the work before the first forward pass.
	Tokenize, Schedule *time.Duration
	// Prefill is the work on the prompt until the first output token is computed.
	Prefill *time.Duration
	// Decode is the time from then to the last token.
	Decode *time.Duration
	// PrefillEnd is when prefill ended, by a clock of this machine. Zero means
	// with the first output.
	PrefillEnd time.Time
	// Source says who measured; zero means the engine.
	Source semconv.GenAITimingSourceAttr
}

// ReportedSeconds is a duration for [PhaseTimes] from a number of seconds. One
// that is no time (negative, not finite, beyond all ages) stays in the result as a
// negative duration, so that RecordPhases drops and counts it.
func ReportedSeconds(s float64) *time.Duration {
	if !(s >= 0 && s < math.MaxInt64/1e9) {
		return new(time.Duration(-1))
	}
	return new(time.Duration(math.Round(s * 1e9)))
}

// reportable are the phases of PhaseTimes in the order in which they run.
var reportable = [...]*phaseKind{&queuePhase, &loadPhase, &tokenizePhase, &schedulePhase, &prefillPhase, &decodePhase}

const (
	atPrefill = len(reportable) - 2 // what is before runs before prefill
	atDecode  = len(reportable) - 1
)

// reportedPhases is what RecordPhases noted, in nanoseconds.
type reportedPhases struct {
	durations  [len(reportable)]count
	prefillEnd int64 // since arrival
	hasEnd     bool
	source     semconv.GenAITimingSourceAttr
}

func (r *reportedPhases) hasPrefill() bool { return r != nil && r.durations[atPrefill].known }

var errReported = errors.New("reported duration that is negative, no number or longer than 24 h, or end of prefill outside the request: dropped")

// merge takes over what is known and sane, and returns how much was not sane. now
// is since arrival.
func (r *reportedPhases) merge(p PhaseTimes, prefillEnd, now int64) (faults int) {
	for i, d := range [...]*time.Duration{p.Queue, p.Load, p.Tokenize, p.Schedule, p.Prefill, p.Decode} {
		switch {
		case d == nil:
		case *d < 0 || *d > maxQueueTime:
			faults++
		default:
			r.durations[i] = count{n: int(*d), known: true}
		}
	}
	switch {
	case p.PrefillEnd.IsZero():
	case prefillEnd < 0 || prefillEnd > now:
		faults++
	default:
		r.prefillEnd, r.hasEnd = prefillEnd, true
	}
	r.source = semconv.GenAITimingSourceAttr(bound.String(string(p.Source), maxReason))
	if r.source == "" {
		r.source = semconv.GenAITimingSourceEngine
	}
	return faults
}

// RecordPhases notes how long phases took by the engine's own account. Call it
// before the end; known fields replace those of earlier calls. Durations that are
// negative, or longer than 24 h, are dropped and counted.
//
// At the end the durations become attributes of the span as they were reported
// (llm.queue_wait_ms, ai.load.duration_ms, ai.prefill.duration_ms,
// ai.decode.duration_ms, with genai.timing.source), spans below it, and parts of
// the time to first token. Only their order and length are known, so the spans
// are placed by the first output that was observed: decode starts there, prefill
// ends there or at PrefillEnd, and what comes before joins on in the order queue,
// load, tokenize, schedule. Without an observed output decode ends with the
// request; without a prefill the earlier ones start with it. What does not fit
// into the observed request is cut, and span and phase are marked
// genai.timing.clamped.
//
// A phase that was observed by a Start method stays as it was observed: its
// reported duration is left out. A host whose engine reports the rest starts
// decode with the first token, not with the request.
func (inf *Inference) RecordPhases(p PhaseTimes) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended {
		return
	}
	if inf.reported == nil {
		inf.reported = &reportedPhases{}
	}
	end := int64(p.PrefillEnd.Sub(inf.base) + inf.after)
	for range inf.reported.merge(p, end, inf.now()) {
		inf.t.metrics.fault(inf.ctx, semconv.GenAIFaultTime, errReported)
	}
}

// RecordPhases notes how long phases took by the engine's own account, as the
// caller learns it from the wire; see [Inference.RecordPhases]. The caller's time
// to first token counts from sending, so the way there and back is in its
// unattributed part. Where one process has both the span of a gateway and that of
// its call, report to the call.
func (c *Call) RecordPhases(p PhaseTimes) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done.Load() {
		return
	}
	if c.reported == nil {
		c.reported = &reportedPhases{}
	}
	end, now := int64(p.PrefillEnd.Sub(c.base)+c.after), int64(time.Since(c.base)+c.after)
	for range c.reported.merge(p, end, now) {
		c.t.metrics.fault(c.ctx, semconv.GenAIFaultTime, errReported)
	}
}

// observed is what is known of a request besides: times since arrival.
type observed struct {
	began, end  int64
	firstOutput int64
	hasOutput   bool
	prefill     int64 // start of the first one
	hasPrefill  bool
	seen        partSet // phases with a span of their own
}

// placedPhase is a reported phase with its place in the observed request.
type placedPhase struct {
	kind       *phaseKind
	reported   int64
	start, end int64 // since arrival; valid where placed
	placed     bool
	clamped    bool
}

// placement is everything that was reported and not observed.
type placement struct {
	phases  []placedPhase // in the order in which they ran
	emit    interval      // valid where hasEmit
	hasEmit bool
	clamped bool
	source  semconv.GenAITimingSourceAttr
}

// place finds the place of each phase. A nil receiver has none.
func (r *reportedPhases) place(o observed) placement {
	if r == nil {
		return placement{}
	}
	l := placement{source: r.source, phases: make([]placedPhase, 0, len(reportable))}
	known := func(i int) bool { return r.durations[i].known && !o.seen.has(reportable[i].part) }
	duration := func(i int) int64 { return int64(r.durations[i].n) }

	first, anchored := o.firstOutput, o.hasOutput
	if !anchored && known(atDecode) {
		first, anchored = o.end-duration(atDecode), true
	}
	limit := o.end // of what comes before the first output
	if anchored {
		limit = min(first, o.end)
	}
	prefillEnd, hasEnd := first, anchored
	if r.hasEnd && (!anchored || r.prefillEnd <= first) {
		prefillEnd, hasEnd = r.prefillEnd, true
		l.emit, l.hasEmit = interval{partEmit, prefillEnd, first}, o.hasOutput && known(atPrefill)
	}
	prefill, hasPrefill := o.prefill, o.hasPrefill
	if known(atPrefill) && hasEnd {
		prefill, hasPrefill = prefillEnd-duration(atPrefill), true
	}

	cursor := o.began
	if hasPrefill {
		cursor = prefill
		for i := range atPrefill {
			if known(i) {
				cursor -= duration(i)
			}
		}
	}
	for i := range atPrefill {
		if known(i) {
			l.add(i, cursor, duration(i), o.began, limit, true)
			cursor += duration(i)
		}
	}
	if known(atPrefill) {
		l.add(atPrefill, prefill, duration(atPrefill), o.began, limit, hasEnd)
	}
	if known(atDecode) {
		l.add(atDecode, first, duration(atDecode), o.began, o.end, anchored)
	}
	return l
}

// add adds a phase, cut to [from, to].
func (l *placement) add(i int, start, duration, from, to int64, placed bool) {
	p := placedPhase{kind: reportable[i], reported: duration, placed: placed}
	if placed {
		to = max(to, from)
		p.start = min(max(start, from), to)
		p.end = min(max(start+duration, from), to)
		p.clamped = p.start != start || p.end != start+duration
		l.clamped = l.clamped || p.clamped
	}
	l.phases = append(l.phases, p)
}

// intervals are the parts of the time to first token.
func (l *placement) intervals() []interval {
	if len(l.phases) == 0 {
		return nil
	}
	intervals := make([]interval, 0, len(l.phases)+1)
	for _, p := range l.phases {
		if p.placed {
			intervals = append(intervals, interval{p.kind.part, p.start, p.end})
		}
	}
	if l.hasEmit {
		intervals = append(intervals, l.emit)
	}
	return intervals
}

// appendTo appends what was reported.
func (l *placement) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	if len(l.phases) == 0 {
		return attrs
	}
	for _, p := range l.phases {
		if p.kind.duration != "" {
			attrs = append(attrs, p.kind.duration.Float64(ms(p.reported)))
		}
	}
	attrs = append(attrs, semconv.GenAITimingSource(l.source))
	if l.clamped {
		attrs = append(attrs, semconv.GenAITimingClamped(true))
	}
	return attrs
}

// draw makes a span for each phase that has a place, below the span of ctx.
func (l *placement) draw(ctx context.Context, t *Tracer, prompt promptFacts, when func(int64) time.Time) {
	for _, p := range l.phases {
		if !p.placed {
			continue
		}
		_, span := t.tracer.Start(ctx, p.kind.name, append(slices.Clip(t.withFacts(ctx, p.kind.options)), trace.WithTimestamp(when(p.start)))...)
		attrs := make([]attribute.KeyValue, 0, 8)
		switch p.kind {
		case &prefillPhase:
			attrs = prompt.appendTo(attrs)
		case &tokenizePhase:
			attrs = promptFacts{tokens: prompt.tokens}.appendTo(attrs)
		}
		if p.kind.duration != "" {
			attrs = append(attrs, p.kind.duration.Float64(ms(p.reported)))
		}
		attrs = append(attrs, semconv.GenAITimingSource(l.source))
		if p.clamped {
			attrs = append(attrs, semconv.GenAITimingClamped(true))
		}
		span.SetAttributes(attrs...)
		span.End(trace.WithTimestamp(when(p.end)))
	}
}

// each calls record with every phase that was reported and not observed. A nil
// receiver has none.
func (r *reportedPhases) each(seen partSet, record func(kind *phaseKind, ns int64)) {
	if r == nil {
		return
	}
	for i, kind := range reportable {
		if r.durations[i].known && !seen.has(kind.part) {
			record(kind, int64(r.durations[i].n))
		}
	}
}

// prompt is what the token counts say of the prompt.
func (have *usage) prompt() (f promptFacts) {
	f.tokens = have.input.n
	if have.cached.n <= f.tokens {
		f.cached = have.cached
	}
	return f
}

// place finds the place of what the engine reported.
func (inf *Inference) place(end int64) placement {
	prefill, hasPrefill := firstStart(inf.intervals, partPrefill)
	return inf.reported.place(observed{
		began: inf.began, end: end,
		firstOutput: inf.tokens.first, hasOutput: inf.tokens.count > 0,
		prefill: prefill, hasPrefill: hasPrefill,
		seen: inf.seen,
	})
}

// appendReported draws the phases that the engine reported and appends what it
// said, and where the time to first token went by that.
func (c *Call) appendReported(attrs []attribute.KeyValue, stats *clockStats, end int64) []attribute.KeyValue {
	reported := c.reported.place(observed{
		began: c.began, end: end, firstOutput: stats.firstOutput, hasOutput: stats.outputs > 0,
	})
	if stats.outputs > 0 {
		p := partitionTTFT(nil, reported.intervals(), stats.firstOutput)
		attrs = p.appendTo(attrs)
	}
	reported.draw(c.ctx, c.t, c.usage.prompt(), c.when)
	return reported.appendTo(attrs)
}
