package propagation

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Member is what this library's own tracestate member says of a trace. Every
// process below whoever wrote it reads the same, because samplers hand the
// tracestate of a parent on. It holds nothing of the request's content, and it
// never goes to third parties.
//
// The member has the form of OpenTelemetry's own member "ot": fields k:v joined
// by semicolons (https://opentelemetry.io/docs/specs/otel/trace/tracestate-handling/).
// Fields that this version does not know are passed on.
//
//	tracestate: genai=c:1;t:199bd0c4e10;m:qwen2.5-7b-instruct;p:rag-v3,ot=th:8
type Member struct {
	// Caller is the caller mark, see [ContextWithCallerMark].
	Caller bool
	// Start is when the request began, at the first span that told it, in
	// milliseconds of Unix time: a process further down knows from it how long the
	// request has taken, at least. The sampler of sampling.Tail writes it. Zero if
	// unknown.
	Start time.Time
	// Keep says that a process above keeps this trace for a reason that samplers
	// further down cannot see, such as an error that was retried.
	Keep bool
	// ModelID and PipelineID name what serves the request: at most 96 bytes each
	// on the wire, where other characters than those that a tracestate holds are
	// percent-encoded. A longer one is left out. Empty if unknown.
	ModelID, PipelineID string
}

const (
	memberKey     = "genai"
	callerField   = "c"
	samplingField = "s"
	keepField     = "k"
	startField    = "t"
	modelField    = "m"
	pipelineField = "p"

	maxName = 96 // bytes of a model or pipeline on the wire
)

// MemberOf returns what sc, or a span context that it descends from in this
// trace, says in the library's tracestate member. What is absent or unreadable
// is zero.
func MemberOf(sc trace.SpanContext) Member {
	var m Member
	seen := fieldSet(0)
	for rest := sc.TraceState().Get(memberKey); rest != ""; {
		var key, value string
		key, value, rest = cutField(rest)
		if !seen.first(key) {
			continue
		}
		switch key {
		case callerField:
			m.Caller = value == "1"
		case keepField:
			m.Keep = value == "1"
		case startField:
			m.Start = parseStart(value)
		case modelField:
			m.ModelID = unescapeName(value)
		case pipelineField:
			m.PipelineID = unescapeName(value)
		}
	}
	return m
}

// ContextWithMember returns ctx with a span context whose tracestate says m, in
// front of the other members, which are kept but for the right-most if there
// are 32 already. What m leaves zero stays as the tracestate has it. Without a
// valid span context ctx is returned as it is.
//
// Pass the result to Inject and to nothing else: its span is not the span of
// ctx, records nothing, and is there to carry the span context only.
func ContextWithMember(ctx context.Context, m Member) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return ctx
	}
	before := sc.TraceState().Get(memberKey)
	after := m.over(before)
	if after == before || after == "" {
		return ctx
	}
	state, err := sc.TraceState().Insert(memberKey, after)
	if err != nil {
		return ctx
	}
	carried := carriedSpan{sc: sc.WithTraceState(state)}
	carried.child, _ = trace.SpanFromContext(ctx).(childSpan)
	return trace.ContextWithSpan(ctx, carried)
}

// A carriedSpan carries a span context to Inject, and the parent of the span that it
// stands for.
type carriedSpan struct {
	noop.Span
	sc    trace.SpanContext
	child childSpan // nil if the parent is unknown
}

// A childSpan knows its parent, as spans of the SDK do.
type childSpan interface{ Parent() trace.SpanContext }

// SpanContext returns what is carried.
func (s carriedSpan) SpanContext() trace.SpanContext { return s.sc }

// Parent returns the span context of the parent, invalid if unknown.
func (s carriedSpan) Parent() trace.SpanContext {
	if s.child == nil {
		return trace.SpanContext{}
	}
	return s.child.Parent()
}

// ContextWithCallerMark returns ctx with a span context that tells the callee
// that its caller reports the token usage of this request. Backends add up
// gen_ai.usage.* over all spans, so the callee must then write its own counts
// under other keys.
//
// It is [ContextWithMember] of Member{Caller: true}, but leaves a mark that is
// already there where it is.
func ContextWithCallerMark(ctx context.Context) context.Context {
	if HasCallerMark(trace.SpanContextFromContext(ctx)) {
		return ctx
	}
	return ContextWithMember(ctx, Member{Caller: true})
}

// HasCallerMark reports whether sc, or a span context that it descends from in
// this trace, was marked by [ContextWithCallerMark]. A span started below a
// marked remote parent has the mark, because samplers hand the tracestate of
// the parent on. It allocates nothing.
func HasCallerMark(sc trace.SpanContext) bool {
	for rest := sc.TraceState().Get(memberKey); rest != ""; {
		var key, value string
		if key, value, rest = cutField(rest); key == callerField {
			return value == "1"
		}
	}
	return false
}

// over returns the member's value with the fields of m in front of those that
// before has beside them, as many as there is room for.
func (m Member) over(before string) string {
	var stack [maxValue]byte
	buf, seen := stack[:0], fieldSet(0)
	add := func(key, value string) {
		size := len(key) + 1 + len(value)
		if len(buf) > 0 {
			size++
		}
		if !seen.first(key) || value == "" || len(buf)+size > maxValue {
			return
		}
		if len(buf) > 0 {
			buf = append(buf, ';')
		}
		buf = append(append(append(buf, key...), ':'), value...)
	}
	if m.Caller {
		add(callerField, "1")
	}
	if m.Keep {
		add(keepField, "1")
	}
	if !m.Start.IsZero() {
		add(startField, formatStart(m.Start))
	}
	if m.ModelID != "" {
		add(modelField, escapeName(m.ModelID))
	}
	if m.PipelineID != "" {
		add(pipelineField, escapeName(m.PipelineID))
	}
	for before != "" {
		var key, value string
		key, value, before = cutField(before)
		add(key, value)
	}
	// A value must not end in a space, which the field before the last might.
	return strings.TrimRight(string(buf), " ")
}

