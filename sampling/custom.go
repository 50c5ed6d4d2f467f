package sampling

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// Functions that applications give run on goroutines of their own: they may block or
// panic, and nothing here waits for them.

// askTimeout is how long a trace waits for the custom policies.
const askTimeout = time.Second

// A judgeRoom asks the custom policies, one trace at a time.
type judgeRoom struct {
	t         *Tail
	functions []func(Trace) bool // by index of the policy's custom rules
	asked     chan trace.TraceID
	stop      chan struct{}
	done      chan struct{}
	faults    atomic.Uint64
}

// maxAsked is how many traces wait for the custom policies; what is beyond is
// decided without them.
const maxAsked = 1024

func newJudgeRoom(t *Tail) *judgeRoom {
	if len(t.policy.custom) == 0 {
		return nil
	}
	j := &judgeRoom{t: t, asked: make(chan trace.TraceID, maxAsked), stop: make(chan struct{}), done: make(chan struct{})}
	for _, name := range t.policy.custom {
		j.functions = append(j.functions, t.config.custom[name])
	}
	go j.run()
	return j
}

func (j *judgeRoom) run() {
	defer close(j.done)
	for {
		select {
		case id := <-j.asked:
			j.judge(id)
			continue
		default:
		}
		select {
		case id := <-j.asked:
			j.judge(id)
		case <-j.stop:
			return
		}
	}
}

// ask queues a segment. The caller holds the lock of its shard.
func (j *judgeRoom) ask(seg *segment) bool {
	select {
	case j.asked <- seg.id:
		return true
	default:
		return false
	}
}

func (j *judgeRoom) judge(id trace.TraceID) {
	s := j.t.table.shard(id)
	s.mu.Lock()
	seg := s.segments[id]
	if seg == nil || seg.state != judging {
		s.mu.Unlock()
		return
	}
	seg.shared = true
	seen := Trace{
		ID: id, Spans: seg.spans[:len(seg.spans):len(seg.spans)],
		Duration: seg.end.Sub(seg.start), Failed: seg.facts&failedFact != 0,
	}
	s.mu.Unlock()

	var keep uint64
	for i, f := range j.functions {
		if j.call(i, f, seen) {
			keep |= 1 << i
		}
	}

	var out outcomes
	s.mu.Lock()
	if seg := s.segments[id]; seg != nil && seg.state == judging {
		j.t.decideNow(s, seg, keep, &out)
		if seg.open == 0 {
			j.t.forget(s, seg)
		}
	}
	s.mu.Unlock()
	j.t.finish(&out)
}

func (j *judgeRoom) call(i int, f func(Trace) bool, seen Trace) (keep bool) {
	defer func() {
		if p := recover(); p != nil {
			keep = false
			j.faults.Add(1)
			otel.Handle(fmt.Errorf("sampling: custom(%s) panicked: %v", j.t.policy.custom[i], p))
		}
	}()
	return f(seen)
}

// close ends the goroutine once it has asked about all that is queued, and waits for
// that as long as ctx and askTimeout allow.
func (j *judgeRoom) close(ctx context.Context) {
	if j == nil {
		return
	}
	close(j.stop)
	select {
	case <-j.done:
	case <-ctx.Done():
	case <-time.After(askTimeout):
	}
}

// A gaugeRoom reads a number once a second.
type gaugeRoom struct {
	bits atomic.Uint64
	at   atomic.Int64 // when it was read, nanoseconds since from and 1; 0 for never
	from time.Time
	stop chan struct{}
}

// staleAfter is how long a reading counts.
const staleAfter = 10 * time.Second

func newGaugeRoom(read func() float64) *gaugeRoom {
	if read == nil {
		return nil
	}
	g := &gaugeRoom{from: time.Now(), stop: make(chan struct{})}
	go func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			g.readOnce(read)
			select {
			case <-ticker.C:
			case <-g.stop:
				return
			}
		}
	}()
	return g
}

func (g *gaugeRoom) readOnce(read func() float64) {
	defer func() {
		if p := recover(); p != nil {
			otel.Handle(fmt.Errorf("sampling: the memory pressure panicked: %v", p))
		}
	}()
	value := read()
	g.bits.Store(math.Float64bits(value))
	g.at.Store(int64(time.Since(g.from)) + 1)
}

func (g *gaugeRoom) close() {
	if g != nil {
		close(g.stop)
	}
}

// pressure returns the last reading, if it is not too old.
func (g *gaugeRoom) pressure() pressure {
	if g == nil {
		return pressure{}
	}
	at, value := time.Duration(g.at.Load()), math.Float64frombits(g.bits.Load())
	known := at > 0 && time.Since(g.from)-at < staleAfter && !math.IsNaN(value)
	return pressure{value, known}
}
