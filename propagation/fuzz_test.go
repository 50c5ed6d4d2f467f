package propagation_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// FuzzW3C holds that whatever the headers are, what is extracted from them can
// be sent over either transport and arrives as it was, marked or not.
func FuzzW3C(f *testing.F) {
	f.Add(benchTraceparent, "a=1,b=2", "")
	f.Add(" 01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-x\t", "a=1,,a=2,A=3", "genai=x:1 ;c:0")
	f.Add("00-00000000000000000000000000000000-00f067aa0ba902b7-01", members(0, 20), members(10, 40))
	f.Add(benchTraceparent, "0a@vendor@x=1", "a=\x00,b= ,=,ö=1")

	f.Fuzz(func(t *testing.T, traceparent, tracestate1, tracestate2 string) {
		first := extractW3C(traceparent, tracestate1, tracestate2)
		if !first.IsValid() {
			assert.Equal(t, trace.SpanContext{}, first)
			return
		}
		ctx := trace.ContextWithSpanContext(context.Background(), first)
		assertArrives(t, ctx)

		ctx = propagation.ContextWithCallerMark(ctx)
		assert.True(t, propagation.HasCallerMark(trace.SpanContextFromContext(ctx)))
		assertArrives(t, ctx)
	})
}

// assertArrives fails t unless the span context of ctx arrives as it is over
// either transport.
func assertArrives(t *testing.T, ctx context.Context) {
	t.Helper()
	for name, newCarrier := range transports {
		c, _ := newCarrier(nil)
		propagation.W3C.Inject(ctx, c)
		got := trace.SpanContextFromContext(propagation.W3C.Extract(context.Background(), c))
		assert.Equal(t, trace.SpanContextFromContext(ctx), got, name)
	}
}

// FuzzTraceBin holds that whatever the value is, all ways of reading it agree,
// and what is read is what is written again.
func FuzzTraceBin(f *testing.F) {
	const all = "\x00\x00" + binTraceID + "\x01" + binSpanID + "\x02\x01"
	f.Add([]byte(all))
	f.Add([]byte(all[:27]))
	f.Add([]byte(all + "\x03more"))
	f.Add([]byte(all[:18]))
	f.Add([]byte("\x01" + all[1:]))
	f.Add([]byte(binBase64))

	f.Fuzz(func(t *testing.T, value []byte) {
		sc, ok := propagation.DecodeTraceBin(value)
		assert.Equal(t, sc.IsValid(), ok)
		if ok {
			again := propagation.EncodeTraceBin(sc)
			got, ok := propagation.DecodeTraceBin(again[:])
			assert.True(t, ok)
			assert.Equal(t, sc, got)
		}

		// As bytes, and as text that may or may not be base64.
		h, md := propagation.HTTPHeader{}, metadata.MD{"grpc-trace-bin": {string(value)}}
		h.Set("grpc-trace-bin", string(value))
		overHTTP := propagation.TraceBin.Extract(context.Background(), h)
		overGRPC := propagation.TraceBin.Extract(context.Background(), propagation.GRPCMetadata(md))
		assert.Equal(t, sc, trace.SpanContextFromContext(overHTTP))
		if ok {
			assert.Equal(t, sc, trace.SpanContextFromContext(overGRPC))
		}
		propagation.TraceBin.Extract(context.Background(), propagation.HTTPHeader{"Grpc-Trace-Bin": {string(value)}})
	})
}
