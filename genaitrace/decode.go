package genaitrace

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// A Decode is the phase that generates token by token; it carries the token
// clock. Token, Tokens and TokenAt are for the one goroutine that generates;
// its other methods, and the end of the inference, are safe from any.
//
// No event is written for each token. The span gets genai.token.timeline (see
// [DecodeTimeline]), the token count, the quantiles of the gaps, and events for
// the first token and the change from prefill to decode.
type Decode struct {
	Phase

	clock clock
	// Known when the phase ends: the first token of the inference fell into
	// this phase; a prefill came before.
	holdsFirst, afterPrefill bool
}

// maxTokensStep bounds the tokens of one step of the engine.
const maxTokensStep = 1 << 16

var (
	errStep      = fmt.Errorf("decode: number of tokens of a step is not between 1 and %d: step dropped", maxTokensStep)
	errTokenTime = fmt.Errorf("decode: time of a token before arrival: token dropped")
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
	if d != nil {
		d.clock.tick(Output)
	}
}

// Tokens stamps n tokens that one step of the engine produced together.
func (d *Decode) Tokens(n int) {
	if d == nil || d.inf == nil {
		return
	}
	if n < 1 || n > maxTokensStep {
		d.inf.t.metrics.fault(d.inf.ctx, semconv.GenAIFaultCount, errStep)
		return
	}
	at := d.inf.now()
	for range n {
		d.clock.tickAt(at, Output)
	}
}

// TokenAt stamps a token that was generated at t; a zero time, or one in the
// future, means now.
func (d *Decode) TokenAt(t time.Time) {
	if d == nil || d.inf == nil {
		return
	}
	at := sinceArrival(t, d.inf.base, d.inf.after)
	if at < 0 {
		d.inf.t.metrics.fault(d.inf.ctx, semconv.GenAIFaultTime, errTokenTime)
		return
	}
	d.clock.tickAt(at, Output)
}

var prefillToDecode = trace.WithAttributes(semconv.GenAIPhase("prefill->decode"))

// collect closes the clock and adds it up. inf.mu is held.
func (d *Decode) collect(inf *Inference) *clockStats {
	stats, ok := d.clock.close()
	if !ok || stats.ticks == 0 {
		return nil
	}
	all := &inf.tokens
	if all.count == 0 || stats.first < all.first {
		all.first = stats.first
		d.holdsFirst = !inf.tickedBefore(stats.first)
	}
	all.count += stats.ticks
	all.last = max(all.last, stats.last)
	_, d.afterPrefill = firstStart(inf.intervals, partPrefill)
	return stats
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
	when := func(ns int64) time.Time { return d.inf.base.Add(time.Duration(ns) - d.inf.after) }
	if d.afterPrefill {
		d.span.AddEvent(semconv.EventPhaseTransition, trace.WithTimestamp(when(d.start)),
			prefillToDecode)
	}
	if d.holdsFirst {
		d.span.AddEvent(semconv.EventFirstToken, trace.WithTimestamp(when(stats.first)),
			trace.WithAttributes(semconv.LLMTTFTMs(ms(stats.first))))
	}
	attrs = append(attrs, semconv.GenAITokenCount(stats.ticks))
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
