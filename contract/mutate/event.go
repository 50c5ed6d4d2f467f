package mutate

import (
	"slices"

	"github.com/genaitrace/otelgenai/capture"
)

// An eventFault changes a span, which is a copy, at one of its events.
type eventFault func(s *capture.Span, at int) (why string)

var eventFaults = []struct {
	operator Operator
	put      eventFault
}{
	{DropEvent, func(s *capture.Span, at int) string {
		s.Events = slices.Delete(s.Events, at, at+1)
		return ""
	}},
	{DuplicateEvent, func(s *capture.Span, at int) string {
		e := s.Events[at]
		e.Attributes = slices.Clone(e.Attributes)
		s.Events = slices.Insert(s.Events, at+1, e)
		return ""
	}},
	{RenameEvent, func(s *capture.Span, at int) string {
		s.Events[at].Name = rename(s.Events[at].Name)
		return ""
	}},
	{SwapEvents, func(s *capture.Span, at int) string {
		next := nextEvent(s.Events, at)
		if next < 0 {
			return "no event follows"
		}
		a, b := &s.Events[at], &s.Events[next]
		a.Time, b.Time = b.Time, a.Time
		*a, *b = *b, *a
		return ""
	}},
	{EventBeforeStart, func(s *capture.Span, at int) string {
		s.Events[at].Time = s.Start.Add(-off)
		return ""
	}},
	{EventAfterEnd, func(s *capture.Span, at int) string {
		if !s.Ended() {
			return notEnded
		}
		s.Events[at].Time = s.End.Add(off)
		return ""
	}},
}

// nextEvent returns the event that follows in time, of those at one moment in the
// list; −1 where there is none.
func nextEvent(events []capture.Event, at int) int {
	next := -1
	for i := range events {
		if i == at || events[i].Time.Before(events[at].Time) || events[i].Time.Equal(events[at].Time) && i < at {
			continue
		}
		if next < 0 || events[i].Time.Before(events[next].Time) {
			next = i
		}
	}
	return next
}
