package genaitrace

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// A Phase is one step of an [Inference] with a span of its own. Its methods are
// safe for concurrent use, do nothing on a nil Phase, and do nothing after its
// end.
type Phase struct {
	inf    *Inference
	span   trace.Span
	kind   *phaseKind
	start  int64        // since arrival
	latest int64        // end of what ran inside, as known; guarded by inf.mu
	decode *Decode      // that embeds this phase, if any
	prompt promptFacts  // of a prefill
	around *Phase       // that this phase runs inside of; nil where that is the inference
	ended  bool         // guarded by inf.mu, like the facts and steps
	ending bool         // what runs inside is ended first
	labels *phaseLabels // nil where goroutines are not labelled

	facts []attribute.KeyValue // written at the end
	steps *stepLog             // nil where none was reported

	spanEnd spanEnd
}

// phaseKind is what tells one phase from another.
type phaseKind struct {
	name     string
	role     semconv.GenAISpanRoleAttr
	part     part
	duration attribute.Key // the house key that repeats the span's duration
	options  []trace.SpanStartOption
}

// newPhaseKind prepares what each span of the kind starts with.
func newPhaseKind(name string, role semconv.GenAISpanRoleAttr, part part, duration attribute.Key) phaseKind {
	return phaseKind{name, role, part, duration, []trace.SpanStartOption{trace.WithAttributes(semconv.GenAISpanRole(role))}}
}

var (
	queuePhase       = newPhaseKind(semconv.SpanQueueWait, semconv.GenAISpanRoleQueue, partQueue, semconv.LLMQueueWaitMsKey)
	loadPhase        = newPhaseKind(semconv.SpanModelLoad, semconv.GenAISpanRoleLoad, partLoad, semconv.AILoadDurationMsKey)
	tokenizePhase    = newPhaseKind(semconv.SpanTokenizerEncode, semconv.GenAISpanRoleTokenize, partTokenize, "")
	schedulePhase    = newPhaseKind(semconv.SpanSchedulerDispatch, semconv.GenAISpanRoleSchedule, partSchedule, "")
	prefillPhase     = newPhaseKind(semconv.SpanInferencePrefill, semconv.GenAISpanRolePrefill, partPrefill, semconv.AIPrefillDurationMsKey)
	decodePhase      = newPhaseKind(semconv.SpanInferenceDecode, semconv.GenAISpanRoleDecode, partDecode, semconv.AIDecodeDurationMsKey)
	postprocessPhase = newPhaseKind(semconv.SpanInferencePostprocess, semconv.GenAISpanRolePostprocess, partCount, "")
)

// StartQueue starts the wait for the scheduler (queue.wait).
func (inf *Inference) StartQueue(ctx context.Context) (context.Context, *Phase) {
	return inf.startPhase(ctx, &queuePhase, Phase{}, nil)
}

// StartLoad starts bringing the model into memory (model.load), where a request
// came before it was there.
func (inf *Inference) StartLoad(ctx context.Context) (context.Context, *Phase) {
	return inf.startPhase(ctx, &loadPhase, Phase{}, nil)
}

// StartTokenize starts the tokenizer's work (tokenizer.encode).
func (inf *Inference) StartTokenize(ctx context.Context) (context.Context, *Phase) {
	return inf.startPhase(ctx, &tokenizePhase, Phase{}, nil)
}

// StartSchedule starts the scheduler's dispatch (scheduler.dispatch).
func (inf *Inference) StartSchedule(ctx context.Context) (context.Context, *Phase) {
	return inf.startPhase(ctx, &schedulePhase, Phase{}, nil)
}

// StartPrefill starts the forward passes over the prompt (inference.prefill).
// End it when the first output token is computed.
func (inf *Inference) StartPrefill(ctx context.Context, prompt Prompt) (context.Context, *Phase) {
	if inf == nil || inf.t == nil {
		return ctx, nil
	}
	facts, sane := prompt.facts()
	if !sane {
		inf.t.metrics.fault(ctx, semconv.GenAIFaultCount, errCount)
	}
	return inf.startPhase(ctx, &prefillPhase, Phase{prompt: facts}, nil)
}

// StartPostprocess starts the work on the output (inference.postprocess).
func (inf *Inference) StartPostprocess(ctx context.Context) (context.Context, *Phase) {
	return inf.startPhase(ctx, &postprocessPhase, Phase{}, nil)
}

// StartDecode starts token by token generation (inference.decode).
func (inf *Inference) StartDecode(ctx context.Context) (context.Context, *Decode) {
	if inf == nil || inf.t == nil {
		return ctx, nil
	}
	d := &Decode{}
	d.clock.start(inf.base, inf.after, inf.t.stalls)
	ctx, p := inf.startPhase(ctx, &decodePhase, Phase{decode: d}, &d.Phase)
	if p == nil {
		return ctx, nil
	}
	if p.span.IsRecording() {
		d.events = inf.t.tokenEvents
	}
	return ctx, d
}

