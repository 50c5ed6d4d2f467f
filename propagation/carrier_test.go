package propagation_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	otelprop "go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// carrier is what both carriers of this package are.
type carrier interface {
	otelprop.TextMapCarrier
	otelprop.ValuesGetter
}

// transports makes a carrier of each transport over the same fields, in the
// form in which the transport delivers them.
var transports = map[string]func(fields map[string][]string) (carrier, map[string][]string){
	"http": func(fields map[string][]string) (carrier, map[string][]string) {
		h := http.Header{}
		for key, values := range fields {
			h[http.CanonicalHeaderKey(key)] = slices.Clone(values)
		}
		return propagation.HTTPHeader(h), h
	},
	"grpc": func(fields map[string][]string) (carrier, map[string][]string) {
		md := metadata.MD{}
		for key, values := range fields {
			md[key] = slices.Clone(values)
		}
		return propagation.GRPCMetadata(md), md
	},
}

type kafkaHeader struct {
	Key   string
	Value []byte
}

func TestGetReducesRepeatedFieldsAsTheirMeaningAllows(t *testing.T) {
	fields := map[string][]string{
		"traceparent": {benchTraceparent, benchTraceparent},
		"tracestate":  {"a=1", "", "b=2"},
		"baggage":     {"k=1", "l=2"},
		"x-other":     {"first", "second"},
		"x-single":    {"only"},
	}
	for name, newCarrier := range transports {
		t.Run(name, func(t *testing.T) {
			c, _ := newCarrier(fields)
			assert.Empty(t, c.Get("traceparent"), "two parents are none")
			assert.Equal(t, "a=1,,b=2", c.Get("tracestate"))
			assert.Equal(t, "a=1,,b=2", c.Get("TraceState"))
			assert.Equal(t, "k=1,l=2", c.Get("baggage"))
			assert.Equal(t, "first", c.Get("x-other"))
			assert.Equal(t, "only", c.Get("X-SINGLE"))
			assert.Empty(t, c.Get("x-absent"))

			assert.Equal(t, fields["traceparent"], c.Values("traceparent"))
			assert.Equal(t, fields["x-other"], c.Values("X-Other"))
			assert.Empty(t, c.Values("x-absent"))
			assert.Len(t, c.Keys(), len(fields))
		})
	}
}

func TestSetReplacesEarlierValuesInAnyLetterCase(t *testing.T) {
	for _, key := range []string{"traceparent", "Traceparent", "TRACEPARENT"} {
		h := http.Header{"traceparent": {"a"}, "TraceParent": {"b"}, "Traceparent": {"c", "d"}, "X-Keep": {"e"}}
		propagation.HTTPHeader(h).Set(key, "new")
		assert.Equal(t, http.Header{"Traceparent": {"new"}, "X-Keep": {"e"}}, h)

		md := metadata.MD{"traceparent": {"a", "b"}, "TraceParent": {"c"}, "x-keep": {"e"}}
		propagation.GRPCMetadata(md).Set(key, "new")
		assert.Equal(t, metadata.MD{"traceparent": {"new"}, "x-keep": {"e"}}, md)
	}
}

func TestSetLeavesAbsentWhatTheTransportCannotCarry(t *testing.T) {
	tests := []struct {
		why, key, value string
		http, grpc      bool // whether the transport carries it
	}{
		{"printable ASCII", "k", "a b~", true, true},
		{"tab", "k", "a\tb", true, false},
		{"UTF-8", "k", "user→router", true, false},
		{"line feed", "k", "a\nb", false, false},
		{"carriage return", "k", "a\rb", false, false},
		{"null byte", "k", "a\x00b", false, false},
		{"delete", "k", "a\x7Fb", false, false},
		{"empty value", "k", "", false, false},
		{"empty key", "", "v", false, false},
		{"space in the key", "a b", "v", false, false},
		{"colon in the key", ":path", "v", false, false},
		{"token that is no metadata key", "a!b", "v", true, false},
		{"non-ASCII key", "schlüssel", "v", false, false},
		{"binary", "k-bin", "\x00\n\xFF", true, true},
		{"empty binary", "k-bin", "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			for name, carried := range map[string]bool{"http": tt.http, "grpc": tt.grpc} {
				c, m := transports[name](map[string][]string{tt.key: {"earlier"}})
				c.Set(tt.key, tt.value)
				if carried {
					assert.Equal(t, tt.value, c.Get(tt.key), name)
				} else {
					assert.Empty(t, m, "%s: neither the value nor an earlier one is sent", name)
				}
			}
		})
	}
}

func TestBinaryValuesAreBytesInMetadataAndBase64InHTTP(t *testing.T) {
	const raw = "\x00\x01\xFE\xFF"

	h := http.Header{}
	propagation.HTTPHeader(h).Set("x-data-bin", raw)
	assert.Equal(t, http.Header{"X-Data-Bin": {"AAH+/w"}}, h)
	assert.Equal(t, raw, propagation.HTTPHeader(h).Get("x-data-bin"))

	md := metadata.MD{}
	propagation.GRPCMetadata(md).Set("X-Data-Bin", raw)
	assert.Equal(t, metadata.MD{"x-data-bin": {raw}}, md)
	assert.Equal(t, raw, propagation.GRPCMetadata(md).Get("X-Data-Bin"))

	h = http.Header{"X-Data-Bin": {"%%%, AAH+/w==", "AA,,"}}
	assert.Equal(t, raw, propagation.HTTPHeader(h).Get("x-data-bin"))
	assert.Equal(t, []string{raw, "\x00"}, propagation.HTTPHeader(h).Values("x-data-bin"))

	h = http.Header{"X-Data-Bin": {"%%%"}}
	assert.Empty(t, propagation.HTTPHeader(h).Get("x-data-bin"))
	assert.Empty(t, propagation.HTTPHeader(h).Values("x-data-bin"))
}

func TestNilCarriersHoldNothing(t *testing.T) {
	for name, c := range map[string]carrier{
		"http": propagation.HTTPHeader(nil),
		"grpc": propagation.GRPCMetadata(nil),
	} {
		t.Run(name, func(t *testing.T) {
			c.Set("traceparent", benchTraceparent)
			c.Set("x-data-bin", "\x00")
			assert.Empty(t, c.Get("traceparent"))
			assert.Empty(t, c.Get("x-data-bin"))
			assert.Empty(t, c.Values("traceparent"))
			assert.Empty(t, c.Keys())
		})
	}
}
