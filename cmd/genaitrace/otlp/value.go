package otlp

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
)

// decoder turns pdata into what a capture holds. It shares what repeats, within a
// message and between them. It must not be used concurrently.
type decoder struct {
	texts     map[string]string
	resources map[group]*capture.Resource
	scopes    map[group]*capture.Scope
	dropped   map[string]int // what was not kept, by reason
}

// group identifies a resource or a scope by its content.
type group struct {
	attributes          attribute.Distinct
	name, version, urls string
}

// Bounds of what a decoder shares; beyond them it starts anew.
const (
	maxTexts  = 4096
	maxGroups = 1024
	maxText   = 128 // bytes of a text that is worth sharing
)

func newDecoder() *decoder {
	return &decoder{
		texts:     make(map[string]string),
		resources: make(map[group]*capture.Resource),
		scopes:    make(map[group]*capture.Scope),
		dropped:   make(map[string]int),
	}
}

// drop counts something that is not kept.
func (d *decoder) drop(reason string) { d.dropped[reason]++ }

// droppedTotal is how much was dropped so far.
func (d *decoder) droppedTotal() int {
	total := 0
	for _, n := range d.dropped {
		total += n
	}
	return total
}

// text makes s valid UTF-8, which OTLP requires and pdata does not check.
func (d *decoder) text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// shared is text for what repeats, such as keys: of equal texts one is kept.
func (d *decoder) shared(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > maxText {
		return d.text(s)
	}
	if one, ok := d.texts[s]; ok {
		return one
	}
	if len(d.texts) >= maxTexts {
		clear(d.texts)
	}
	valid := d.text(s)
	d.texts[s] = valid
	return valid
}

func (d *decoder) resource(r pcommon.Resource, schemaURL string) *capture.Resource {
	if r.Attributes().Len() == 0 && schemaURL == "" {
		return nil
	}
	got := &capture.Resource{Attributes: d.attributes(r.Attributes()), SchemaURL: d.shared(schemaURL)}
	key := group{attributes: distinct(got.Attributes), urls: schemaURL}
	return keep(d.resources, key, got)
}

func (d *decoder) scope(s pcommon.InstrumentationScope, schemaURL string) *capture.Scope {
	if s.Name() == "" && s.Version() == "" && s.Attributes().Len() == 0 && schemaURL == "" {
		return nil
	}
	got := &capture.Scope{
		Name:       d.shared(s.Name()),
		Version:    d.shared(s.Version()),
		Attributes: d.attributes(s.Attributes()),
		SchemaURL:  d.shared(schemaURL),
	}
	key := group{attributes: distinct(got.Attributes), name: got.Name, version: got.Version, urls: schemaURL}
	return keep(d.scopes, key, got)
}

func keep[T any](all map[group]*T, key group, got *T) *T {
	if one, ok := all[key]; ok {
		return one
	}
	if len(all) >= maxGroups {
		clear(all)
	}
	all[key] = got
	return got
}

// distinct identifies attributes by their content; their order does not count.
func distinct(a capture.Attributes) attribute.Distinct {
	// NewSet sorts in place, and the order of a is its own.
	set := attribute.NewSet(append([]attribute.KeyValue(nil), a...)...)
	return set.Equivalent()
}

func (d *decoder) attributes(m pcommon.Map) capture.Attributes {
	if m.Len() == 0 {
		return nil
	}
	attrs := make(capture.Attributes, 0, m.Len())
	for k, v := range m.All() {
		attrs = append(attrs, attribute.KeyValue{Key: attribute.Key(d.shared(k)), Value: d.value(v)})
	}
	return attrs
}

func (d *decoder) value(v pcommon.Value) attribute.Value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return attribute.StringValue(d.text(v.Str()))
	case pcommon.ValueTypeBool:
		return attribute.BoolValue(v.Bool())
	case pcommon.ValueTypeInt:
		return attribute.Int64Value(v.Int())
	case pcommon.ValueTypeDouble:
		return attribute.Float64Value(v.Double())
	case pcommon.ValueTypeBytes:
		return attribute.ByteSliceValue(v.Bytes().AsRaw())
	case pcommon.ValueTypeSlice:
		return d.list(v.Slice())
	case pcommon.ValueTypeMap:
		return attribute.MapValue(d.attributes(v.Map())...)
	}
	return attribute.Value{}
}

// list returns a list of one type as such. OTLP does not say the type of a list, so
// an empty one has none.
func (d *decoder) list(s pcommon.Slice) attribute.Value {
	switch uniform(s) {
	case pcommon.ValueTypeStr:
		return attribute.StringSliceValue(elements(s, func(v pcommon.Value) string { return d.text(v.Str()) }))
	case pcommon.ValueTypeBool:
		return attribute.BoolSliceValue(elements(s, pcommon.Value.Bool))
	case pcommon.ValueTypeInt:
		return attribute.Int64SliceValue(elements(s, pcommon.Value.Int))
	case pcommon.ValueTypeDouble:
		return attribute.Float64SliceValue(elements(s, pcommon.Value.Double))
	}
	return attribute.SliceValue(elements(s, d.value)...)
}

