package genaitrace

// tokenStats adds up the token clocks of all decode phases of an inference. Times
// are nanoseconds since arrival, valid where count > 0.
type tokenStats struct {
	count        int
	first, last  int64
	reasoning    bool // some tokens were told apart as reasoning
	visible      bool // some were not
	firstVisible int64
	choices      []choiceStats // nil while all are of choice 0
}

func (t *tokenStats) add(s *clockStats) {
	if s.visible > 0 && (!t.visible || s.firstVisible < t.firstVisible) {
		t.visible, t.firstVisible = true, s.firstVisible
	}
	t.reasoning = t.reasoning || s.visible < s.outputs
	if s.choices != nil && t.choices == nil {
		t.choices = []choiceStats{{ticks: t.count, first: t.first, last: t.last}}
	}
	if t.choices != nil {
		t.addChoices(s)
	}
	if t.count == 0 || s.first < t.first {
		t.first = s.first
	}
	t.count += s.ticks
	t.last = max(t.last, s.last)
}

func (t *tokenStats) addChoices(s *clockStats) {
	of := s.choices
	if of == nil {
		of = []choiceStats{{ticks: s.ticks, first: s.first, last: s.last}}
	}
	for i, c := range of {
		if i == len(t.choices) {
			t.choices = append(t.choices, choiceStats{})
		}
		sum := &t.choices[i]
		switch {
		case c.ticks == 0:
		case sum.ticks == 0:
			*sum = c
		default:
			sum.ticks += c.ticks
			sum.first, sum.last = min(sum.first, c.first), max(sum.last, c.last)
		}
	}
}

// perToken is the mean time, in seconds, of a token after the first one of its
// choice. ok is false where no choice has a second token.
func (t *tokenStats) perToken() (mean float64, ok bool) {
	span, tokens := t.last-t.first, t.count-1
	if t.choices != nil {
		span, tokens = 0, 0
		for _, c := range t.choices {
			if c.ticks > 1 {
				span += c.last - c.first
				tokens += c.ticks - 1
			}
		}
	}
	if tokens < 1 {
		return 0, false
	}
	return seconds(span) / float64(tokens), true
}

// firstAnswer is when answer text began, where reasoning was told apart from it.
func (t *tokenStats) firstAnswer() (at int64, ok bool) {
	return t.firstVisible, t.reasoning && t.visible
}
