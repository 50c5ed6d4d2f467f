package sampling

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// A threshold is the T of consistent probability sampling: a trace of randomness
// r is kept if r >= T.
// https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/
type threshold = uint64

const (
	always threshold = 0
	never  threshold = 1 << 56
)

// thresholdOf returns the threshold that keeps a share p of all traces.
func thresholdOf(p float64) threshold {
	switch {
	case p >= 1:
		return always
	case p > 0:
		return min(never, threshold(math.Round((1-p)*float64(never))))
	default: // and NaN
		return never
	}
}

// probabilityOf is the inverse of thresholdOf.
func probabilityOf(t threshold) float64 {
	return float64(never-min(t, never)) / float64(never)
}

// appendThreshold appends the hexadecimal digits of t, which must be below never,
// without trailing zeros.
func appendThreshold(b []byte, t threshold) []byte {
	if t == always {
		return append(b, '0')
	}
	const digits = "0123456789abcdef"
	for shift := 52; shift >= 0 && t != 0; shift -= 4 {
		b = append(b, digits[t>>shift&0xf])
		t &= 1<<shift - 1
	}
	return b
}

// parseThreshold reads 1 to 14 hexadecimal digits; trailing zeros may be left out.
func parseThreshold(s string) (t threshold, ok bool) {
	if len(s) < 1 || len(s) > 14 || !isHex(s) {
		return 0, false
	}
	t, err := strconv.ParseUint(s, 16, 64)
	return t << (4 * (14 - len(s))), err == nil
}

// randomness returns the R of a trace: the rv of the "ot" member where it is
// valid, else the 56 lowest bits of the trace ID.
func randomness(id trace.TraceID, ot string) uint64 {
	if rv := field(ot, "rv"); len(rv) == 14 && isHex(rv) {
		if r, err := strconv.ParseUint(rv, 16, 64); err == nil {
			return r
		}
	}
	return binary.BigEndian.Uint64(id[8:]) & (1<<56 - 1)
}

// isHex guards against what ParseUint takes besides digits.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Members of the tracestate that are read and written here. Both hold k:v pairs
// joined by semicolons; pairs that are not known are passed on.
const (
	otMember   = "ot"    // OpenTelemetry's own: th and rv
	ourMember  = "genai" // of this module; package propagation keeps its mark there
	keptField  = "k"     // k:1: the trace is certain to be kept
	startField = "t"     // t:<milliseconds of Unix time, hexadecimal>: when the request began
	layerField = "l"     // l:<threshold>: the spans below belong to a layer

	maxMember  = 256 // characters of a value
	maxMembers = 32  // of a tracestate
)

// field returns the value of key in a list of k:v pairs, empty where it is not
// there. It allocates nothing.
func field(list, key string) string {
	for list != "" {
		var pair string
		pair, list, _ = strings.Cut(list, ";")
		if name, value, ok := strings.Cut(pair, ":"); ok && name == key {
			return value
		}
	}
	return ""
}

// withField returns list with key set to value and put first, or without key where
// value is empty.
func withField(list, key, value string) string {
	var b strings.Builder
	if value != "" {
		b.WriteString(key + ":" + value)
	}
	for pair := range strings.SplitSeq(list, ";") {
		if name, _, _ := strings.Cut(pair, ":"); pair == "" || name == key {
			continue
		}
		if b.Len()+1+len(pair) > maxMember {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(pair)
	}
	// A value must not end in a space, which the pair before the last might.
	return strings.TrimRight(b.String(), " ")
}

// setField returns state with a pair of one of its members set, or removed where
// value is empty. It returns state itself where nothing changes.
func setField(state trace.TraceState, member, key, value string) trace.TraceState {
	list := state.Get(member)
	if field(list, key) == value {
		return state
	}
	list = withField(list, key, value)
	if list == "" {
		return state.Delete(member)
	}
	changed, err := state.Insert(member, list)
	if err != nil { // the member held something that cannot be written back
		return state
	}
	return changed
}

// maxTold is how long ago a caller may say that the request began. What is longer
// ago, or yet to come, is a wrong clock or a session rather than a request.
const maxTold = time.Hour

// startedAt returns when the request began: start, or what caller says if that is
// believable.
func startedAt(caller trace.TraceState, start time.Time) time.Time {
	ms, err := strconv.ParseInt(field(caller.Get(ourMember), startField), 16, 64)
	if err != nil {
		return start
	}
	if told := time.UnixMilli(ms); !told.After(start) && start.Sub(told) <= maxTold {
		return told
	}
	return start
}

// withStart adds to the state of a local root that the request begins now, unless it
// began before or the span is none of a request.
func withStart(state trace.TraceState, kind trace.SpanKind) trace.TraceState {
	switch kind {
	case trace.SpanKindServer, trace.SpanKindClient, trace.SpanKindConsumer:
	default:
		return state
	}
	ours := state.Get(ourMember)
	if field(ours, startField) != "" || ours == "" && state.Len() >= maxMembers {
		return state // a hint is not worth another's member
	}
	var digits [maxMember + 24]byte
	list := append(digits[:0], startField+":"...)
	list = strconv.AppendInt(list, time.Now().UnixMilli(), 16)
	if ours != "" {
		list = append(append(list, ';'), ours...)
	}
	if len(list) > maxMember {
		return state
	}
	changed, err := state.Insert(ourMember, string(list))
	if err != nil { // the member held something that cannot be written back
		return state
	}
	return changed
}

// setThreshold writes how likely the spans that carry state were kept, or, for
// never, that it is not known.
func setThreshold(state trace.TraceState, t threshold) trace.TraceState {
	if t >= never {
		return setField(state, otMember, "th", "")
	}
	var digits [14]byte
	return setField(state, otMember, "th", string(appendThreshold(digits[:0], t)))
}
