package sampling

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// ScopeName is the name of the instrumentation scope of the metrics.
const ScopeName = "github.com/genaitrace/otelgenai/sampling"

// A Tail decides which local traces are exported. Make one with [NewTail], give
// it to one TracerProvider, and call [Tail.Shutdown]. It is safe for concurrent use. A nil
// Tail decides nothing and tells nobody anything: a program without one, as in a test, needs no
// second way.
type Tail struct {
	config  config
	policy  *compiled
	table   *table
	queue   *queue
	judge   *judgeRoom // nil without custom policies
	memory  *gaugeRoom // nil without a memory source
	metrics *metrics
	quiet   trace.TraceID // the trace of our own exports
	epoch   time.Time
	now     atomic.Int64 // time since epoch, at the last tick
	head    atomic.Pointer[headNow]

	perShard int // traces
	stop     chan struct{}
	sweeper  sync.WaitGroup
	shutdown sync.Once
	ended    chan struct{} // closed when Shutdown is through
	err      error         // of Shutdown; valid once ended
}

// NewTail makes a Tail that exports to exporter what policy keeps. The error names
// each part of policy and options that is wrong.
//
// The exporter is called from one goroutine, with at most 512 spans at a time.
// What it fails to export is lost and counted: retrying is its own business. The local
// roots of what it gets carry genai.sampling.reason, which is the name of the policy that
// kept the trace or of its Match, custom:<name>, head, remote, callee, forced, or what
// [Tail.Keep] was given; genai.sampling.truncated, how many spans are missing, if any are;
// and genai.sampling.partial, if an earlier part may be. Package semconv has the keys.
func NewTail(exporter sdktrace.SpanExporter, policy Policy, opts ...Option) (*Tail, error) {
	var noExporter error
	if exporter == nil {
		noExporter = errors.New("sampling: the exporter is nil")
	}
	compiled, err := compile(policy)
	c, confErr := configure(policy, opts)
	if err := errors.Join(noExporter, err, confErr); err != nil {
		return nil, err
	}
	if err := c.wire(compiled); err != nil {
		return nil, err
	}
	t := &Tail{
		config: c, policy: compiled, table: newTable(c.limits.Bytes),
		epoch: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	_, _ = rand.Read(t.quiet[:]) // it never fails
	for i := range t.table.shards {
		n := &t.table.shards[i].counts
		n.kept, n.keyPath = make([]uint64, len(compiled.reasons)), make([]uint64, len(compiled.reasons))
	}
	t.perShard = max(1, (c.limits.Traces+len(t.table.shards)-1)/len(t.table.shards))
	t.updateHead()
	t.queue = newQueue(exporter, t)
	t.metrics = newMetrics(t)
	t.judge = newJudgeRoom(t)
	t.memory = newGaugeRoom(c.memory)
	t.sweeper.Go(t.sweep)
	return t, nil
}

// ProviderOptions are the options by which a TracerProvider uses t: its sampler and its
// span processor. Give the provider no other exporter for the same spans.
func (t *Tail) ProviderOptions() []sdktrace.TracerProviderOption {
	if t == nil {
		return nil
	}
	return []sdktrace.TracerProviderOption{sdktrace.WithSampler(t.Sampler()), sdktrace.WithSpanProcessor(t)}
}

// Keep keeps the trace of ctx from here on, and what is held of it: for a debug
// header, or for what only the application knows. The reason goes onto the local roots
// (genai.sampling.reason). How likely such traces are is not known, so their spans
// carry no th.
func (t *Tail) Keep(ctx context.Context, reason string) {
	sc := trace.SpanContextFromContext(ctx)
	if t == nil || !sc.IsValid() {
		return
	}
	var out outcomes
	s := t.table.shard(sc.TraceID())
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	seg := s.segments[sc.TraceID()]
	if seg != nil && seg.state != kept {
		seg.note = bound.String(reason, 256)
	}
	t.keepFor(s, sc.TraceID(), seg, keptInfo{never, reasonForced}, &out)
	s.mu.Unlock()
	t.finish(&out)
}

// sinceEpoch is the time by which segments age.
func (t *Tail) sinceEpoch() time.Duration { return time.Since(t.epoch) }
