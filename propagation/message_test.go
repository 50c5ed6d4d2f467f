package propagation_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

func TestAnEnvelopeIsWrittenIntoTheMessageAndReadBack(t *testing.T) {
	m := propagation.Map{"traceparent": benchTraceparent, "tracestate": "a=<1>"}
	const written = `{"traceparent":"` + benchTraceparent + `","tracestate":"a=<1>"}`
	for _, tt := range []struct{ why, before, after string }{
		{"no metadata", `{ "type": "response.create" }`, `{"metadata":` + written + `, "type": "response.create" }`},
		{"an empty object", `{}`, `{"metadata":` + written + `}`},
		{"metadata of others", `{"type":"x", "metadata" : {"user":"u1", "n": 1.0e3} ,"b":1}`, `{"type":"x", "metadata" : {"n":1.0e3,"traceparent":"` + benchTraceparent + `","tracestate":"a=<1>","user":"u1"} ,"b":1}`},
		{"metadata of an earlier hop", `{"metadata":{"TraceParent":"old","tracestate":"old=1"}}`, `{"metadata":` + written + `}`},
		{"metadata further down", `{"a":{"metadata":{"traceparent":"no"}},"s":"\"metadata\":{"}`, `{"metadata":` + written + `,"a":{"metadata":{"traceparent":"no"}},"s":"\"metadata\":{"}`},
		{"odd spacing and escapes", "\n{\"\\u0061\" :\t[ 1 ,2]}\n", "\n{\"metadata\":" + written + ",\"\\u0061\" :\t[ 1 ,2]}\n"},
	} {
		got, err := propagation.WriteEnvelope([]byte(tt.before), m)
		require.NoError(t, err, tt.why)
		assert.Equal(t, tt.after, string(got), tt.why)
		for key, value := range m {
			assert.Equal(t, value, propagation.ReadEnvelope(got).Get(key), tt.why)
		}
	}
}

// What an earlier hop said of its own trace context must not stay beside a new one.
func TestAnEnvelopeKeepsNoRestOfAnEarlierHop(t *testing.T) {
	earlier := []byte(`{"type":"x","metadata":{"user":"u1","traceparent":"old","Tracestate":"genai=c:1","baggage":"secret=1","grpc-trace-bin":"old","x-prompt-trace":"old"}}`)
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
	m := propagation.ReadEnvelope(earlier)
	propagation.New(propagation.WithFormats(propagation.TraceBin), propagation.WithPromptChain()).InjectTo(ctx, m, "api.openai.com")
	for name, m := range map[string]propagation.Map{"a fresh map": {"traceparent": benchTraceparent}, "the map that was read": m} {
		got, err := propagation.WriteEnvelope(earlier, m)
		require.NoError(t, err)
		assert.JSONEq(t, `{"type":"x","metadata":{"user":"u1","traceparent":"`+benchTraceparent+`"}}`, string(got), name)
	}

	got, err := propagation.WriteEnvelope(earlier, propagation.Map{"user": "u2"})
	require.NoError(t, err)
	assert.Equal(t, "secret=1", propagation.ReadEnvelope(got).Get("baggage"), "of which nothing is said")
}

func TestWhatIsNoEnvelopeStaysAsItIs(t *testing.T) {
	m := propagation.Map{"traceparent": benchTraceparent}
	for _, message := range []string{
		``, `null`, `[]`, `"x"`, `1`, `{`, `{"a":}`, `{"a":1}{}`, `{"a":1} x`, `{"metadata":"x"}`, `{"metadata":[1]}`, `{"metadata":null}`, "\x00\x01",
	} {
		got, err := propagation.WriteEnvelope([]byte(message), m)
		assert.Error(t, err, message)
		assert.Equal(t, message, string(got))
		assert.Empty(t, propagation.ReadEnvelope([]byte(message)).Get("traceparent"), message)
	}
	got, err := propagation.WriteEnvelope([]byte(`{"a":1}`), propagation.Map{})
	assert.NoError(t, err)
	assert.Equal(t, `{"a":1}`, string(got), "nothing to write")
	assert.Empty(t, propagation.ReadEnvelope([]byte(`{"metadata":{"traceparent":1,"b":null}}`)))
}

