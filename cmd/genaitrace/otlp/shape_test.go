package otlp

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/genaitrace/otelgenai/capture"
)

// later lists what OTLP has for profiles only.
var later = map[protoreflect.FullName]bool{
	"opentelemetry.proto.common.v1.KeyValue.key_strindex":          true,
	"opentelemetry.proto.common.v1.AnyValue.string_value_strindex": true,
}

func TestTheShapesAreThoseOfThePublishedProtocol(t *testing.T) {
	seen := make(map[messageID]bool)
	for s, published := range map[signal]protoreflect.MessageDescriptor{
		traces:  (*collectortrace.ExportTraceServiceRequest)(nil).ProtoReflect().Descriptor(),
		metrics: (*collectormetrics.ExportMetricsServiceRequest)(nil).ProtoReflect().Descriptor(),
		logs:    (*collectorlogs.ExportLogsServiceRequest)(nil).ProtoReflect().Descriptor(),
	} {
		compareShape(t, s.envelope(), published, seen)
	}
	assert.Len(t, seen, len(messages), "every message is used")
}

func compareShape(t *testing.T, id messageID, published protoreflect.MessageDescriptor, seen map[messageID]bool) {
	t.Helper()
	if seen[id] {
		return
	}
	seen[id] = true
	fields := published.Fields()
	for i := range fields.Len() {
		p := fields.Get(i)
		if later[p.FullName()] {
			continue
		}
		f := id.field(p.Number())
		assert.Equal(t, p.JSONName(), f.name, p.FullName())
		assert.Equal(t, publishedKind(p), f.kind, p.FullName())
		assert.True(t, f.named(string(p.Name())), p.FullName())
		if p.Message() != nil {
			compareShape(t, f.of, p.Message(), seen)
		}
	}
	for number, f := range messages[id] {
		p := fields.ByNumber(protoreflect.FieldNumber(number))
		if f.kind == removed {
			assert.True(t, published.ReservedRanges().Has(protoreflect.FieldNumber(number)))
		} else if f.name != "" {
			assert.NotNil(t, p, "%s is not in %s", f.name, published.FullName())
		}
	}
}

func publishedKind(p protoreflect.FieldDescriptor) kind {
	switch name := string(p.Name()); {
	case strings.HasSuffix(name, "trace_id"):
		return traceID
	case strings.HasSuffix(name, "span_id"):
		return spanID
	}
	single := map[protoreflect.Kind]kind{
		protoreflect.MessageKind: one, protoreflect.StringKind: text, protoreflect.BytesKind: blob, protoreflect.BoolKind: boolean,
		protoreflect.EnumKind: enum, protoreflect.Uint32Kind: integer, protoreflect.Int64Kind: integer, protoreflect.Sint32Kind: integer,
		protoreflect.Uint64Kind: integer, protoreflect.Fixed32Kind: fixed32, protoreflect.Fixed64Kind: fixed64, protoreflect.Sfixed64Kind: fixed64,
		protoreflect.DoubleKind: double,
	}[p.Kind()]
	if p.Cardinality() != protoreflect.Repeated {
		return single
	}
	return map[kind]kind{one: many, text: texts, integer: integers, fixed64: fixed64s, double: doubles}[single]
}

func TestTheSignalOfAProtobufMessageIsFound(t *testing.T) {
	for seed := range uint64(300) {
		c := newSource(seed).capture(1 + int(seed%7))
		for want, one := range map[signal]*capture.Capture{
			traces:  {Spans: c.Spans},
			metrics: {Metrics: withPoints(c.Metrics)},
			logs:    {Logs: c.Logs},
		} {
			if len(one.Spans)+len(one.Metrics)+len(one.Logs) == 0 {
				continue
			}
			message := bare(t, one)
			got, found := signalOf(message)
			require.Nil(t, found, "seed %d", seed)
			require.Equal(t, want, got, "seed %d: %x", seed, message)
			for other := range signal(signals) {
				if other == want {
					continue
				}
				w, found := walkProto(other, message)
				require.False(t, found == nil && w.sure, "seed %d: %s pass for %s", seed, want, other)
			}
		}
	}
}

// withPoints returns the metrics that have points: one without may have no data.
func withPoints(all []*capture.Metric) []*capture.Metric {
	var some []*capture.Metric
	for _, m := range all {
		if len(m.Points) > 0 {
			some = append(some, m)
		}
	}
	return some
}

func TestItemsThatCouldBeOfTwoSignalsAreNotGuessed(t *testing.T) {
	// A span without times, kind, name and parent is a metric with an odd name.
	var item []byte
	item = protowire.AppendTag(item, 1, protowire.BytesType)
	item = protowire.AppendBytes(item, bytes.Repeat([]byte{'x'}, 16))
	item = protowire.AppendTag(item, 2, protowire.BytesType)
	item = protowire.AppendBytes(item, bytes.Repeat([]byte{'y'}, 8))
	_, found := signalOf(nested(item, 2, 2, 1))
	require.NotNil(t, found)
	assert.EqualError(t, found, "cannot tell whether this holds traces or metrics: no span has identifiers and times, no metric a name, no log record a time")
}

func TestMetricsFromBeforeOTLP1AreRefused(t *testing.T) {
	_, found := signalOf(nested(slices.Concat(nested([]byte("queue"), 1), nested(nil, 4)), 2, 2, 1))
	require.NotNil(t, found)
	assert.EqualError(t, found, "resourceMetrics[0].scopeMetrics[0].metrics[0].field 4: a field that OTLP removed before version 1.0")
}

func TestDamagedProtobufNamesThePlace(t *testing.T) {
	field := func(num protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
	}
	id := field(1, make([]byte, 16))
	for name, c := range map[string]struct {
		span []byte
		want string
		at   int
	}{
		"short trace id":     {field(1, make([]byte, 15)), "resourceSpans[0].scopeSpans[0].spans[0].traceId: 15 bytes; expected 16", 8},
		"long parent":        {slices.Concat(id, field(4, make([]byte, 9))), "resourceSpans[0].scopeSpans[0].spans[0].parentSpanId: 9 bytes; expected 8", 26},
		"number for a name":  {slices.Concat(id, []byte{5 << 3, 7}), "resourceSpans[0].scopeSpans[0].spans[0].name: protobuf wire type 0, which this field cannot have", 24},
		"cut off":            {slices.Concat(id, []byte{5<<3 | 2, 7, 'a'}), "resourceSpans[0].scopeSpans[0].spans[0].name: longer than the message that holds it; the message is cut off or damaged", 24},
		"no field":           {slices.Concat(id, []byte{0}), "resourceSpans[0].scopeSpans[0].spans[0]: no field begins here; this is no protobuf or damaged", 24},
		"attribute in a row": {slices.Concat(id, field(9, nil), field(9, field(2, []byte{8}))), "resourceSpans[0].scopeSpans[0].spans[0].attributes[1].value.stringValue: protobuf wire type 0, which this field cannot have", 30},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := walkProto(traces, nested(c.span, 2, 2, 1))
			require.NotNil(t, found)
			assert.EqualError(t, found, c.want)
			assert.Equal(t, c.at, found.offset)
		})
	}
}

// nested puts content into fields, the innermost first.
func nested(content []byte, nums ...protowire.Number) []byte {
	for _, num := range nums {
		content = protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
	}
	return content
}

// bare returns a capture of one signal as one protobuf message.
func bare(t *testing.T, c *capture.Capture) []byte {
	t.Helper()
	var message []byte
	require.NoError(t, eachExport(c, unknownSize, func(e export) (err error) {
		message, err = e.proto()
		return err
	}))
	return message
}
