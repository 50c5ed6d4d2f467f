package sampling

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A batch is spans of one trace that go to the exporter together.
type batch struct {
	spans []sdktrace.ReadOnlySpan
	bytes int
	how   keptInfo
	r     uint64
	paths []threshold // by what key paths keep spans; nil where all go by how
	note  string      // the reason given to Keep
	lost  int         // spans of the trace that are missing
	late  bool        // an earlier part of the trace was judged apart

	root  sdktrace.ReadOnlySpan   // the local root among them, nil where there is none
	roots []sdktrace.ReadOnlySpan // further ones
	one   [1]sdktrace.ReadOnlySpan
}

// batches that were exported, for use again.
var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back.
func (b *batch) free() {
	*b = batch{}
	batches.Put(b)
}

// The queue holds batches until the exporter has taken them. A batch is queued whole or
// not at all.
type queue struct {
	t        *Tail
	exporter sdktrace.SpanExporter

	mu      sync.Mutex
	batches []*batch
	spans   int // waiting
	bytes   int // waiting, or at the exporter
	closed  bool

	// Of the worker alone:
	spare  []*batch // an empty slice to wait in
	states restater // of the spans that were exported last

	full    chan struct{}   // there is enough for an export
	flushes chan chan error // answered once what is queued is exported
	stop    chan struct{}
	done    chan struct{} // the worker has ended
	cancel  context.CancelFunc

	exported, offPath, lostFull, lostFailed, lostShutdown atomic.Uint64 // spans
	warned                                                atomic.Int64  // when a loss was last reported, 0 for never
}

const (
	// exportSpans and exportBytes bound one call of the exporter; one span is always
	// let through.
	exportSpans = 512
	exportBytes = 2 << 20
	// exportDelay is how long spans wait for company.
	exportDelay = time.Second
)

func newQueue(exporter sdktrace.SpanExporter, t *Tail) *queue {
	// Exports run under a trace of their own, for which the sampler records nothing:
	// an instrumented exporter would otherwise make spans by exporting spans.
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: t.quiet, SpanID: trace.SpanID(t.quiet[8:])})
	ctx, cancel := context.WithCancel(trace.ContextWithSpanContext(context.Background(), parent))
	q := &queue{
		t: t, exporter: exporter, cancel: cancel,
		full: make(chan struct{}, 1), flushes: make(chan chan error), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run(ctx)
	return q
}

// push queues a batch, unless there is no room.
func (q *queue) push(b *batch) bool {
	q.mu.Lock()
	if q.closed || q.bytes+b.bytes > q.t.config.limits.QueueBytes && q.bytes > 0 {
		closed := q.closed
		q.mu.Unlock()
		if closed {
			q.lostShutdown.Add(uint64(len(b.spans)))
			return false
		}
		q.lostFull.Add(uint64(len(b.spans)))
		q.warnf("the export queue is full (Limits.QueueBytes is %d): kept traces are lost", q.t.config.limits.QueueBytes)
		return false
	}
	q.batches = append(q.batches, b)
	q.spans += len(b.spans)
	q.bytes += b.bytes
	enough := q.spans >= exportSpans
	q.mu.Unlock()
	if enough {
		select {
		case q.full <- struct{}{}:
		default:
		}
	}
	return true
}

// take takes everything that waits. The worker gives it back with reuse.
func (q *queue) take() []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.batches
	q.batches, q.spare, q.spans = q.spare, nil, 0
	return taken
}

func (q *queue) reuse(taken []*batch) {
	const most = 1 << 14
	if cap(taken) <= most {
		q.spare = taken[:0]
	}
}

func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	ticker := time.NewTicker(exportDelay)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = q.export(ctx) // reported where it failed
		case <-q.full:
			_ = q.export(ctx)
		case answer := <-q.flushes:
			answer <- q.export(ctx)
		case <-q.stop:
			_ = q.export(ctx)
			return
		}
	}
}

// export exports everything that is queued.
func (q *queue) export(ctx context.Context) error {
	var (
		errs  []error
		ready []sdktrace.ReadOnlySpan
		size  int // of ready, in bytes
		whole int // bytes of the batches that went into ready whole
	)
	send := func() {
		if err := q.send(ctx, ready); err != nil {
			errs = append(errs, err)
		}
		q.mu.Lock()
		q.bytes -= whole
		q.mu.Unlock()
		clear(ready)
		ready, size, whole = ready[:0], 0, 0
	}
	taken := q.take()
	for i, b := range taken {
		average := b.bytes/max(1, len(b.spans)) + 1
		for _, span := range q.t.exportable(b) {
			if len(ready) == exportSpans || size+average > exportBytes && len(ready) > 0 {
				send()
			}
			ready, size = append(ready, span), size+average
		}
		whole += b.bytes
		b.free()
		taken[i] = nil
	}
	send()
	q.reuse(taken)
	return errors.Join(errs...)
}

// send calls the exporter.
func (q *queue) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) (err error) {
	if len(spans) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		q.lostShutdown.Add(uint64(len(spans)))
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, q.t.config.limits.ExportTimeout, errExportTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the exporter panicked: %v", p)
		}
		if err != nil {
			q.lostFailed.Add(uint64(len(spans)))
			q.warnf("%d spans could not be exported: %w", len(spans), err)
			return
		}
		q.exported.Add(uint64(len(spans)))
	}()
	return q.exporter.ExportSpans(ctx, spans)
}

var errExportTimeout = errors.New("the exporter took longer than Limits.ExportTimeout")

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// close lets the worker export what is queued, and end.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	close(q.stop)
}

// flush exports what is queued now.
func (q *queue) flush(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case q.flushes <- answer:
	case <-q.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// warnf reports a loss, once a minute at most: losses come in thousands.
func (q *queue) warnf(format string, args ...any) {
	now := int64(q.t.sinceEpoch()) + 1
	if last := q.warned.Load(); (last == 0 || now-last > int64(time.Minute)) && q.warned.CompareAndSwap(last, now) {
		otel.Handle(fmt.Errorf("sampling: "+format, args...))
	}
}
