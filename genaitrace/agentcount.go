package genaitrace

import (
	"context"
	"math"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// agentEnd is what a run of an agent knows of what runs below it, and adds to its end.
// The methods of a nil one do nothing.
type agentEnd struct {
	name    string
	remote  bool
	inner   bool // the official usage keys stand elsewhere
	request Request
	usage   usage         // as SetUsage says; the operation's lock
	content *contentNotes // nil where nothing may be written; the operation's lock

	mu          sync.Mutex
	inferences  int64
	tools       int64
	input       tokenSum
	output      tokenSum
	outstanding int // calls that have not ended
}

// A tokenSum adds up counts, and is unknown once one of them was.
type tokenSum struct {
	count
	unknown bool
}

func (s *tokenSum) add(c count) {
	if !c.known || s.n > math.MaxInt-c.n {
		s.unknown = true
		return
	}
	s.n, s.known = s.n+c.n, true
}

// agentOf is the run that ctx belongs to, or nil.
func agentOf(ctx context.Context) *agentEnd {
	run, _ := ctx.Value(agentKey).(*agentEnd)
	return run
}

func (e *agentEnd) agentName() string {
	if e == nil || e.request.Operation == genaiconv.OperationNameInvokeWorkflow {
		return "" // tools belong to an agent
	}
	return e.name
}

func (e *agentEnd) countTool() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tools++
}

// runOf counts a model call that starts with the run that it belongs to, if any. A
// call that runs inside another one, as a client's does inside a framework's, is that
// one.
func runOf(ctx context.Context, req *Request) *agentEnd {
	e := agentOf(ctx)
	if e == nil || callKinds[string(req.Operation)] != inferenceCall || CallFromContext(ctx) != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inferences++
	e.outstanding++
	return e
}

// callEnded adds the tokens of a model call that was counted.
func (e *agentEnd) callEnded(u *usage) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outstanding--
	e.input.add(u.input)
	e.output.add(u.output)
}

func (e *agentEnd) settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	used := e.usage
	if !e.remote && e.outstanding == 0 {
		for _, sum := range [...]struct {
			of *tokenSum
			to *count
		}{{&e.input, &used.input}, {&e.output, &used.output}} {
			if !sum.to.known && sum.of.known && !sum.of.unknown {
				*sum.to = sum.of.count
			}
		}
	}
	attrs = used.appendTo(attrs, e.inner)
	return end, e.content.appendTo(attrs, content.OnSpans)
}

func (e *agentEnd) record(o *Operation, end operationEnd) {
	m, ctx := o.t.metrics, o.ctx
	if e.remote {
		m.recordRemote(ctx, &e.request, end)
		return
	}
	w := &m.work
	if w.agent.Enabled(ctx) {
		set := w.sets.of(workSeries{agentWork, [maxWorkKeys]string{string(e.request.Operation), e.name, e.request.Model, end.errType}})
		w.agent.Record(ctx, seconds(end.took), set.record...)
	}
	if e.request.Operation == genaiconv.OperationNameInvokeWorkflow {
		return
	}
	e.mu.Lock()
	inferences, tools := e.inferences, e.tools
	e.mu.Unlock()
	if w.agentInferences.Enabled(ctx) || w.agentTools.Enabled(ctx) {
		set := w.sets.of(workSeries{agentCallsWork, [maxWorkKeys]string{e.name}})
		w.agentInferences.Record(ctx, inferences, set.record...)
		w.agentTools.Record(ctx, tools, set.record...)
	}
}
