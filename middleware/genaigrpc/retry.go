package genaigrpc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// retries end the attempts that gRPC begins and drops. Where an attempt fails before it
// has a connection, gRPC begins another, drops that without telling its end, and begins a
// third one. All attempts of an RPC have one Done, and one is made at a time: when the
// next begins, or the RPC has ended, the one before is over.
type retries struct {
	n    atomic.Int32 // of last, so that an RPC without retries takes no lock
	mu   sync.Mutex
	last map[<-chan struct{}]*clientRPC // by RPC: the attempt that was begun last; nil at first
}

// expect is told of an RPC that may be tried again, for its attempt has failed without a
// connection.
func (f *retries) expect(ctx context.Context) {
	rpc := ctx.Done()
	if rpc == nil || ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.last[rpc]; known {
		return
	}
	if f.last == nil {
		f.last = make(map[<-chan struct{}]*clientRPC)
	}
	f.last[rpc] = nil
	f.n.Add(1)
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		last := f.last[rpc]
		delete(f.last, rpc)
		f.n.Add(-1)
		f.mu.Unlock()
		if last != nil && !last.addressed.Load() {
			last.drop(status.FromContextError(ctx.Err()).Code())
		}
	})
}

// next is told that an attempt of an RPC begins.
func (f *retries) next(ctx context.Context) {
	if before := f.swap(ctx, nil); before != nil {
		before.drop(hidden)
	}
}

// begun is told which one that is.
func (f *retries) begun(ctx context.Context, r *clientRPC) { f.swap(ctx, r) }

func (f *retries) swap(ctx context.Context, r *clientRPC) (before *clientRPC) {
	if f.n.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.last[ctx.Done()]
	if known {
		f.last[ctx.Done()] = r
	}
	return before
}

// drop ends an attempt that was never made, unless it has ended. It counts in no metric of
// RPCs.
func (r *clientRPC) drop(code codes.Code) {
	if first, _ := r.life.end(); !first {
		return
	}
	r.handler.watch.remove(&r.life)
	cancelled := code == codes.Canceled
	how := ending{code: code, cancelled: cancelled, failed: !cancelled && (r.own || code != hidden), at: time.Now()}
	if q := keyed(r.model); q != nil {
		q.end(how)
	}
	if r.call != nil {
		r.feed(how)
	} else {
		r.finish(how)
	}
}
