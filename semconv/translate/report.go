package translate

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// A Reason says why something did not simply change its name.
type Reason int

const (
	// NoTarget says that the target vocabulary has no name for it; it was kept.
	NoTarget Reason = iota
	// NotExact says that its value does not fit the type or the unit of the
	// target; it was kept.
	NotExact
	// Ambiguous says that its value may stand for several values of the target;
	// it was kept.
	Ambiguous
	// Narrowed says that the value in the target says less; it was translated
	// and kept as well.
	Narrowed
	// Conflict says that another attribute or series took the place with another
	// value; it was kept.
	Conflict
	// Duplicate says that another attribute says the same under the target's
	// key; it was dropped.
	Duplicate
)

// String returns the reason as words, such as "no target".
func (r Reason) String() string {
	names := [...]string{"no target", "not exact", "ambiguous", "narrowed", "conflict", "duplicate"}
	if r < 0 || int(r) >= len(names) {
		return "unknown"
	}
	return names[r]
}

// A Finding counts one key, event or metric that did not simply change its name.
type Finding struct {
	// Key is the attribute, the event or the metric in the source vocabulary.
	// Keys below a prefix that the vocabulary treats as one are counted under
	// "prefix.*"; a list of messages counts once.
	Key    string
	Reason Reason
	Count  uint64
}

// A Report says what a [Translator] could not simply rename since it was made.
type Report struct {
	// Findings are sorted by key and reason.
	Findings []Finding
	// Overflow counts what came after 500 different findings.
	Overflow uint64
}

const (
	maxFindings = 500
	maxKey      = 256 // bytes of a key in a report
)

// report collects findings.
type report struct {
	mu       sync.Mutex
	counts   map[finding]uint64
	overflow uint64
}

type finding struct {
	key    string
	reason Reason
}

func (r *report) add(key string, reason Reason) {
	if len(key) > maxKey {
		key = strings.ToValidUTF8(key[:maxKey], "")
	}
	f := finding{key, reason}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.counts[f]; !known {
		if len(r.counts) >= maxFindings {
			r.overflow++
			return
		}
		if r.counts == nil {
			r.counts = make(map[finding]uint64)
		}
		f.key = strings.Clone(f.key) // the key may be part of a large buffer
	}
	r.counts[f]++
}

// Report returns what could not simply be renamed so far.
func (t *Translator) Report() Report {
	if t == nil {
		return Report{}
	}
	t.report.mu.Lock()
	defer t.report.mu.Unlock()
	out := Report{Overflow: t.report.overflow}
	for f, n := range t.report.counts {
		out.Findings = append(out.Findings, Finding{f.key, f.reason, n})
	}
	slices.SortFunc(out.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
