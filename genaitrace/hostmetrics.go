package genaitrace

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// measures is what an inference keeps for its metrics, which are recorded together at
// its end.
type measures struct {
	phases               []phaseTime
	space                [4]phaseTime // enough for most
	prompt               promptFacts
	quantization, device string
}

type phaseTime struct {
	kind *phaseKind
	ns   int64
}

// add notes how long a phase took: what the attribute of its span says. kept is false
// where there is no room for it.
func (m *measures) add(kind *phaseKind, ns int64) (kept bool) {
	switch kind {
	case &queuePhase, &prefillPhase, &decodePhase:
		if m.phases == nil {
			m.phases = m.space[:0]
		}
		if len(m.phases) == maxPhases {
			return false
		}
		m.phases = append(m.phases, phaseTime{kind, ns})
	}
	return true
}

// learnPrompt notes what is known of the prompt. The first word counts: what is
// computed again after a preemption is no longer the prompt alone.
func (m *measures) learnPrompt(p promptFacts) {
	if m.prompt.tokens == 0 {
		m.prompt.tokens = p.tokens
	}
	if !m.prompt.cached.known {
		m.prompt.cached = p.cached
	}
}

// learnEngine notes what is asked for as a dimension of what runs the model. The last
// word counts, as on the span. inf.mu is held.
func (inf *Inference) learnEngine(e Engine) {
	chosen := &inf.t.metrics.sets.chosen
	if chosen[extraQuantization] && e.Quantization != "" {
		inf.measures.quantization = boundCopy(e.Quantization, maxName)
	}
	if chosen[extraGPU] && e.DeviceName != "" {
		inf.measures.device = boundCopy(e.DeviceName, maxName)
	}
}

// known is what is known of the tokens, on the span as in the metrics: what the usage
// says, or else prefill and the token clock.
func (inf *Inference) known() usage {
	u, prompt := inf.usage, inf.measures.prompt
	if !u.input.known {
		u.input = count{prompt.tokens, prompt.tokens > 0}
	}
	if !u.output.known {
		u.output = count{inf.tokens.count, inf.tokens.count > 0}
	}
	if !u.cached.known && prompt.cached.n <= u.input.n {
		u.cached = prompt.cached
	}
	return u
}

// hitRatio is the share of the prompt that the KV cache held.
func (have *usage) hitRatio() (ratio float64, ok bool) {
	if have.input.n == 0 || !have.cached.known || have.cached.n > have.input.n {
		return 0, false
	}
	return float64(have.cached.n) / float64(have.input.n), true
}

// record writes the metrics of a host. Counts of tokens are recorded of failed
// requests too; the conventions define the token times for successful responses.
func (inf *Inference) record(how outcome, errType string, duration int64) {
	if !inf.t.metrics.serverEnabled(inf.ctx) {
		return
	}
	ctx, m := inf.ctx, &inf.t.metrics.server
	s := inf.series()
	s.responseModel, s.errType = inf.response, errType
	with := inf.t.metrics.sets.of(s)

	m.duration.Record(ctx, seconds(duration), with.outcome.record...)
	for _, p := range inf.measures.phases {
		m.ofPhase(p.kind).Record(ctx, seconds(p.ns), with.house.record...)
	}
	inf.reported.each(inf.seen, func(kind *phaseKind, ns int64) {
		if h := m.ofPhase(kind); h != nil {
			h.Record(ctx, seconds(ns), with.house.record...)
		}
	})
	tokens := inf.known()
	if tokens.input.known {
		m.tokens.Add(ctx, int64(tokens.input.n), with.input.add...)
	}
	if tokens.output.known {
		m.tokens.Add(ctx, int64(tokens.output.n), with.output.add...)
	}
	if ratio, ok := tokens.hitRatio(); ok {
		m.hitRatio.Record(ctx, ratio, with.house.record...)
	}
	if inf.tokens.count == 0 || how.isError() {
		return
	}
	m.ttft.Record(ctx, seconds(inf.tokens.first), with.plain.record...)
	if perToken, ok := inf.tokens.perToken(); ok {
		m.perToken.Record(ctx, perToken, with.plain.record...)
	}
	if took := inf.tokens.last - inf.tokens.first; took > 0 { // else all came in one step, and the rate is unknown
		m.rate.Record(ctx, float64(inf.tokens.count-1)/seconds(took), with.house.record...)
	}
}

// series is what is known so far of the inference. inf.mu is held, or the inference has
// ended.
func (inf *Inference) series() series {
	s := seriesOf(inf.ctx, hostSide, &inf.req)
	input := inf.known().input
	s.extra[extraLength] = lengthBucket(input.n, input.known)
	s.extra[extraQuantization], s.extra[extraGPU] = inf.measures.quantization, inf.measures.device
	return s
}

// countStalls counts the stalls of a decode phase, when it ends: adding them up for
// the end would have to wait for phases that end at the same time.
func (inf *Inference) countStalls(n int) {
	if n == 0 {
		return
	}
	inf.mu.Lock()
	s := inf.series()
	inf.mu.Unlock()
	m := inf.t.metrics
	m.server.stalls.Add(inf.ctx, int64(n), m.sets.of(s).house.add...)
}

// recordPhase writes how long a phase took, when it ends: one for which the end of the
// inference has no room.
func (inf *Inference) recordPhase(kind *phaseKind, ns int64) {
	m := inf.t.metrics
	h := m.server.ofPhase(kind)
	if !h.Enabled(inf.ctx) {
		return
	}
	inf.mu.Lock()
	s := inf.series()
	inf.mu.Unlock()
	h.Record(inf.ctx, seconds(ns), m.sets.of(s).house.record...)
}

// recordBatch writes how many requests shared a batch.
func (m *metrics) recordBatch(ctx context.Context, model string, size int) {
	if m.server.batchSize.Enabled(ctx) {
		m.server.batchSize.Record(ctx, int64(size), m.sets.of(series{side: batchSide, model: model}).house.record...)
	}
}

// ofPhase is the histogram of a kind of phase; nil where it has none.
func (m *serverMetrics) ofPhase(kind *phaseKind) metric.Float64Histogram {
	switch kind {
	case &queuePhase:
		return m.queueWait
	case &prefillPhase:
		return m.prefill
	case &decodePhase:
		return m.decode
	}
	return nil
}
