package propagation_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

const (
	binTraceID = "\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36"
	binSpanID  = "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7"
	binBase64  = "AABL+S81d7NNpqPOkp0ODkc2AQDwZ6oLqQK3AgE"
)

func TestTraceBinIsDecodedFieldByField(t *testing.T) {
	tests := []struct {
		why, value string
		flags      string // "" if the value is refused
	}{
		{"all fields", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\x01", "01"},
		{"both flags", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\x03", "03"},
		{"unknown flags", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\xFD", "01"},
		{"no flags", "\x00\x00" + binTraceID + "\x01" + binSpanID, "00"},
		{"unknown field behind", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\x01\x03abc", "01"},
		{"unknown field before the flags", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x09\x02\x01", "00"},
		{"second flags field", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\x01\x02\x00", "01"},

		{"empty", "", ""},
		{"version only", "\x00", ""},
		{"version 1", "\x01\x00" + binTraceID + "\x01" + binSpanID + "\x02\x01", ""},
		{"no trace id", "\x00\x01" + binSpanID + "\x02\x01", ""},
		{"no span id", "\x00\x00" + binTraceID + "\x02\x01", ""},
		{"span id before trace id", "\x00\x01" + binSpanID + "\x00" + binTraceID, ""},
		{"short trace id", "\x00\x00" + binTraceID[:15], ""},
		{"short span id", "\x00\x00" + binTraceID + "\x01" + binSpanID[:7], ""},
		{"flags cut off", "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02", ""},
		{"trace id of zeros", "\x00\x00" + strings.Repeat("\x00", 16) + "\x01" + binSpanID + "\x02\x01", ""},
		{"span id of zeros", "\x00\x00" + binTraceID + "\x01" + strings.Repeat("\x00", 8) + "\x02\x01", ""},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			sc, ok := propagation.DecodeTraceBin([]byte(tt.value))
			assert.Equal(t, tt.flags != "", ok)
			if tt.flags == "" {
				assert.Equal(t, trace.SpanContext{}, sc)
				return
			}
			assert.True(t, sc.IsRemote())
			assert.Equal(t, parent{
				TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
				SpanID:  "00f067aa0ba902b7",
				Flags:   tt.flags,
			}, parentOf(sc))
		})
	}
}

func TestTraceBinEncodesAllOfASpanContextButTheTracestate(t *testing.T) {
	for flags := range trace.TraceFlags(4) {
		sc := extractW3C(benchTraceparent, "a=1").WithTraceFlags(flags)
		value := propagation.EncodeTraceBin(sc)
		assert.Equal(t, "\x00\x00"+binTraceID+"\x01"+binSpanID+"\x02"+string(rune(flags)), string(value[:]))

		got, ok := propagation.DecodeTraceBin(value[:])
		assert.True(t, ok)
		assert.Equal(t, sc.WithTraceState(trace.TraceState{}), got)
	}

	value := propagation.EncodeTraceBin(extractW3C(benchTraceparent).WithTraceFlags(0xff))
	assert.Equal(t, byte(0x03), value[28], "unknown flags are zero when written")

	value = propagation.EncodeTraceBin(trace.SpanContext{})
	_, ok := propagation.DecodeTraceBin(value[:])
	assert.False(t, ok, "an invalid span context became a valid one")
}

func TestTraceBinIsWrittenInTheFormOfItsCarrier(t *testing.T) {
	sc := extractW3C(benchTraceparent)
	ctx := trace.ContextWithSpanContext(context.Background(), sc)
	raw := propagation.EncodeTraceBin(sc)

	header, md, other := http.Header{}, metadata.MD{}, otelprop.MapCarrier{}
	propagation.TraceBin.Inject(ctx, propagation.HTTPHeader(header))
	propagation.TraceBin.Inject(ctx, propagation.GRPCMetadata(md))
	propagation.TraceBin.Inject(ctx, other)
	assert.Equal(t, http.Header{"Grpc-Trace-Bin": {binBase64}}, header)
	assert.Equal(t, metadata.MD{"grpc-trace-bin": {string(raw[:])}}, md)
	assert.Equal(t, otelprop.MapCarrier{"grpc-trace-bin": binBase64}, other, "text, whatever the carrier is")

	for _, c := range []otelprop.TextMapCarrier{
		propagation.HTTPHeader(header), propagation.GRPCMetadata(md), other,
		otelprop.MapCarrier{"grpc-trace-bin": string(raw[:])},
		metadataCarrier(md),
	} {
		got := trace.SpanContextFromContext(propagation.TraceBin.Extract(context.Background(), c))
		assert.Equal(t, sc, got, "%T", c)
	}
}

func TestTheFirstValidTraceBinCounts(t *testing.T) {
	const raw = "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\x01"
	const other = "AAAK92UZFs1D3YRI6yEcgDGcAbeta3FpIDMxAgE" // 0af7651916cd43dd8448eb211c80319c
	tests := map[string]otelprop.TextMapCarrier{
		"of a list":              propagation.HTTPHeader{"Grpc-Trace-Bin": {"%%%, " + binBase64 + "= ," + other}},
		"of several fields":      propagation.HTTPHeader{"Grpc-Trace-Bin": {"", "AAAA", binBase64, other}},
		"of foreign fields":      otelprop.HeaderCarrier{"Grpc-Trace-Bin": {"AAAA", binBase64, other}},
		"of several entries":     propagation.GRPCMetadata{"grpc-trace-bin": {"\x00\x00", raw, other}},
		"of text in metadata":    propagation.GRPCMetadata{"grpc-trace-bin": {binBase64 + "," + other}},
		"with many fields after": propagation.GRPCMetadata{"grpc-trace-bin": {raw + "\x03" + strings.Repeat("x", 500)}},
		"with many in base64":    propagation.HTTPHeader{"Grpc-Trace-Bin": {binBase64[:38] + "EDAAAA" + strings.Repeat("AAAA", 100)}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			sc := trace.SpanContextFromContext(propagation.TraceBin.Extract(context.Background(), c))
			assert.Equal(t, extractW3C(benchTraceparent), sc)
		})
	}
}

func TestTraceBinGivesUpOnAFloodOfInvalidValues(t *testing.T) {
	h := propagation.HTTPHeader{"Grpc-Trace-Bin": {strings.Repeat("AA,", 100_000) + binBase64}}
	ctx := propagation.TraceBin.Extract(context.Background(), h)
	assert.False(t, trace.SpanContextFromContext(ctx).IsValid())
}

func TestTraceBinIsReadWithoutAllocation(t *testing.T) {
	value := propagation.EncodeTraceBin(extractW3C(benchTraceparent))
	assert.Zero(t, testing.AllocsPerRun(100, func() { propagation.DecodeTraceBin(value[:]) }))

	for _, c := range []otelprop.TextMapCarrier{
		propagation.HTTPHeader{"Grpc-Trace-Bin": {binBase64}},
		propagation.GRPCMetadata{"grpc-trace-bin": {string(value[:])}},
	} {
		n := testing.AllocsPerRun(100, func() { propagation.TraceBin.Extract(context.Background(), c) })
		assert.LessOrEqual(t, n, 2.0, "%T: the context and the span in it", c)
	}
}
