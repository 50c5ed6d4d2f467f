package sampling

import (
	"context"
	"fmt"
	"time"
)

// tick is how often traces are aged and policies adapt.
const tick = time.Second

func (t *Tail) sweep() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-ticker.C:
		}
		now := t.sinceEpoch()
		t.now.Store(int64(now))
		memory := t.memory.pressure()
		for _, p := range t.policy.tickers {
			p.tick(now, memory)
		}
		t.updateHead()
		for i := range t.table.shards {
			t.sweepShard(&t.table.shards[i], now)
		}
	}
}

// sweepShard does what no end of a span does: it decides what lingers, what has become
// slow without a sound, what the custom policies hold up, and what is too old.
func (t *Tail) sweepShard(s *shard, now time.Duration) {
	limits := &t.config.limits
	var out outcomes
	s.mu.Lock()
	for _, seg := range s.segments {
		quiet := now - seg.changed
		switch seg.state {
		case undecided:
			switch at := t.epoch.Add(now); {
			case seg.lingers && quiet >= limits.Linger:
				t.decide(s, seg, &out)
			case now-seg.born >= limits.Age:
				s.counts.aged++
				if t.decideNow(s, seg, 0, &out); seg.state == dropped {
					t.forget(s, seg)
				}
			case t.policy.patience > 0 && at.Sub(seg.began) >= t.policy.patience:
				t.keepEarly(s, seg, at, &out)
			}
		case judging:
			if quiet >= askTimeout {
				t.decideNow(s, seg, 0, &out)
			}
			if seg.open == 0 && seg.state >= kept {
				t.forget(s, seg)
			}
		case kept, dropped:
			if quiet >= limits.Age {
				t.forget(s, seg)
			}
		}
	}
	s.mu.Unlock()
	t.finish(&out)
}

// ForceFlush judges the traces whose local roots have ended and exports what is
// decided. Traces that run go on. It returns when the exporter has
// taken everything, or with the error of ctx.
func (t *Tail) ForceFlush(ctx context.Context) error {
	if err := ctx.Err(); t == nil || err != nil {
		return err
	}
	for i := range t.table.shards {
		s := &t.table.shards[i]
		var out outcomes
		s.mu.Lock()
		for _, seg := range s.segments {
			if seg.state == undecided && seg.lingers {
				t.decide(s, seg, &out)
			}
		}
		s.mu.Unlock()
		t.finish(&out)
	}
	return t.queue.flush(ctx)
}

// Shutdown judges all traces as they are, those that run as well, exports what is
// kept and shuts the exporter down. Spans that end afterwards are dropped. It returns
// when that is done, or with the error of ctx; what is left then goes on in the
// background for at most Limits.ExportTimeout. Further calls wait for the same.
//
// Call it yourself, before that of the TracerProvider: a provider that is shut down
// with a context that is done already never tells its processors, and a second
// call does not either.
func (t *Tail) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.shutdown.Do(func() {
		deadline := time.Now().Add(t.config.limits.ExportTimeout)
		t.closeIntake()
		t.judge.close(ctx)
		t.closeTable()
		close(t.stop)
		t.memory.close()
		t.queue.close()
		go t.drain(deadline)
	})
	select {
	case <-t.ended:
		return t.err
	default:
	}
	select {
	case <-t.ended:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeIntake judges what is undecided and takes no further spans.
func (t *Tail) closeIntake() {
	for i := range t.table.shards {
		s := &t.table.shards[i]
		var out outcomes
		s.mu.Lock()
		s.closed = true
		for _, seg := range s.segments {
			if seg.state == undecided {
				t.decide(s, seg, &out)
			}
		}
		s.mu.Unlock()
		t.finish(&out)
	}
}

// closeTable judges what the custom policies have not answered for, and empties the
// table.
func (t *Tail) closeTable() {
	for i := range t.table.shards {
		s := &t.table.shards[i]
		var out outcomes
		s.mu.Lock()
		for _, seg := range s.segments {
			if seg.state < kept {
				t.decideNow(s, seg, 0, &out)
			}
			s.countParts(seg)
		}
		s.segments, s.free, s.idle, s.buffered, s.decided = nil, nil, list{}, list{}, list{}
		s.mu.Unlock()
		t.finish(&out)
	}
}

// drain waits until everything is exported, but not beyond the deadline, and shuts the
// exporter down.
func (t *Tail) drain(deadline time.Time) {
	defer close(t.ended)
	t.sweeper.Wait()
	select {
	case <-t.queue.done:
	case <-time.After(time.Until(deadline)):
		t.queue.cancel() // what is left counts as lost
		select {
		case <-t.queue.done:
		case <-time.After(tick): // the exporter does not heed its context
		}
	}
	t.queue.cancel()
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(tick))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			t.err = fmt.Errorf("sampling: the exporter panicked at its shutdown: %v", p)
		}
	}()
	t.err = t.queue.exporter.Shutdown(ctx)
}