func TestTheMetaOfMCPKeepsWhatIsNotOurs(t *testing.T) {
	var params struct {
		Meta propagation.Meta `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal([]byte(`{"_meta":{"progressToken":7,"traceparent":"`+benchTraceparent+`","tracestate":3}}`), &params))
	ctx := propagation.New().Extract(context.Background(), params.Meta)
	assert.Equal(t, mustSpanContext(t, benchTraceparent, ""), trace.SpanContextFromContext(ctx))

	propagation.New().Inject(trace.ContextWithSpanContext(ctx, extractW3C(benchTraceparent, "a=1")), params.Meta)
	assert.Equal(t, propagation.Meta{"progressToken": 7.0, "traceparent": benchTraceparent, "tracestate": "a=1"}, params.Meta)
	assert.ElementsMatch(t, []string{"progressToken", "traceparent", "tracestate"}, params.Meta.Keys())

	var none propagation.Meta
	none.Set("a", "b")
	assert.Empty(t, none.Get("a"))
}

func TestMapsAreReadInAnyLetterCaseAndWrittenInLowerCase(t *testing.T) {
	m := propagation.Map{"TraceParent": "b", "TRACEPARENT": "a", "other": "kept"}
	assert.Equal(t, "a", m.Get("traceparent"), "the same one each time")
	m.Set("TraceParent", "new")
	assert.Equal(t, propagation.Map{"traceparent": "new", "other": "kept"}, m)
	m.Set("traceparent", "\xff")
	m.Set("other", "")
	m.Set("", "x")
	assert.Empty(t, m)
}

func TestOfARecordTheLastLegalHeaderCounts(t *testing.T) {
	headers := []kafkaHeader{
		{"Traceparent", []byte("first")}, {"k", []byte("kept")}, {"TRACEPARENT", []byte("second")}, {"traceparent", []byte("\xff")}, {"x-bin", []byte("\x00\xff")},
	}
	k := propagation.NewKafka(&headers)
	assert.Equal(t, "second", k.Get("TraceParent"))
	assert.Equal(t, "\x00\xff", k.Get("x-bin"))
	assert.Empty(t, k.Get("absent"))
	assert.Equal(t, []string{"Traceparent", "k", "TRACEPARENT", "traceparent", "x-bin"}, k.Keys())

	shared := headers
	k.Set("TraceParent", "new")
	assert.Equal(t, []kafkaHeader{{"k", []byte("kept")}, {"x-bin", []byte("\x00\xff")}, {"traceparent", []byte("new")}}, headers)
	assert.Equal(t, "Traceparent", shared[0].Key, "the record that was read is not changed")
	for _, value := range []string{"", "ü", "a\nb"} {
		k.Set("traceparent", "x")
		k.Set("traceparent", value)
		assert.Empty(t, k.Get("traceparent"))
	}
	k.Set("", "x")
	k.Set("a b", "x")
	assert.Len(t, headers, 2)

	none := propagation.NewKafka[kafkaHeader](nil)
	none.Set("traceparent", "x")
	assert.Equal(t, "x", none.Get("traceparent"), "seen by nobody, but no panic")
}

// The header of sarama has bytes for its key.
func TestAnyHeaderTypeCarriesAContext(t *testing.T) {
	type record struct{ k, v []byte }
	headers := []record{}
	k := propagation.NewKafkaFunc(&headers,
		func(r record) (string, []byte) { return string(r.k), r.v },
		func(key string, value []byte) record { return record{[]byte(key), value} })
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent, "a=1"))
	bridge := propagation.New(propagation.WithFormats(propagation.TraceBin))
	bridge.Inject(ctx, k)
	assert.Len(t, headers, 3)
	assert.True(t, strings.HasPrefix(k.Get("grpc-trace-bin"), "\x00"), "bytes stay bytes")
	assert.Equal(t, trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(bridge.Extract(context.Background(), k)))
	assert.Equal(t, trace.SpanContextFromContext(ctx).WithTraceState(trace.TraceState{}),
		trace.SpanContextFromContext(propagation.TraceBin.Extract(context.Background(), k)))
}