// startPhase starts a phase with the facts of init, in the place that use points
// to where it is not nil. Its parent is always the span of the inference, or that
// of the phase around it, whatever span ctx carries: a ctx that is threaded
// through prefill and decode must not nest them.
func (inf *Inference) startPhase(ctx context.Context, kind *phaseKind, init Phase, use *Phase) (context.Context, *Phase) {
	if inf == nil || inf.t == nil {
		return ctx, nil
	}
	inf.mu.Lock()
	if inf.ended {
		inf.mu.Unlock()
		return ctx, nil
	}
	p := use
	switch {
	case p != nil:
	case inf.phases < len(inf.firstPhase):
		p = &inf.firstPhase[inf.phases]
		inf.phases++
	default:
		p = &Phase{}
	}
	inf.mu.Unlock()
	var start int64
	span := noSpan
	if inf.span.IsRecording() {
		parent := inf.span
		if init.around != nil {
			parent = init.around.span
		}
		if trace.SpanFromContext(ctx) != parent {
			ctx = trace.ContextWithSpan(ctx, parent)
		}
		var began time.Time
		ctx, span, began = inf.t.startPrepared(ctx, kind.name, kind.options)
		start = int64(began.Sub(inf.base) + inf.after)
	} else {
		start = inf.now()
	}

	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended || init.around.over() {
		span.End()
		return ctx, nil
	}
	init.inf, init.span, init.kind, init.start = inf, span, kind, start
	*p = init
	inf.open = append(inf.open, p)
	inf.seen = inf.seen.with(kind.part)
	if kind.resumes() {
		inf.resume(start)
	}
	return p.label(ctx), p
}

// Span returns the span of the phase.
func (p *Phase) Span() trace.Span {
	if p == nil || p.inf == nil {
		return noSpan
	}
	return p.span
}

// SetAttributes adds attributes to the span.
func (p *Phase) SetAttributes(attrs ...attribute.KeyValue) {
	if p != nil && p.inf != nil {
		p.span.SetAttributes(attrs...)
	}
}

// SetInputTokens notes the length of the prompt, once the tokenizer knows it.
// Zero and negative counts are unknown.
func (p *Phase) SetInputTokens(n int) {
	if p == nil || p.inf == nil || n <= 0 {
		return
	}
	p.span.SetAttributes(semconv.AITokensInput(n))
	p.inf.mu.Lock()
	defer p.inf.mu.Unlock()
	if !p.ended {
		p.inf.measures.learnPrompt(promptFacts{tokens: n})
	}
}

// End ends the phase well.
func (p *Phase) End() { p.close(nil, 0, time.Time{}) }

// EndAt is End at a given time, with the same rules as [Inference.EndAt].
func (p *Phase) EndAt(t time.Time) { p.close(nil, 0, t) }

// Fail ends the phase with an error; see [Inference.Fail].
func (p *Phase) Fail(err error) { p.close(err, 0, time.Time{}) }

// EndErr is for defer; see [Inference.EndErr].
func (p *Phase) EndErr(err *error) {
	if r := recover(); r != nil {
		p.close(nil, panicked, time.Time{})
		panic(r)
	}
	if err == nil {
		p.End()
		return
	}
	p.Fail(*err)
}

func (p *Phase) close(err error, flag endFlag, at time.Time) {
	if p == nil || p.inf == nil {
		return
	}
	how, errType, err := judge(p.inf.ctx, err, flag)
	for _, q := range p.inside() {
		q.finish(how, errType, err, at)
	}
	p.finish(how, errType, err, at)
}

// finish ends the span once and tells the inference when the phase ran.
func (p *Phase) finish(how outcome, errType string, err error, at time.Time) {
	inf := p.inf
	inf.mu.Lock()
	if p.ended {
		inf.mu.Unlock()
		return
	}
	p.ended = true
	p.unlabel()
	if i := slices.Index(inf.open, p); i >= 0 {
		inf.open = slices.Delete(inf.open, i, i+1)
	}
	var stats *clockStats
	if p.decode != nil {
		stats = p.decode.collect(inf) // no token comes any more
		if stats != nil {
			p.latest = max(p.latest, stats.last)
		}
	}
	end, at, wrong := endTime(at, p.start, p.latest, inf.base, inf.after)
	p.contain(end)
	if p.decode != nil {
		inf.stopOn(p.span, how, at)
	}
	sane := !errors.Is(wrong, errBeforeStart)
	if sane && p.kind.part != partCount {
		inf.ran(p.kind.part, p.start, end)
	}
	inf.measures.learnPrompt(p.prompt)
	kept := !sane || inf.measures.add(p.kind, end-p.start)
	inf.mu.Unlock()

	m := inf.t.metrics
	if wrong != nil {
		m.fault(inf.ctx, semconv.GenAIFaultTime, wrong)
	}
	if !kept {
		inf.recordPhase(p.kind, end-p.start)
	}
	var stalls int
	var longest []pause
	if stats != nil && (p.span.IsRecording() || m.server.stalls.Enabled(inf.ctx)) {
		stalls, longest = stats.stalls(inf.t.stalls)
		inf.countStalls(stalls)
	}
	if p.span.IsRecording() {
		more := 0
		switch {
		case stats != nil, p.prompt != (promptFacts{}):
			more = 8
		case p.kind.duration != "", p.steps != nil, errType != "":
			more = 2
		}
		attrs := slices.Grow(p.facts, more) // nobody adds to the facts of what has ended
		attrs = p.prompt.appendTo(attrs)
		attrs = p.describeSteps(attrs)
		if p.kind.duration != "" && sane {
			attrs = append(attrs, p.kind.duration.Float64(ms(end-p.start)))
		}
		if stats != nil {
			attrs = p.decode.describe(attrs, stats)
			attrs = p.decode.appendStalls(attrs, stalls, longest)
		}
		if errType != "" {
			attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
		}
		if len(attrs) > 0 {
			p.span.SetAttributes(attrs...)
		}
		setStatus(p.span, how, err)
	}
	p.spanEnd.end(p.span, at)
	if stats != nil {
		stats.release()
	}
}

// contain tells what a phase runs inside of when it ended. inf.mu is held.
func (p *Phase) contain(end int64) {
	for q := p.around; q != nil; q = q.around {
		q.latest = max(q.latest, end)
	}
	p.inf.latest = max(p.inf.latest, end)
}
