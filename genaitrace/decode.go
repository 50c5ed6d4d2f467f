package genaitrace

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// A Decode is the phase that generates token by token; it carries the token
// clock. Token, Tokens, TokenAt and Tick are for the one goroutine that generates;
// its other methods, and the end of the inference, are safe from any.
//
// No event is written for each token, unless [WithTokenEvents] asks for it. The
// span gets genai.token.timeline (see [DecodeTimeline]), the token count, the
// quantiles of the gaps, and events for the first token, the change from prefill
// to decode, and stalls (see [WithStallThreshold]).
type Decode struct {
	Phase

	clock clock
	// Known when the phase ends: the first token of the inference fell into
	// this phase; a prefill came before; tokens of the phases before it.
	holdsFirst, afterPrefill bool
	before                   int

	events  int // how many tokens may still have an event of their own
	stamped int // tokens, where they have
}

// maxTokensStep bounds the tokens of one step of the engine.
const maxTokensStep = 1 << 16

var (
	errStep      = fmt.Errorf("decode: number of tokens of a step is not between 1 and %d: step dropped", maxTokensStep)
	errTokenTime = fmt.Errorf("decode: time of a token before arrival: token dropped")
	errChoice    = fmt.Errorf("decode: number of a choice is not between 0 and %d: step dropped", maxChoices-1)
)

// phase is the Phase of a Decode, nil where d is. Promoted methods would
// dereference a nil Decode, so each is repeated here.
func (d *Decode) phase() *Phase {
	if d == nil {
		return nil
	}
	return &d.Phase
}

// Span returns the span of the phase.
func (d *Decode) Span() trace.Span { return d.phase().Span() }

// SetAttributes adds attributes to the span.
func (d *Decode) SetAttributes(attrs ...attribute.KeyValue) { d.phase().SetAttributes(attrs...) }

// SetInputTokens is [Phase.SetInputTokens].
func (d *Decode) SetInputTokens(n int) { d.phase().SetInputTokens(n) }

// End ends the phase well.
func (d *Decode) End() { d.phase().End() }

// EndAt is [Phase.EndAt].
func (d *Decode) EndAt(t time.Time) { d.phase().EndAt(t) }

// Fail ends the phase with an error; see [Inference.Fail].
func (d *Decode) Fail(err error) { d.phase().Fail(err) }

// EndErr is for defer; see [Inference.EndErr].
func (d *Decode) EndErr(err *error) {
	if r := recover(); r != nil { // only a deferred function itself can recover
		d.phase().close(nil, panicked, time.Time{})
		panic(r)
	}
	if err == nil {
		d.End()
		return
	}
	d.Fail(*err)
}

// Token stamps one generated token, when it is handed to the stream. The first
// one of the inference fixes the time to first token everywhere: attribute,
// event and histogram.
func (d *Decode) Token() {
	if d != nil { // small enough to be inlined: a nil Decode costs no call
		d.token()
	}
}

func (d *Decode) token() {
	c := &d.clock
	at := c.now()
	n := c.n.Load() // what stamp does, without its call
	if n == windowSize {
		c.flush()
		n = 0
	}
	c.window[n&(windowSize-1)] = at<<packBits | int64(Visible)
	c.n.Store(n + 1)
	if d.events > 0 {
		d.tokenEvent(at)
	}
}

// Tokens stamps n tokens that one step of the engine produced together.
func (d *Decode) Tokens(n int) {
	if n == 0 {
		n = -1 // in a Tick it would mean 1
	}
	d.Tick(Tick{Tokens: n})
}

// TokenAt stamps a token that was generated at t; a zero time, or one in the
// future, means now.
func (d *Decode) TokenAt(t time.Time) { d.Tick(Tick{At: t}) }

// A Tick says what one step of the engine generated, for [Decode.Tick]. The zero
// value is what [Decode.Token] stamps.
type Tick struct {
	// Tokens is how many tokens the step generated, for example by speculation;
	// zero means 1. The gaps between them are 0.
	Tokens int
	// Choice numbers the answer that they belong to, from 0 to 127, where the
	// request asks for several. All answers share one decode phase: the time to
	// first token is that of whichever comes first, count and timeline hold the
	// tokens of all as they came, and gaps, stalls and the time per output token
	// are those between tokens of the same answer.
	Choice int
	// Reasoning says that they are no part of the answer that the user sees.
	// They count for the time to first token. Once some were told apart, the
	// first of the others fixes genai.first_visible_ms.
	Reasoning bool
	// At is when they were generated; a zero time, or one in the future, means
	// now. One before arrival is dropped and counted.
	At time.Time
}

