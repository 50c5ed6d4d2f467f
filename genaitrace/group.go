package genaitrace

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// A Group runs tasks on goroutines of their own, such as the searches of a hybrid
// retrieval or the tools that a model asked for together, so that the trace stays
// whole: each task has a span below the one that the group's context carries, the span
// ends with its task however that ends, and a task gets the context to go on with. It
// is used like golang.org/x/sync/errgroup; make one with [Tracer.NewGroup], since the
// zero Group records nothing.
//
// The first task that fails cancels the context of the others. A task that ends because
// of that is cancelled and not failed. Go, SetLimit and Wait are safe for concurrent
// use, but a Go that races with Wait may come too late for it.
type Group struct {
	t      *Tracer
	ctx    context.Context //nolint:containedctx // of all tasks
	cancel context.CancelCauseFunc
	parent trace.Span // nil where none records

	tasks sync.WaitGroup

	mu    sync.Mutex
	slots chan struct{} // nil: no limit
	err   error         // of the first task that failed
	crash *PanicError   // of the first task that panicked
}

// NewGroup makes a group whose tasks run in ctx, below its span. They run also where
// nothing records, and on a nil Tracer. Call [Group.Wait] before that span ends.
func (t *Tracer) NewGroup(ctx context.Context) *Group {
	g := &Group{t: t}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		g.parent = span
	}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// SetLimit bounds how many tasks run at one time; below 1 there is no limit. It counts
// the tasks of later calls of Go.
func (g *Group) SetLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots = nil
	if n > 0 {
		g.slots = make(chan struct{}, n)
	}
}

// Go runs a task on a goroutine of its own, once the limit leaves room for it: until
// then Go blocks. The task's span has its name, which must be one of few, such as
// "search.dense": the first 100 of a process stand for themselves, later ones are
// "task". The task runs also where the group is cancelled already; its context says
// so.
func (g *Group) Go(name string, task func(ctx context.Context) error) {
	slots := g.prepare()
	if slots != nil {
		slots <- struct{}{}
	}
	g.tasks.Go(func() {
		if slots != nil {
			defer func() { <-slots }()
		}
		g.run(name, task)
	})
}

// prepare makes the zero Group one that records nothing, and returns the slots.
func (g *Group) prepare() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil {
		g.ctx, g.cancel = context.WithCancelCause(context.Background())
	}
	return g.slots
}

// Wait waits for all tasks, and returns the error of the first one that failed. A panic
// of a task goes on here, as a [*PanicError], when all others have ended.
func (g *Group) Wait() error {
	g.prepare()
	g.tasks.Wait()
	g.cancel(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.crash != nil {
		panic(g.crash)
	}
	return g.err
}

// A PanicError is what [Group.Wait] panics with after a task did.
type PanicError struct {
	// Value is what the task panicked with, Stack where.
	Value any
	Stack []byte
}

func (p *PanicError) Error() string { return fmt.Sprintf("task: %v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value where it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

var (
	errTaskExit     = errors.New("task: its goroutine exited")
	errTaskOutlived = errors.New("group: a task ended after the span above it: call Wait before you end that")
)

// run runs a task between the start and the end of its span.
func (g *Group) run(name string, task func(ctx context.Context) error) {
	ctx, span := g.t.StartTask(g.ctx, name)
	err := errTaskExit // stays where the goroutine ends without return or panic
	defer func() {
		g.checkParent(span)
		if v := recover(); v != nil {
			span.end(nil, panicked, time.Time{})
			g.fail(nil, &PanicError{Value: v, Stack: debug.Stack()})
			return
		}
		span.Fail(err)
		if err != nil {
			g.fail(err, nil)
		}
	}()
	err = task(ctx)
}

// fail keeps the first error and the first panic, and cancels the other tasks.
func (g *Group) fail(err error, crash *PanicError) {
	g.mu.Lock()
	if g.err == nil {
		g.err = err
	}
	if g.crash == nil {
		g.crash = crash
	}
	g.mu.Unlock()
	if crash != nil {
		err = crash
	}
	g.cancel(err)
}

// checkParent marks a task whose span ends after the one above it, which nobody will
// find in the time that one tells.
func (g *Group) checkParent(span *Operation) {
	if span == nil || g.parent == nil || g.parent.IsRecording() {
		return
	}
	span.note(semconv.GenAISpanOutlivedParent(true))
	g.t.metrics.fault(g.ctx, semconv.GenAIFaultParent, errTaskOutlived)
}
