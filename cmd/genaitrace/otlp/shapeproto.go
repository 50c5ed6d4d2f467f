package otlp

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// damage is what is wrong with a message and where.
type damage struct {
	offset int    // of the field, from the start of the message
	path   string // of the field: resourceSpans[0].scopeSpans[2].spans[7].traceId
	text   string
}

func (d *damage) Error() string {
	if d.path == "" {
		return d.text
	}
	return d.path + ": " + d.text
}

// within puts where the message lies before the path in it.
func (d *damage) within(name string) *damage {
	const longest = 200
	switch {
	case d.path == "":
		d.path = name
	case len(d.path) > longest: // lists in lists
		d.path = name + ".…"
	default:
		d.path = name + "." + d.path
	}
	return d
}

// protoWalk goes through a protobuf message and compares it with its shape.
type protoWalk struct {
	items int  // spans, metrics or log records
	sure  bool // an item was seen that can be of no other signal
}

// walkProto compares data with the shape of a signal.
func walkProto(s signal, data []byte) (protoWalk, *damage) {
	var w protoWalk
	d := w.message(s.envelope(), data, 0, 0)
	return w, d
}

// message checks the message at the offset base of the whole.
func (w *protoWalk) message(id messageID, data []byte, base, depth int) *damage {
	if depth > maxDepth {
		return &damage{offset: base, text: fmt.Sprintf("more than %d messages lie in each other", maxDepth)}
	}
	var seen fieldSet
	for at := 0; at < len(data); {
		num, typ, n := protowire.ConsumeTag(data[at:])
		if n < 0 {
			return &damage{offset: base + at, text: "no field begins here; this is no protobuf or damaged"}
		}
		f := id.field(num)
		if !f.kind.allows(typ) {
			return (&damage{offset: base + at, text: f.kind.mismatch(typ)}).within(f.label(data[:at], num))
		}
		var content []byte
		var size int
		if typ == protowire.BytesType {
			content, size = protowire.ConsumeBytes(data[at+n:])
		} else {
			size = protowire.ConsumeFieldValue(num, typ, data[at+n:])
		}
		if size < 0 {
			return (&damage{offset: base + at, text: "longer than the message that holds it; the message is cut off or damaged"}).within(f.label(data[:at], num))
		}
		end := at + n + size
		if d := w.content(f, content, base+end-len(content), depth); d != nil {
			return d.within(f.label(data[:at], num))
		}
		seen.add(num, typ, len(content))
		at = end
	}
	w.count(id, &seen)
	return nil
}

// content checks what is in a field with a length.
func (w *protoWalk) content(f field, content []byte, base, depth int) *damage {
	switch f.kind {
	case one, many:
		return w.message(f.of, content, base, depth+1)
	case traceID:
		return checkLength(content, base, 16)
	case spanID:
		return checkLength(content, base, 8)
	}
	return nil
}

// checkLength checks an identifier, which may be missing.
func checkLength(content []byte, base, want int) *damage {
	if len(content) == 0 || len(content) == want {
		return nil
	}
	return &damage{offset: base, text: fmt.Sprintf("%d bytes; expected %d", len(content), want)}
}

// fieldSet is what identifies an item: which fields of 8 bytes and of any length it
// has, and how long the first two are.
type fieldSet struct {
	fixed64s, lengths uint32 // by number, one bit each
	first, second     int
}

func (s *fieldSet) add(num protowire.Number, typ protowire.Type, length int) {
	switch {
	case num >= 32:
	case typ == protowire.Fixed64Type:
		s.fixed64s |= 1 << num
	case typ == protowire.BytesType:
		s.lengths |= 1 << num
		switch num {
		case 1:
			s.first = length
		case 2:
			s.second = length
		}
	}
}

// count notes an item. The three signals have one outer shape; their items tell them
// apart. A message that fits the shape of one signal and has one of these cannot be
// of another:
//   - a span has identifiers of 16 and 8 bytes in its fields 1 and 2 and a time in
//     field 7 or 8, where a metric has a message or nothing;
//   - a metric has a name in field 1, where a log record has a time, and its data in
//     one of five fields, and no time;
//   - a log record has a time in field 1 or 11 or an identifier in field 10, where a
//     span has text, a message or a number.
func (w *protoWalk) count(id messageID, s *fieldSet) {
	const (
		spanTimes  = 1<<7 | 1<<8
		metricData = 1<<5 | 1<<7 | 1<<9 | 1<<10 | 1<<11
		logTimes   = 1<<1 | 1<<11
	)
	switch id {
	case msgSpan:
		w.sure = w.sure || s.first == 16 && s.second == 8 && s.fixed64s&spanTimes != 0
	case msgMetric:
		w.sure = w.sure || s.first > 0 && s.lengths&metricData != 0 && s.fixed64s == 0
	case msgLog:
		w.sure = w.sure || s.fixed64s&logTimes != 0 || s.lengths&(1<<10) != 0
	default:
		return
	}
	w.items++
}

// allows reports whether a field of this kind may be encoded as typ. Lists of
// numbers may be packed or not.
func (k kind) allows(typ protowire.Type) bool {
	switch k {
	case unknownField:
		return true
	case removed:
		return false
	case boolean, enum, integer:
		return typ == protowire.VarintType
	case fixed32:
		return typ == protowire.Fixed32Type
	case fixed64, double:
		return typ == protowire.Fixed64Type
	case integers:
		return typ == protowire.VarintType || typ == protowire.BytesType
	case fixed64s, doubles:
		return typ == protowire.Fixed64Type || typ == protowire.BytesType
	}
	return typ == protowire.BytesType
}

func (k kind) mismatch(typ protowire.Type) string {
	if k == removed {
		return "a field that OTLP removed before version 1.0"
	}
	return fmt.Sprintf("protobuf wire type %d, which this field cannot have", typ)
}

// label names a field and, in a list, its place, which the fields before it tell.
func (f field) label(before []byte, num protowire.Number) string {
	if f.name == "" {
		return "field " + strconv.Itoa(int(num))
	}
	if f.kind != many {
		return f.name
	}
	index := 0
	for len(before) > 0 {
		n, _, size := protowire.ConsumeField(before)
		if size < 0 {
			break
		}
		if n == num {
			index++
		}
		before = before[size:]
	}
	return f.name + "[" + strconv.Itoa(index) + "]"
}

// signalOf finds out what the protobuf message carries. A message without spans,
// metrics and log records is ok for every signal; it counts as traces.
func signalOf(data []byte) (signal, *damage) {
	var furthest *damage
	var fit []signal
	for s := range signal(signals) {
		w, d := walkProto(s, data)
		switch {
		case d == nil && (w.sure || w.items == 0):
			return s, nil
		case d == nil:
			fit = append(fit, s)
		case furthest == nil || d.offset > furthest.offset:
			furthest = d
		}
	}
	switch len(fit) {
	case 1:
		return fit[0], nil
	case 0:
		return 0, furthest
	}
	return 0, &damage{text: fmt.Sprintf("cannot tell whether this holds %s or %s: no span has identifiers and times, no metric a name, no log record a time", fit[0], fit[1])}
}
