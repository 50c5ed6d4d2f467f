package toy

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrOverloaded means that the queue is full.
var ErrOverloaded = errors.New("too many requests are waiting")

// scheduler gives out slots, first come first served.
type scheduler struct {
	limit int // of waiting

	mu      sync.Mutex
	free    int
	waiting []chan struct{} // closed when the slot is theirs
}

func newScheduler(slots, queued int) *scheduler {
	return &scheduler{free: slots, limit: queued}
}

// acquire waits for a slot. Without an error, release must follow.
func (s *scheduler) acquire(ctx context.Context) error {
	s.mu.Lock()
	if s.free > 0 { // nobody waits
		s.free--
		s.mu.Unlock()
		return nil
	}
	if len(s.waiting) >= s.limit {
		s.mu.Unlock()
		return ErrOverloaded
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		s.leave(turn)
		return ctx.Err()
	}
}

// leave gives up a place in the queue, or the slot where the turn had just come.
func (s *scheduler) leave(turn chan struct{}) {
	s.mu.Lock()
	i := slices.Index(s.waiting, turn)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		s.release()
	}
}

func (s *scheduler) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
