package propagation_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/baggage"
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

		before := tracestateOf(tracestate1, tracestate2)
		assert.Equal(t, before, tracestateOf(before), "what was written is what is read")

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

// FuzzFormats holds that each format reads something valid or nothing, and writes
// what it reads.
func FuzzFormats(f *testing.F) {
	f.Add(traceHex+"-"+spanHex+"-1-"+parentHex, traceHex, spanHex, parentHex, "1", "0", "order 7")
	f.Add("0", "", "", "", "0", "1", traceHex)
	f.Add("d", halfHex, spanHex, "", "true", "", zeros)
	f.Add(traceHex+":"+spanHex+":0:3", "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736", spanHex, "x", "false", "2", " a ")
	f.Add(traceHex+"%3A1%3a%3A1", "", "", "", "", "", "\x00")

	f.Fuzz(func(t *testing.T, one, traceID, spanID, parentID, sampled, flags, name string) {
		h := propagation.HTTPHeader{
			"B3": {one}, "Uber-Trace-Id": {one}, "X-B3-Traceid": {traceID}, "X-B3-Spanid": {spanID},
			"X-B3-Parentspanid": {parentID}, "X-B3-Sampled": {sampled}, "X-B3-Flags": {flags},
			"Trace-Id": {traceID}, "Span-Id": {spanID}, "Parent-Span-Id": {parentID},
			"X-Trace-Id": {name}, "Trace_id": {name}, "Grpc-Trace-Bin": {one},
		}
		for _, format := range allFormats {
			bridge := propagation.New(propagation.WithReadFormats(format))
			ctx, first := bridge.Receive(context.Background(), h)
			if first.Format == 0 {
				assert.Equal(t, propagation.Received{}, first)
				assert.Equal(t, context.Background(), ctx)
				continue
			}
			assert.True(t, first.SpanContext.HasTraceID() || first.Sampling == propagation.SamplingDenied)
			for transport, newCarrier := range transports {
				c, _ := newCarrier(nil)
				format.Inject(ctx, c)
				_, second := bridge.Receive(context.Background(), c)
				if format == propagation.B3 && first.Sampling == propagation.SamplingDeferred {
					second.ParentSpanID = first.ParentSpanID // the single header has no place for it
				}
				assert.Equal(t, first, second, "%s over %s", format, transport)
			}
		}
	})
}

// FuzzBaggage holds that what is read of any baggage is written in one way, within
// the limits, and read again as it was.
func FuzzBaggage(f *testing.F) {
	f.Add("a=1,b=%20x;p;q=1", "c=%ff", 100)
	f.Add("a=1,,=,a=2", ";", 0)
	f.Add("ä=1", "a=b=c", 5000)
	f.Fuzz(func(t *testing.T, field1, field2 string, budget int) {
		bridge := propagation.New(propagation.WithBudget(budget))
		ctx := bridge.Extract(context.Background(), propagation.HTTPHeader{"Baggage": {field1, field2}})
		first := inject(bridge, ctx)
		assert.LessOrEqual(t, size(first), max(budget, 1024))
		assert.Equal(t, first, inject(bridge, ctx))
		again := bridge.Extract(context.Background(), first)
		if bridge.Stats().ShedBaggageMembers == 0 {
			assert.Equal(t, baggage.FromContext(ctx).Len(), baggage.FromContext(again).Len())
			assert.Equal(t, first, inject(bridge, again))
		}
	})
}