// fieldSet notes which of the known fields were seen, of which the first counts.
type fieldSet uint8

func (s *fieldSet) first(key string) bool {
	i := -1
	if len(key) == 1 {
		i = strings.Index(callerField+samplingField+keepField+startField+modelField+pipelineField, key)
	}
	if i < 0 {
		return true
	}
	seen := *s&(1<<i) != 0
	*s |= 1 << i
	return !seen
}

// cutField cuts the first field off a member's value.
func cutField(value string) (key, val, rest string) {
	field := value
	if i := strings.IndexByte(value, ';'); i >= 0 {
		field, rest = value[:i], value[i+1:]
	}
	if i := strings.IndexByte(field, ':'); i >= 0 {
		return field[:i], field[i+1:], rest
	}
	return field, "", rest
}

// maxStart is the end of the year 9999; what is behind it is no time.
const maxStart = 253_402_300_799_999

func formatStart(t time.Time) string {
	ms := t.UnixMilli()
	if ms <= 0 || ms > maxStart {
		return ""
	}
	return strconv.FormatInt(ms, 16)
}

func parseStart(hex string) time.Time {
	ms, err := strconv.ParseInt(hex, 16, 64)
	if err != nil || ms <= 0 || ms > maxStart {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// escapeName returns name with what a field cannot hold percent-encoded, or ""
// if that is too long: a name that was cut would be another name.
func escapeName(name string) string {
	if len(name) > maxName {
		return ""
	}
	plain := true
	for i := range len(name) {
		plain = plain && isNameChar(name[i])
	}
	if plain {
		return name
	}
	const upper = "0123456789ABCDEF"
	buf := make([]byte, 0, maxName)
	for i := range len(name) {
		if c := name[i]; isNameChar(c) {
			buf = append(buf, c)
		} else {
			buf = append(buf, '%', upper[c>>4], upper[c&0xf])
		}
	}
	if len(buf) > maxName {
		return ""
	}
	return string(buf)
}

// unescapeName returns "" for what nobody wrote.
func unescapeName(value string) string {
	if len(value) > maxName {
		return ""
	}
	if !strings.Contains(value, "%") {
		return value
	}
	name, err := url.PathUnescape(value)
	if err != nil || !utf8.ValidString(name) {
		return ""
	}
	return name
}

func isNameChar(c byte) bool {
	return c > ' ' && c <= '~' && c != ',' && c != '=' && c != ';' && c != '%'
}

// The sampling state of a caller that leaves no span of its own travels in our
// member, because a traceparent cannot say "deferred":
//
//	genai=s:d-0ba902b7
//
// with the last digits of the span ID that it is said of. A process that does
// not know our member passes it on, but writes a span ID of its own, so that
// what is no longer true is told from what is.
const hintLen = len("d-0ba902b7")

var hintLetters = [...]byte{SamplingDeferred: 'd', SamplingDenied: 'n', SamplingDebug: 'b'}

// withHint returns members with our own one in front, saying s beside as many of its
// fields as there is room for, unless s is what the flags say anyway.
func withHint(members []stateMember, s Sampling, span trace.SpanID) []stateMember {
	if s == SamplingDecided {
		return members
	}
	digits := span.String()
	value := samplingField + ":" + string(hintLetters[s]) + "-" + digits[len(digits)-8:]
	all := make([]stateMember, 1, len(members)+1)
	for _, m := range members {
		if m.key != memberKey {
			all = append(all, m)
			continue
		}
		for field := range strings.SplitSeq(m.value, ";") {
			if len(value)+1+len(field) <= maxValue {
				value += ";" + field
			}
		}
	}
	all[0] = stateMember{memberKey, strings.TrimRight(value, " ")}
	return all
}

// takeHint removes the sampling state from our member, and returns it if it was
// said of this span.
func (l *memberList) takeHint(span trace.SpanID) (hint Sampling, found bool) {
	for i := range l.n {
		if m := &l.array[i]; m.key == memberKey && hasField(m.value, samplingField) {
			var said string
			if m.value, said = withoutField(m.value, samplingField); m.value == "" {
				l.n = i + copy(l.array[i:], l.array[i+1:l.n])
			}
			return parseHint(said, span), true
		}
	}
	return SamplingDecided, false
}

func hasField(value, name string) bool {
	for value != "" {
		var key string
		if key, _, value = cutField(value); key == name {
			return true
		}
	}
	return false
}

// withoutField returns a member's value without a field, and what the first such
// field said.
func withoutField(value, name string) (rest, said string) {
	kept := make([]string, 0, 8)
	found := false
	for field := range strings.SplitSeq(value, ";") {
		switch key, val, _ := cutField(field); {
		case key != name:
			kept = append(kept, field)
		case !found:
			said, found = val, true
		}
	}
	return strings.TrimRight(strings.Join(kept, ";"), " "), said
}

func parseHint(value string, span trace.SpanID) Sampling {
	var digits [4]byte
	if len(value) != hintLen || value[1] != '-' || !decodeHex(digits[:], value[2:]) ||
		[4]byte(span[4:]) != digits {
		return SamplingDecided
	}
	for s, letter := range hintLetters {
		if letter == value[0] && letter != 0 {
			return Sampling(s)
		}
	}
	return SamplingDecided
}
