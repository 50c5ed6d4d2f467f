package genaieino

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/schema"
	"go.opentelemetry.io/otel"
)

// A run is a component from its start to its end.
//
// It ends once it gave something back and all that runs below it has ended: a graph
// gives back the stream of a model that has only begun. What gives nothing back, because
// it panicked, ends with the graph around it, or with the context.
//
// Locks are taken from the top down.
type run struct {
	info        *callbacks.RunInfo
	model       *modelCall // nil where it is no chat model
	graph       bool
	learn       func(output any)                                          // what was given back; nil where it tells nothing
	read        func(next func() (callbacks.CallbackOutput, error)) error // reads a stream; nil where it is left alone
	interrupted func()                                                    // nil where that is an end like another

	ctx    context.Context //nolint:containedctx // a run that nobody ends does so with it
	handle ending

	mu      sync.Mutex
	parent  *run
	below   map[*run]struct{}
	holds   int  // readers of its stream
	taken   bool // a wrapper reads the stream
	back    bool
	streams bool      // what it gave back goes on
	at      time.Time // when it gave that back, where it does not
	err     error
	broken  error // of the last stream below, where that broke before r gave something back
	ended   bool
	unwatch func() bool
}

// An ending is how a handle of package genaitrace ends.
type ending interface {
	End()
	EndAt(time.Time)
	Fail(error)
}

// patience is how long after the end of its context a run may still end by itself, and
// tell how.
const patience = time.Second

type runKey struct{}

// runFrom is the run that ctx belongs to, or nil.
func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// runOf is the run of a component that ends. Components that end with the context that
// they were called with are found below the run around them.
func runOf(ctx context.Context, info *callbacks.RunInfo) *run {
	r := runFrom(ctx)
	if r == nil || info == nil {
		return nil
	}
	if r.info == info {
		return r
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for child := range r.below {
		if child.info == info {
			return child
		}
	}
	return nil
}

// begin puts a run below the one that ctx belongs to; spanCtx is ctx with the span of
// the handle. A nil handle records nothing, and makes no run.
func begin(ctx, spanCtx context.Context, r *run, handle ending) context.Context {
	if v := reflect.ValueOf(handle); v.IsNil() {
		return spanCtx
	}
	r.ctx, r.handle, r.parent = ctx, handle, runFrom(ctx)
	if !r.parent.add(r) {
		r.parent = nil
		r.watch()
	}
	return context.WithValue(spanCtx, runKey{}, r)
}

// add reports whether child ends with r at the latest.
func (r *run) add(child *run) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	if r.below == nil {
		r.below = make(map[*run]struct{})
	}
	r.below[child] = struct{}{}
	r.broken = nil // whoever goes on after a broken stream has dealt with it, as a retry does
	return true
}

// inGraph reports whether r is a graph or runs in one.
func (r *run) inGraph() bool {
	for ; r != nil; r = r.above() {
		if r.graph {
			return true
		}
	}
	return false
}

func (r *run) above() *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parent
}

// stoodInFor reports whether r is that of a wrapper around the model of which info tells.
func (r *run) stoodInFor(info *callbacks.RunInfo) bool {
	return r != nil && r.model != nil && r.model.wrapped && info != nil && info.Component == components.ComponentOfChatModel
}

// take reports whether a wrapper may read the stream of r, and nobody else.
func (r *run) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back || r.taken {
		return false
	}
	r.taken = true
	return true
}

func (r *run) isTaken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

func (r *run) isBack() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.back
}

// hold keeps r from its end until release. It reports whether r has given back nothing
// yet.
func (r *run) hold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back || r.ended {
		return false
	}
	r.holds++
	return true
}

// release says how the stream ended that r was held for.
func (r *run) release(err error) {
	r.mu.Lock()
	r.holds--
	if r.err == nil {
		r.err = err
	}
	over := r.over()
	r.mu.Unlock()
	if over {
		r.end()
	}
}

// giveBack says that r has returned; streams, that what it returned goes on.
func (r *run) giveBack(err error, streams bool) {
	r.mu.Lock()
	if r.back || r.ended {
		r.mu.Unlock()
		return
	}
	r.back, r.streams = true, streams
	if r.err == nil { // else its stream was read to the end already
		r.err = err
	}
	if streams && r.err == nil {
		r.err = r.broken
	}
	var left []*run
	if !streams {
		r.at = time.Now()
		for child := range r.below {
			if !child.isBack() {
				delete(r.below, child)
				left = append(left, child)
			}
		}
	}
	over := r.over()
	r.mu.Unlock()
	orphan(left, err)
	if over {
		r.end()
	}
}

// orphan is for what gave nothing back before the run above it did. It panicked, or it
// is a branch that nobody waits for: that will end by itself.
func orphan(left []*run, err error) {
	if len(left) == 1 && isPanic(err) {
		left[0].abort(&panicError{err})
		return
	}
	for _, r := range left {
		r.mu.Lock()
		r.parent = nil
		r.mu.Unlock()
		r.watch()
	}
}

// over reports whether r can end; its lock is held.
func (r *run) over() bool { return r.back && r.holds == 0 && len(r.below) == 0 && !r.ended }

// end ends the handle, and the run above where that waited for it.
func (r *run) end() {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	r.ended = true
	err, at, parent, streamed := r.err, r.at, r.parent, r.streams
	if r.unwatch != nil {
		r.unwatch()
	}
	r.mu.Unlock()

	switch {
	case err == nil:
		r.handle.EndAt(at)
	case isInterrupt(err):
		if r.interrupted != nil {
			r.interrupted()
		}
		r.handle.EndAt(at)
	default:
		r.handle.Fail(cause(err))
	}
	if parent != nil {
		parent.leave(r, err, streamed)
	}
}

// leave takes child, which has ended with err, from below r. What r streams ends as it
// does; streamed says that child gave back a stream itself.
func (r *run) leave(child *run, err error, streamed bool) {
	r.mu.Lock()
	if _, ok := r.below[child]; !ok {
		r.mu.Unlock()
		return
	}
	delete(r.below, child)
	switch {
	case r.back && r.streams && r.err == nil:
		r.err = err
	case !r.back && streamed:
		r.broken = err
	}
	over := r.over()
	r.mu.Unlock()
	if over {
		r.end()
	}
}

// abort ends r, and all below it, with an error that it did not tell itself.
func (r *run) abort(err error) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	below := r.below
	r.below, r.back, r.at = nil, true, time.Time{}
	if r.err == nil {
		r.err = err
	}
	r.mu.Unlock()
	for child := range below {
		child.abort(err)
	}
	r.end()
}

// watch ends r with its context, where nobody else does.
func (r *run) watch() {
	if r.ctx.Done() == nil {
		return
	}
	stop := context.AfterFunc(r.ctx, func() {
		time.AfterFunc(patience, func() { r.abort(r.ctx.Err()) })
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		stop()
		return
	}
	r.unwatch = stop
}

// drain reads the copy of a stream, and gives it back.
func (r *run) drain(output *schema.StreamReader[callbacks.CallbackOutput]) {
	var err error
	defer func() {
		if v := recover(); v != nil { // of who made the stream
			err = &panicError{v}
		}
		output.Close()
		r.release(err)
	}()
	err = r.read(output.Recv)
}

func handle(err error) { otel.Handle(err) }
