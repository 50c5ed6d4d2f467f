package genaitrace

import (
	"context"
	"runtime/pprof"
	"sync/atomic"
)

// The labels of [WithProfileLabels].
const (
	labelTrace = "trace_id"
	labelSpan  = "span_id"
	labelPhase = "phase"
)

// WithProfileLabels labels goroutines with the phase that they run, so that a
// CPU profile splits by phase and by trace:
//
//	go tool pprof -tagfocus phase=prefill cpu.pprof
//
// The labels are phase (the genai.span.role: tokenize, schedule, prefill, decode,
// postprocess), trace_id and span_id. The start of a phase sets them on the
// goroutine that calls it, and adds them to the context that it returns; the end
// sets those of the context that the phase was started in. Of phases that overlap,
// the goroutine has the labels of the one that started last. Goroutines that are
// started inside a phase inherit its labels, and so do forward passes and kernels:
// they are the phase's own work. What waits in a queue has none: it needs no CPU.
//
// Go can set labels on the calling goroutine alone. So end a phase where it was
// started: one that ends elsewhere sets the labels of its context there, and
// leaves its own on the goroutine that started it until the next phase there.
//
// Default: off, which costs nothing. On, a phase costs a microsecond or two more.
// A request where neither span nor metric records has no phases, hence no labels.
func WithProfileLabels() Option {
	return optionFunc(func(c config) config {
		c.profileLabels = true
		return c
	})
}

// phaseLabels are the labels of one phase, known to its context.
type phaseLabels struct {
	before context.Context //nolint:containedctx // its labels come back
	outer  *phaseLabels    // that before carries
	ended  atomic.Bool
}

// label sets the labels of a phase that starts. inf.mu is held.
func (p *Phase) label(ctx context.Context) context.Context {
	inf := p.inf
	if !inf.t.profileLabels || p.kind == &queuePhase || p.kind.inner() {
		return ctx
	}
	sc := p.span.SpanContext()
	if !sc.IsValid() {
		sc = inf.span.SpanContext()
	}
	labels := []string{labelPhase, string(p.kind.role)}
	if sc.IsValid() {
		labels = append(labels, labelTrace, sc.TraceID().String(), labelSpan, sc.SpanID().String())
	}
	outer, _ := ctx.Value(labelsKey).(*phaseLabels)
	p.labels = &phaseLabels{before: ctx, outer: outer}
	inf.labels = p.labels
	ctx = context.WithValue(pprof.WithLabels(ctx, pprof.Labels(labels...)), labelsKey, p.labels)
	pprof.SetGoroutineLabels(ctx)
	return ctx
}

// unlabel takes back the labels of a phase that ends, unless one that started
// later has the goroutine. A context that went through phases one after the other
// still carries those of phases that have ended. inf.mu is held.
func (p *Phase) unlabel() {
	own := p.labels
	if own == nil {
		return
	}
	own.ended.Store(true)
	if p.inf.labels != own {
		return
	}
	back, outer := own.before, own.outer
	for outer != nil && outer.ended.Load() {
		back, outer = outer.before, outer.outer
	}
	p.inf.labels = outer
	pprof.SetGoroutineLabels(back)
}