// FuzzPromptChain holds that a chain is valid or absent, never breaks the trace, and
// arrives as it was read.
func FuzzPromptChain(f *testing.F) {
	const id = `{"trace_id":"` + traceHex + `",`
	f.Add(id + `"span_id":"` + spanHex + `","prompt_chain":["user→router","\ud83d\ude00"],"context_hash":"sha256:00","causal_deps":["` + parentHex + `"]}`)
	f.Add(id + `"prompt_chain":["a","b"],"hops":[{"span_id":"` + parentHex + `"},{}]}`)
	f.Add(id + `"prompt_chain":["\ud800","\u0000"]}`)
	f.Fuzz(func(t *testing.T, value string) {
		m := propagation.Map{"traceparent": benchTraceparent, "x-prompt-trace": value}
		bridge := propagation.New(propagation.WithPromptChain(), propagation.WithBudget(1<<16))
		ctx := bridge.Extract(context.Background(), m)
		assert.Equal(t, traceHex, trace.SpanContextFromContext(ctx).TraceID().String())
		first, ok := propagation.PromptChainFromContext(ctx)
		assert.Equal(t, ok, len(first.Hops) > 0)
		assert.LessOrEqual(t, len(first.Hops), propagation.MaxHops)
		for _, hop := range first.Hops {
			first.Backtrace(hop.SpanID)
		}
		for name, newCarrier := range transports {
			c, _ := newCarrier(nil)
			bridge.Inject(ctx, c)
			second, _ := propagation.PromptChainFromContext(bridge.Extract(context.Background(), c))
			assert.Equal(t, first, second, name)
		}
	})
}

// FuzzMember holds that whatever our member says, what is added to it is read again
// and is legal.
func FuzzMember(f *testing.F) {
	f.Add("c:1;t:199c82cc07b;m:a%2Cb;x:1", "model", int64(1760000000123), true)
	f.Add(";;c:0;c:1;s:d-0ba902b7", "ü,=;%", int64(-1), false)
	f.Fuzz(func(t *testing.T, value, model string, ms int64, keep bool) {
		ctx := propagation.W3C.Extract(context.Background(), propagation.HTTPHeader{
			"Traceparent": {benchTraceparent}, "Tracestate": {"genai=" + value},
		})
		propagation.MemberOf(trace.SpanContextFromContext(ctx))
		ctx = propagation.ContextWithMember(ctx, propagation.Member{Caller: true, Keep: keep, ModelID: model})
		sc := trace.SpanContextFromContext(ctx)
		got := propagation.MemberOf(sc)
		assert.True(t, got.Caller)
		assert.True(t, propagation.HasCallerMark(sc))
		assert.True(t, got.Keep || !keep)
		assertArrives(t, ctx)
	})
}

// FuzzEnvelope holds that a message is changed in its metadata alone, and stays JSON.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"type":"x","metadata":{"user":"u1"}}`))
	f.Add([]byte(` {"metadata" : null, "a":[{"metadata":{}}] } `))
	f.Add([]byte(`{"metadata":{},"metadata":{}}`))
	f.Add([]byte(`{"Metadata":{"TRACEPARENT":"x"}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		propagation.ReadEnvelope(message)
		out, err := propagation.WriteEnvelope(message, propagation.Map{"traceparent": benchTraceparent})
		if err != nil {
			assert.Equal(t, message, out)
			return
		}
		assert.Equal(t, benchTraceparent, propagation.ReadEnvelope(out).Get("traceparent"))
		var before, after map[string]json.RawMessage
		assert.NoError(t, json.Unmarshal(out, &after))
		if json.Unmarshal(message, &before) != nil {
			return
		}
		delete(before, "metadata")
		delete(after, "metadata")
		assert.Equal(t, before, after)
	})
}

// FuzzResponse holds that nothing a response says makes its reader fail or keep more
// than it should.
func FuzzResponse(f *testing.F) {
	f.Add(`cache;desc="hit, warm";dur=1, trace;desc="`+benchTraceparent+`"`, "TEXT named_metrics.kv=0.42, x=1", "352")
	f.Add(`"\`, "TEXT", "-1")
	f.Fuzz(func(t *testing.T, timing, load, ms string) {
		h := propagation.HTTPHeader{"Server-Timing": {timing, timing}, "Endpoint-Load-Metrics": {load}, "Openai-Processing-Ms": {ms}}
		r := propagation.ReadResponse(h)
		assert.LessOrEqual(t, len(r.Durations), 32)
		assert.LessOrEqual(t, len(r.Load), 32)
		for name, d := range r.Durations {
			assert.GreaterOrEqual(t, d, time.Duration(0), name)
		}
		ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
		propagation.InjectResponse(ctx, h)
		propagation.InjectResponse(ctx, h)
	})
}