// uniform returns the type that all elements have, and the empty one otherwise.
func uniform(s pcommon.Slice) pcommon.ValueType {
	if s.Len() == 0 {
		return pcommon.ValueTypeEmpty
	}
	first := s.At(0).Type()
	for i := 1; i < s.Len(); i++ {
		if s.At(i).Type() != first {
			return pcommon.ValueTypeEmpty
		}
	}
	return first
}

func elements[T any](s pcommon.Slice, get func(pcommon.Value) T) []T {
	all := make([]T, s.Len())
	for i := range all {
		all[i] = get(s.At(i))
	}
	return all
}

// putAttributes writes attributes. Of a key that is there twice, the last value
// counts.
func putAttributes(m pcommon.Map, attrs capture.Attributes) {
	m.EnsureCapacity(len(attrs))
	for _, kv := range attrs {
		putValue(m.PutEmpty(string(kv.Key)), kv.Value)
	}
}

func putValue(to pcommon.Value, v attribute.Value) {
	switch v.Type() {
	case attribute.STRING:
		to.SetStr(v.AsString())
	case attribute.BOOL:
		to.SetBool(v.AsBool())
	case attribute.INT64:
		to.SetInt(v.AsInt64())
	case attribute.FLOAT64:
		to.SetDouble(v.AsFloat64())
	case attribute.BYTESLICE:
		to.SetEmptyBytes().FromRaw(v.AsByteSlice())
	case attribute.STRINGSLICE:
		putList(to, v.AsStringSlice(), pcommon.Value.SetStr)
	case attribute.BOOLSLICE:
		putList(to, v.AsBoolSlice(), pcommon.Value.SetBool)
	case attribute.INT64SLICE:
		putList(to, v.AsInt64Slice(), pcommon.Value.SetInt)
	case attribute.FLOAT64SLICE:
		putList(to, v.AsFloat64Slice(), pcommon.Value.SetDouble)
	case attribute.SLICE:
		putList(to, v.AsSlice(), putValue)
	case attribute.MAP:
		putAttributes(to.SetEmptyMap(), v.AsMap())
	}
}

func putList[T any](to pcommon.Value, all []T, set func(pcommon.Value, T)) {
	list := to.SetEmptySlice()
	list.EnsureCapacity(len(all))
	for _, v := range all {
		set(list.AppendEmpty(), v)
	}
}

// grouping writes what belongs to one resource, and in it to one scope, together.
type grouping[R, S any] struct {
	resources   map[*capture.Resource]R
	scopes      map[place]S
	newResource func(*capture.Resource) R
	newScope    func(R, *capture.Scope) S
}

type place struct {
	resource *capture.Resource
	scope    *capture.Scope
}

func newGrouping[R, S any](newResource func(*capture.Resource) R, newScope func(R, *capture.Scope) S) grouping[R, S] {
	return grouping[R, S]{make(map[*capture.Resource]R), make(map[place]S), newResource, newScope}
}

func (g grouping[R, S]) scope(r *capture.Resource, s *capture.Scope) S {
	at := place{r, s}
	if ss, ok := g.scopes[at]; ok {
		return ss
	}
	rs, ok := g.resources[r]
	if !ok {
		rs = g.newResource(r)
		g.resources[r] = rs
	}
	ss := g.newScope(rs, s)
	g.scopes[at] = ss
	return ss
}

func putResource(to pcommon.Resource, setURL func(string), r *capture.Resource) {
	if r == nil {
		return
	}
	putAttributes(to.Attributes(), r.Attributes)
	setURL(r.SchemaURL)
}

func putScope(to pcommon.InstrumentationScope, setURL func(string), s *capture.Scope) {
	if s == nil {
		return
	}
	to.SetName(s.Name)
	to.SetVersion(s.Version)
	putAttributes(to.Attributes(), s.Attributes)
	setURL(s.SchemaURL)
}

// timeOf returns the time of t, and none where t is zero. It also holds what lies
// beyond the year 2262, where the nanoseconds leave an int64.
func timeOf(t pcommon.Timestamp) time.Time {
	if t == 0 {
		return time.Time{}
	}
	const second = uint64(time.Second)
	return time.Unix(int64(uint64(t)/second), int64(uint64(t)%second)).UTC()
}

// timestamp is the opposite of timeOf. A time before 1970, which OTLP cannot say, is
// unknown.
func timestamp(t time.Time) pcommon.Timestamp {
	const latest = math.MaxUint64 / uint64(time.Second)
	s := t.Unix()
	if s < 0 || uint64(s) >= latest {
		return 0
	}
	return pcommon.Timestamp(uint64(s)*uint64(time.Second) + uint64(t.Nanosecond()))
}

// uint32Of bounds a count to what OTLP holds.
func uint32Of(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