// Tick stamps the tokens of one step.
func (d *Decode) Tick(t Tick) {
	if d == nil || d.inf == nil {
		return
	}
	n := t.Tokens
	if n == 0 {
		n = 1
	}
	at := sinceArrival(t.At, d.inf.base, d.inf.after)
	m := d.inf.t.metrics
	switch {
	case n < 1 || n > maxTokensStep:
		m.fault(d.inf.ctx, semconv.GenAIFaultCount, errStep)
		return
	case t.Choice < 0 || t.Choice >= maxChoices:
		m.fault(d.inf.ctx, semconv.GenAIFaultCount, errChoice)
		return
	case at < 0:
		m.fault(d.inf.ctx, semconv.GenAIFaultTime, errTokenTime)
		return
	}
	kind := Visible
	if t.Reasoning {
		kind = Output
	}
	for range n {
		d.clock.stamp(at<<packBits | int64(t.Choice)<<kindBits | int64(kind))
		if d.events > 0 {
			d.tokenEvent(at)
		}
	}
}

var prefillToDecode = trace.WithAttributes(semconv.GenAIPhase("prefill->decode"))

// collect closes the clock and adds it up. inf.mu is held.
func (d *Decode) collect(inf *Inference) *clockStats {
	stats, ok := d.clock.close()
	if !ok || stats.ticks == 0 {
		return nil
	}
	if inf.tokens.count == 0 || stats.first < inf.tokens.first {
		d.holdsFirst = !inf.tickedBefore(stats.first)
	}
	d.before = inf.tokens.count
	inf.tokens.add(stats)
	d.afterPrefill = inf.cameFromPrefill(d.start)
	return stats
}

// cameFromPrefill reports whether it was prefill, and no decode phase, that ended last
// before a decode phase started. One that still ran then counts. inf.mu is held.
func (inf *Inference) cameFromPrefill(start int64) bool {
	came, last := inf.reported.hasPrefill(), int64(math.MinInt64)
	if len(inf.intervals) == maxPhases { // what came last is not remembered
		_, some := firstStart(inf.intervals, partPrefill)
		return came || some
	}
	for _, iv := range inf.intervals {
		switch {
		case iv.part == partPrefill && iv.start <= start && min(iv.end, start) >= last:
			came, last = true, min(iv.end, start)
		case iv.part == partDecode && iv.end <= start && iv.end >= last:
			came, last = false, iv.end
		}
	}
	return came
}

// tickedBefore reports whether a decode phase that still runs has an earlier
// token. inf.mu is held.
func (inf *Inference) tickedBefore(at int64) bool {
	for _, p := range inf.open {
		if p.decode == nil {
			continue
		}
		if first, ok := p.decode.clock.firstTick(); ok && first < at {
			return true
		}
	}
	return false
}

// describe writes the events of the phase and appends what its clock saw. The
// events go last, so that the SDK's limit, which drops the oldest, keeps them.
func (d *Decode) describe(attrs []attribute.KeyValue, stats *clockStats) []attribute.KeyValue {
	if d.afterPrefill {
		d.span.AddEvent(semconv.EventPhaseTransition, trace.WithTimestamp(d.inf.when(d.start)),
			prefillToDecode)
	}
	if d.holdsFirst {
		d.span.AddEvent(semconv.EventFirstToken, trace.WithTimestamp(d.inf.when(stats.first)),
			trace.WithAttributes(semconv.LLMTTFTMs(ms(stats.first))))
	}
	attrs = append(attrs, semconv.GenAITokenCount(stats.ticks))
	if limit := d.inf.t.tokenEvents; limit > 0 {
		attrs = append(attrs, semconv.GenAITokenEventLimit(limit))
	}
	if stats.ticks > 1 {
		attrs = append(attrs, semconv.GenAITokenTimeline(stats.settle()))
	}
	return stats.appendGaps(attrs, semconv.GenAITokenGapP50MsKey, semconv.GenAITokenGapP95MsKey, semconv.GenAITokenGapMaxMsKey)
}

// appendGaps appends the quantiles of the gaps, where there is a gap.
func (s *clockStats) appendGaps(attrs []attribute.KeyValue, p50, p95, longest attribute.Key) []attribute.KeyValue {
	median, ok := s.quantile(0.50)
	if !ok {
		return attrs
	}
	high, _ := s.quantile(0.95)
	return append(attrs, p50.Float64(ms(median)), p95.Float64(ms(high)), longest.Float64(ms(s.longest)))
}
