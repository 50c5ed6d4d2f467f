package propagation

import (
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// maxMembers is the number of members a tracestate may have.
	maxMembers = 32
	// maxKey and maxValue are the characters of a key and of a value.
	maxKey, maxValue = 256, 256
	// maxListLen is the length of the longest tracestate. A longer one has too
	// many members, or is padded, and is not even looked at.
	maxListLen = maxMembers*(maxKey+1+maxValue+1) - 1
	// longMember is the length above which members are the first to go where
	// there is no room for all.
	longMember = 128
)

// stateMember is a member of a tracestate.
type stateMember struct{ key, value string }

func (m stateMember) size() int { return len(m.key) + 1 + len(m.value) }

// memberList is a tracestate of at most 32 members, without allocation.
type memberList struct {
	array [maxMembers]stateMember
	n     int
	clean bool // nothing was left out, so that the text is the list
	level int  // 1, or 2 if a key follows the grammar of Level 2 alone
}

func (l *memberList) members() []stateMember { return l.array[:l.n] }

// add appends the members of one header field, of which the left-most of several
// with the same key counts. It reports false if one is no member or there are
// more than 32.
func (l *memberList) add(field string) bool {
	for field != "" {
		text := field
		if i := strings.IndexByte(field, ','); i >= 0 {
			text, field = field[:i], field[i+1:]
		} else {
			field = ""
		}
		if text = trimOWS(text); text == "" {
			l.clean = false
			continue
		}
		i := strings.IndexByte(text, '=')
		if i < 0 || !isStateValue(text[i+1:]) {
			return false
		}
		key := text[:i]
		level := keyLevel(key)
		if level == 0 {
			return false
		}
		if l.has(key) {
			l.clean = false
			continue
		}
		if l.n == maxMembers {
			return false
		}
		l.array[l.n] = stateMember{key, text[i+1:]}
		l.n++
		l.level = max(l.level, level)
	}
	return true
}

func (l *memberList) has(key string) bool {
	for i := range l.n {
		if l.array[i].key == key {
			return true
		}
	}
	return false
}

// keyLevel returns the lowest level of the specification whose grammar key
// follows, or 0. Level 1 has a letter first, or a tenant of at most 241
// characters, one "@" and a system of at most 14.
func keyLevel(key string) int {
	if key == "" || len(key) > maxKey || !isStateKeyStart(key[0]) {
		return 0
	}
	level, at := 1, -1
	for i := range len(key) {
		switch c := key[i]; {
		case isStateKeyStart(c), c == '_', c == '-', c == '*', c == '/':
		case c != '@':
			return 0
		case at >= 0:
			level = 2
		default:
			at = i
		}
	}
	system := key[at+1:]
	if system == "" || system[0] < 'a' || at >= 0 && (at > 241 || len(system) > 14) {
		level = 2
	}
	return level
}

func isStateKeyStart(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// isStateValue reports whether s, without space at its end, is a value.
func isStateValue(s string) bool {
	if s == "" || len(s) > maxValue {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == ',' || c == '=' {
			return false
		}
	}
	return true
}

// readTraceState reads the tracestate of a span context whose IDs are known.
func readTraceState(carrier propagation.TextMapCarrier, cfg *trace.SpanContextConfig, r *remote) {
	one, several := fieldsOf(carrier, tracestateKey)
	if one == "" && several == nil {
		return
	}
	l := memberList{clean: several == nil}
	if !l.read(one, several) {
		return
	}
	if hint, found := l.takeHint(cfg.SpanID); found {
		l.clean = false
		if hint != SamplingDebug || cfg.TraceFlags.IsSampled() {
			r.sampling = hint
		}
	}
	cfg.TraceState = l.traceState(one)
	if l.level == 2 {
		r.hidden = append([]stateMember(nil), l.members()...)
	}
}

// traceState returns the members of Level 1, where text is the list if it is clean.
// What keyLevel and isStateValue let pass, trace.TraceState takes too. One or two
// members are cheaper to insert than to parse again.
func (l *memberList) traceState(text string) (state trace.TraceState) {
	if l.level == 1 && l.n <= 2 {
		for i := l.n - 1; i >= 0; i-- {
			state, _ = state.Insert(l.array[i].key, l.array[i].value)
		}
		return state
	}
	if !l.clean || l.level == 2 {
		text = joinMembers(l.members(), 1)
	}
	state, _ = trace.ParseTraceState(text)
	return state
}

func (l *memberList) read(one string, several []string) bool {
	if several == nil {
		return len(one) <= maxListLen && l.add(one)
	}
	size := 0
	for _, field := range several {
		if size += len(field) + 1; size > maxListLen+1 || !l.add(field) {
			return false
		}
	}
	return true
}

// joinMembers returns the members up to the given level as a list.
func joinMembers(members []stateMember, level int) string {
	size := 0
	for _, m := range members {
		size += m.size() + 1
	}
	var b strings.Builder
	b.Grow(size)
	for _, m := range members {
		if level == 1 && keyLevel(m.key) == 2 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(m.key)
		b.WriteByte('=')
		b.WriteString(m.value)
	}
	return b.String()
}

// rebuildTraceState puts the tracestate together where the span context does not
// say all of it, or says more than there is room for.
func rebuildTraceState(o *outgoing) string {
	members := make([]stateMember, 0, maxMembers)
	o.sc.TraceState().Walk(func(key, value string) bool {
		members = append(members, stateMember{key, value})
		return true
	})
	if o.st != nil && o.st.hidden != nil {
		members = reveal(members, o.st.hidden)
	}
	members = withHint(members, o.sampling, o.sc.SpanID())
	if len(members) > maxMembers {
		o.shed += len(members) - maxMembers
		members = members[:maxMembers]
	}
	if o.room > 0 {
		before := len(members)
		members = shedMembers(members, o.room)
		o.shed += before - len(members)
	}
	return joinMembers(members, 2)
}

// reveal returns the current members with those of the original list among them
// that trace.TraceState could not hold. Members that are new or changed stand in
// front; each hidden one stays before the unchanged one that it stood before.
func reveal(current, original []stateMember) []stateMember {
	all := make([]stateMember, 0, len(current)+len(original))
	hiddenUpTo := func(end int) {
		for ; end > 0 && len(original) > 0; end-- {
			if keyLevel(original[0].key) == 2 {
				all = append(all, original[0])
			}
			original = original[1:]
		}
	}
	for _, m := range current {
		for i, o := range original {
			if o == m {
				hiddenUpTo(i)
				break
			}
		}
		all = append(all, m)
	}
	hiddenUpTo(len(original))
	return all
}

// shedMembers returns what fits into size characters. Whole members go: first
// the long ones, then the others, each from the right, as the specification
// says. Our own stays, which is short.
func shedMembers(members []stateMember, size int) []stateMember {
	total := -1
	for _, m := range members {
		total += m.size() + 1
	}
	for _, limit := range [...]int{longMember, 0} {
		for i := len(members) - 1; i >= 0 && total > size; i-- {
			if m := members[i]; m.size() > limit && m.key != memberKey {
				total -= m.size() + 1
				members = append(members[:i], members[i+1:]...)
			}
		}
	}
	if total > size {
		return nil
	}
	return members
}
