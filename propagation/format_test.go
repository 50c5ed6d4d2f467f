package propagation_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	otelprop "go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

const (
	traceHex  = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanHex   = "00f067aa0ba902b7"
	parentHex = "b7ad6b7169203331"
	halfHex   = "a3ce929d0e0e4736"
	zeros     = "0000000000000000"
)

// receive reads fields, which are pairs of key and value, with one format.
func receive(f propagation.Format, fields ...string) (context.Context, propagation.Received) {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return propagation.New(propagation.WithFormats(f)).Receive(context.Background(), propagation.HTTPHeader(h))
}

func TestEachFormatIsReadByItsRules(t *testing.T) {
	const (
		x = "X-B3-"
		b = traceHex + "-" + spanHex
		j = traceHex + ":" + spanHex
	)
	type fields []string
	for _, tt := range []struct {
		format propagation.Format
		why    string
		fields fields
		want   string // trace/span/flags/sampling, "" if it is refused
		parent string
	}{
		{propagation.B3, "sampled", fields{"b3", b + "-1"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3, "denied", fields{"b3", b + "-0"}, traceHex + "/" + spanHex + "/00/denied", ""},
		{propagation.B3, "debug", fields{"b3", b + "-d"}, traceHex + "/" + spanHex + "/01/debug", ""},
		{propagation.B3, "deferred", fields{"b3", b}, traceHex + "/" + spanHex + "/00/deferred", ""},
		{propagation.B3, "with a parent", fields{"b3", b + "-1-" + parentHex}, traceHex + "/" + spanHex + "/01/decided", parentHex},
		{propagation.B3, "64-bit trace", fields{"b3", halfHex + "-" + spanHex + "-1"}, zeros + halfHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3, "whitespace around", fields{"b3", " " + b + "-1\t"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3, "denial alone", fields{"b3", "0"}, "//00/denied", ""},
		{propagation.B3, "acceptance alone", fields{"b3", "1"}, "", ""},
		{propagation.B3, "debug alone", fields{"b3", "d"}, "", ""},
		{propagation.B3, "unknown state", fields{"b3", b + "-2"}, "", ""},
		{propagation.B3, "no parent, written as zeros", fields{"b3", b + "-1-" + zeros}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3, "empty state", fields{"b3", b + "-"}, "", ""},
		{propagation.B3, "empty parent", fields{"b3", b + "-1-"}, "", ""},
		{propagation.B3, "parent without a state", fields{"b3", b + "-" + parentHex}, "", ""},
		{propagation.B3, "short parent", fields{"b3", b + "-1-" + parentHex[1:]}, "", ""},
		{propagation.B3, "more behind the parent", fields{"b3", b + "-1-" + parentHex + "-1"}, "", ""},
		{propagation.B3, "upper case", fields{"b3", strings.ToUpper(b) + "-1"}, "", ""},
		{propagation.B3, "trace of zeros", fields{"b3", zeros + zeros + "-" + spanHex + "-1"}, "", ""},
		{propagation.B3, "span of zeros", fields{"b3", traceHex + "-" + zeros + "-1"}, "", ""},
		{propagation.B3, "trace of 31 digits", fields{"b3", b[1:] + "-1"}, "", ""},
		{propagation.B3, "trace alone", fields{"b3", traceHex}, "", ""},
		{propagation.B3, "two values", fields{"b3", b + "-1", "b3", b + "-1"}, "", ""},
		{propagation.B3, "single and headers", fields{"b3", b + "-1", x + "TraceId", traceHex[1:] + "1", x + "SpanId", spanHex}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3, "bad single, good headers", fields{"b3", "x", x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "1"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3, "debug single that is bad, good headers", fields{"b3", "x-y-d", x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "1"}, traceHex + "/" + spanHex + "/01/decided", ""},

		{propagation.B3Multi, "sampled", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "ParentSpanId", parentHex, x + "Sampled", "1"}, traceHex + "/" + spanHex + "/01/decided", parentHex},
		{propagation.B3Multi, "no parent, written as zeros", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "ParentSpanId", zeros, x + "Sampled", "1"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3Multi, "bad parent", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "ParentSpanId", "x" + zeros[1:], x + "Sampled", "1"}, "", ""},
		{propagation.B3Multi, "true", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "true"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3Multi, "false", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "false"}, traceHex + "/" + spanHex + "/00/denied", ""},
		{propagation.B3Multi, "deferred", fields{x + "TraceId", traceHex, x + "SpanId", spanHex}, traceHex + "/" + spanHex + "/00/deferred", ""},
		{propagation.B3Multi, "debug", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Flags", "1"}, traceHex + "/" + spanHex + "/01/debug", ""},
		{propagation.B3Multi, "debug and sampled", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "0", x + "Flags", "1"}, traceHex + "/" + spanHex + "/01/debug", ""},
		{propagation.B3Multi, "other flags", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "1", x + "Flags", "2"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.B3Multi, "denial alone", fields{x + "Sampled", "0"}, "//00/denied", ""},
		{propagation.B3Multi, "acceptance alone", fields{x + "Sampled", "1"}, "", ""},
		{propagation.B3Multi, "no span", fields{x + "TraceId", traceHex, x + "Sampled", "1"}, "", ""},
		{propagation.B3Multi, "denial and half of the IDs", fields{x + "TraceId", traceHex, x + "Sampled", "0"}, "", ""},
		{propagation.B3Multi, "parent alone", fields{x + "ParentSpanId", parentHex, x + "Sampled", "0"}, "", ""},
		{propagation.B3Multi, "unknown state", fields{x + "TraceId", traceHex, x + "SpanId", spanHex, x + "Sampled", "yes"}, "", ""},

		{propagation.Jaeger, "sampled", fields{"uber-trace-id", j + ":0:1"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.Jaeger, "not sampled", fields{"uber-trace-id", j + ":0:0"}, traceHex + "/" + spanHex + "/00/decided", ""},
		{propagation.Jaeger, "debug", fields{"uber-trace-id", j + ":0:3"}, traceHex + "/" + spanHex + "/01/debug", ""},
		{propagation.Jaeger, "debug that is not sampled", fields{"uber-trace-id", j + ":0:2"}, traceHex + "/" + spanHex + "/00/decided", ""},
		{propagation.Jaeger, "other flags", fields{"uber-trace-id", j + ":0:9"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.Jaeger, "with a parent", fields{"uber-trace-id", j + ":" + parentHex + ":1"}, traceHex + "/" + spanHex + "/01/decided", parentHex},
		{propagation.Jaeger, "no leading zeros", fields{"uber-trace-id", halfHex + ":f067aa0ba902b7::01"}, zeros + halfHex + "/" + spanHex + "/01/decided", ""},
		{propagation.Jaeger, "URL-encoded", fields{"uber-trace-id", strings.ReplaceAll(j+":0:1", ":", "%3A")}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.Jaeger, "bad encoding", fields{"uber-trace-id", j + ":0:1%"}, "", ""},
		{propagation.Jaeger, "no flags", fields{"uber-trace-id", j + ":0"}, "", ""},
		{propagation.Jaeger, "flags of 9 bits", fields{"uber-trace-id", j + ":0:100"}, "", ""},
		{propagation.Jaeger, "five fields", fields{"uber-trace-id", j + ":0:1:1"}, "", ""},
		{propagation.Jaeger, "bad parent, which counts for nothing", fields{"uber-trace-id", j + ":x:1"}, traceHex + "/" + spanHex + "/01/decided", ""},
		{propagation.Jaeger, "flags left out", fields{"uber-trace-id", j + ":0:"}, traceHex + "/" + spanHex + "/00/deferred", ""},
		{propagation.Jaeger, "bad flags", fields{"uber-trace-id", j + ":0:x"}, "", ""},
		{propagation.Jaeger, "trace of zeros", fields{"uber-trace-id", "0:" + spanHex + ":0:1"}, "", ""},
		{propagation.Jaeger, "trace of 33 digits", fields{"uber-trace-id", "1" + j + ":0:1"}, "", ""},
		{propagation.Jaeger, "enormous", fields{"uber-trace-id", strings.Repeat("0", 1<<20) + j + ":0:1"}, "", ""},

		{propagation.Contract, "all", fields{"trace-id", traceHex, "span-id", spanHex, "parent-span-id", parentHex}, traceHex + "/" + spanHex + "/00/deferred", parentHex},
		{propagation.Contract, "trace alone", fields{"Trace-ID", traceHex}, traceHex + "//00/deferred", ""},
		{propagation.Contract, "upper-case UUID", fields{"trace-id", "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736", "span-id", strings.ToUpper(spanHex)}, traceHex + "/" + spanHex + "/00/deferred", ""},
		{propagation.Contract, "bad parent", fields{"trace-id", traceHex, "span-id", spanHex, "parent-span-id", "x"}, traceHex + "/" + spanHex + "/00/deferred", ""},
		{propagation.Contract, "bad span", fields{"trace-id", traceHex, "span-id", "x"}, "", ""},
		{propagation.Contract, "span alone", fields{"span-id", spanHex}, "", ""},
		{propagation.Contract, "two traces", fields{"trace-id", traceHex, "trace-id", traceHex}, "", ""},
		{propagation.Contract, "UUID with other dashes", fields{"trace-id", "4bf92f357-7b3-4da6-a3ce-929d0e0e4736"}, "", ""},

		{propagation.XTraceID, "hex", fields{"x-trace-id", traceHex}, traceHex + "//00/deferred", ""},
		{propagation.XTraceID, "64-bit hex", fields{"x-trace-id", halfHex}, zeros + halfHex + "//00/deferred", ""},
		{propagation.XTraceID, "text", fields{"x-trace-id", " order-2026/07#42 "}, "d94b0a7be12bc62c2d613abc25484c8d//00/deferred", ""},
		{propagation.XTraceID, "zeros", fields{"x-trace-id", zeros}, "", ""},
		{propagation.XTraceID, "a UUID of zeros", fields{"x-trace-id", "00000000-0000-0000-0000-000000000000"}, "", ""},
		{propagation.XTraceID, "non-ASCII", fields{"x-trace-id", "bestellung-ü"}, "", ""},
		{propagation.XTraceID, "enormous", fields{"x-trace-id", strings.Repeat("x", 257)}, "", ""},
		{propagation.JaegerTraceID, "hex", fields{"TRACE_ID", traceHex}, traceHex + "//00/deferred", ""},
		{propagation.JaegerTraceID, "text", fields{"trace_id", "order-2026/07#42"}, "d94b0a7be12bc62c2d613abc25484c8d//00/deferred", ""},
	} {
		t.Run(tt.format.String()+": "+tt.why, func(t *testing.T) {
			ctx, got := receive(tt.format, tt.fields...)
			if tt.want == "" {
				assert.Equal(t, propagation.Received{}, got)
				assert.Equal(t, context.Background(), ctx)
				return
			}
			sc := trace.SpanContextFromContext(ctx)
			var traceID, spanID, parentID string
			if sc.HasTraceID() {
				traceID = sc.TraceID().String()
				assert.True(t, sc.IsRemote())
			}
			if sc.HasSpanID() {
				spanID = sc.SpanID().String()
			}
			if got.ParentSpanID.IsValid() {
				parentID = got.ParentSpanID.String()
			}
			assert.Equal(t, tt.want, traceID+"/"+spanID+"/"+sc.TraceFlags().String()+"/"+propagation.SamplingFromContext(ctx).String())
			assert.Equal(t, tt.parent, parentID)
			assert.Equal(t, tt.format, got.Format)
			assert.Equal(t, sc, got.SpanContext)
		})
	}
}

func TestEachFormatIsWrittenByItsRules(t *testing.T) {
	sampled := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent).WithRemote(false))
	unsampled := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent).WithRemote(false).WithTraceFlags(0))
	for _, tt := range []struct {
		format  propagation.Format
		ctx     context.Context
		written propagation.Map
	}{
		{propagation.B3, sampled, propagation.Map{"b3": traceHex + "-" + spanHex + "-1"}},
		{propagation.B3, unsampled, propagation.Map{"b3": traceHex + "-" + spanHex + "-0"}},
		{propagation.B3Multi, sampled, propagation.Map{"x-b3-traceid": traceHex, "x-b3-spanid": spanHex, "x-b3-sampled": "1"}},
		{propagation.Jaeger, sampled, propagation.Map{"uber-trace-id": traceHex + ":" + spanHex + ":0:1"}},
		{propagation.Jaeger, unsampled, propagation.Map{"uber-trace-id": traceHex + ":" + spanHex + ":0:0"}},
		{propagation.Contract, sampled, propagation.Map{"trace-id": traceHex, "span-id": spanHex}},
		{propagation.XTraceID, sampled, propagation.Map{"x-trace-id": traceHex}},
		{propagation.JaegerTraceID, sampled, propagation.Map{"trace_id": traceHex}},
		{propagation.TraceBin, sampled, propagation.Map{"grpc-trace-bin": binBase64}},
		{propagation.Format(0), sampled, propagation.Map{}},
		{propagation.Format(99), sampled, propagation.Map{}},
	} {
		got := propagation.Map{}
		tt.format.Inject(tt.ctx, got)
		assert.Equal(t, tt.written, got, tt.format)

		tt.format.Inject(context.Background(), propagation.Map(nil))
		none := propagation.Map{}
		tt.format.Inject(context.Background(), none)
		assert.Empty(t, none, "%s: nothing is made up; a b3 of 0 would be a denial", tt.format)
	}
	assert.Equal(t, "Format(99)", propagation.Format(99).String())
	assert.Nil(t, propagation.Format(99).Fields())
	assert.Equal(t, context.Background(), propagation.Format(99).Extract(context.Background(), propagation.Map{"traceparent": benchTraceparent}))
}

// The span of the contract headers is the sender's, its parent the sender's own.
func TestTheContractHeadersTellTheParentOfASpanOfTheSDK(t *testing.T) {
	provider := sdktrace.NewTracerProvider()
	defer func() { assert.NoError(t, provider.Shutdown(context.Background())) }()
	ctx, outer := provider.Tracer("test").Start(context.Background(), "outer")
	ctx, inner := provider.Tracer("test").Start(ctx, "inner")
	got := propagation.Map{}
	propagation.Contract.Inject(ctx, got)
	assert.Equal(t, propagation.Map{
		"trace-id":       inner.SpanContext().TraceID().String(),
		"span-id":        inner.SpanContext().SpanID().String(),
		"parent-span-id": outer.SpanContext().SpanID().String(),
	}, got)

	// What is added for the wire stands for the same span.
	marked := propagation.ContextWithMember(propagation.ContextWithCallerMark(ctx), propagation.Member{Keep: true})
	sent := propagation.Map{}
	propagation.New(propagation.WithFormats(propagation.Contract)).Inject(marked, sent)
	assert.Equal(t, got["parent-span-id"], sent["parent-span-id"])
	assert.Equal(t, "genai=k:1;c:1", sent["tracestate"])
}

// A proxy that makes no span of its own passes on what it received, in every
// format: the caller's parent, its sampling state, the name of the trace.
func TestWithoutASpanInBetweenAFormatIsPassedOnAsItWas(t *testing.T) {
	for f, requests := range map[propagation.Format][]propagation.Map{
		propagation.W3C: {{"traceparent": benchTraceparent, "tracestate": "a=1,0x=2"}},
		propagation.TraceBin: {
			{"grpc-trace-bin": binBase64},
			{"grpc-trace-bin": "AABL+S81d7NNpqPOkp0ODkc2AQDwZ6oLqQK3"}, // without flags
		},
		propagation.B3: {
			{"b3": traceHex + "-" + spanHex},
			{"b3": traceHex + "-" + spanHex + "-d"},
			{"b3": traceHex + "-" + spanHex + "-0-" + parentHex},
			{"b3": "0"},
		},
		propagation.B3Multi: {
			{"x-b3-traceid": traceHex, "x-b3-spanid": spanHex},
			{"x-b3-traceid": traceHex, "x-b3-spanid": spanHex, "x-b3-parentspanid": parentHex, "x-b3-flags": "1"},
			{"x-b3-sampled": "0"},
		},
		propagation.Jaeger: {
			{"uber-trace-id": traceHex + ":" + spanHex + ":" + parentHex + ":3"},
			{"uber-trace-id": traceHex + ":" + spanHex + ":0:"},
		},
		propagation.Contract: {
			{"trace-id": traceHex, "span-id": spanHex, "parent-span-id": parentHex},
			{"trace-id": traceHex},
		},
		propagation.XTraceID:      {{"x-trace-id": traceHex}, {"x-trace-id": "order-2026/07#42"}},
		propagation.JaegerTraceID: {{"trace_id": "order-2026/07#42"}},
	} {
		for _, m := range requests {
			next := propagation.Map{}
			f.Inject(f.Extract(context.Background(), m), next)
			assert.Equal(t, m, next, "%s", f)
		}
	}
}

// A span of this process has made its own decision; a debug request is one for the
// whole trace.
func TestBelowASpanOfOursItsOwnStateIsSent(t *testing.T) {
	const ids = traceHex + "-0000000000000009-"
	for before, after := range map[string]string{
		traceHex + "-" + spanHex:                     ids + "1",
		traceHex + "-" + spanHex + "-0":              ids + "1",
		traceHex + "-" + spanHex + "-1-" + parentHex: ids + "1",
		traceHex + "-" + spanHex + "-d":              ids + "d",
	} {
		ctx := propagation.B3.Extract(context.Background(), propagation.Map{"b3": before})
		sc := trace.SpanContextFromContext(ctx).WithRemote(false).WithSpanID(spanID(9))
		next := propagation.Map{}
		propagation.B3.Inject(trace.ContextWithSpanContext(ctx, sc.WithTraceFlags(trace.FlagsSampled)), next)
		assert.Equal(t, propagation.Map{"b3": after}, next, before)
		propagation.B3.Inject(trace.ContextWithSpanContext(ctx, sc.WithTraceFlags(0)), next)
		assert.Equal(t, propagation.Map{"b3": ids + "0"}, next, before)
	}
}

// Whatever a proxy copied from its request must not stay beside what we write.
func TestInjectLeavesNoRestOfACopiedContext(t *testing.T) {
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
	bridge := propagation.New(propagation.WithFormats(allFormats...), propagation.WithPromptChain())
	fresh := http.Header{}
	bridge.Inject(ctx, propagation.HTTPHeader(fresh))

	copied := http.Header{"X-Other": {"kept"}}
	for _, field := range bridge.Fields() {
		copied.Set(field, "copied")
	}
	bridge.Inject(ctx, propagation.HTTPHeader(copied))
	fresh.Set("X-Other", "kept")
	assert.Equal(t, fresh, copied)

	md := metadata.MD{"x-b3-flags": {"1"}, "X-B3-Flags": {"1"}}
	propagation.B3Multi.Inject(ctx, propagation.GRPCMetadata(md))
	assert.Equal(t, metadata.MD{"x-b3-traceid": {traceHex}, "x-b3-spanid": {spanHex}, "x-b3-sampled": {"1"}}, md)
}

// Readers of b3 prefer the single header, or know one of the two forms, so that a
// copy in the other form would be the parent in place of what is written.
func TestWhoWritesOneFormOfB3LeavesNoCopyInTheOther(t *testing.T) {
	const caller = traceHex + "-" + parentHex + "-1"
	copied := func() http.Header {
		return http.Header{"B3": {caller}, "X-B3-Traceid": {traceHex}, "X-B3-Spanid": {parentHex}, "X-B3-Sampled": {"1"}, "X-B3-Flags": {"1"}}
	}
	single := http.Header{"B3": {traceHex + "-" + spanHex + "-1"}}
	multi := http.Header{"X-B3-Traceid": {traceHex}, "X-B3-Spanid": {spanHex}, "X-B3-Sampled": {"1"}}
	both := multi.Clone()
	both["B3"] = single["B3"]
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
	for name, tt := range map[string]struct {
		formats []propagation.Format
		want    http.Header
	}{
		"single": {[]propagation.Format{propagation.B3}, single},
		"multi":  {[]propagation.Format{propagation.B3Multi}, multi},
		"both":   {[]propagation.Format{propagation.B3Multi, propagation.B3}, both},
	} {
		h := copied()
		propagation.New(propagation.WithFormats(tt.formats...)).Inject(ctx, propagation.HTTPHeader(h))
		h.Del("Traceparent")
		assert.Equal(t, tt.want, h, name)
		if len(tt.formats) == 1 {
			h = copied()
			tt.formats[0].Inject(ctx, propagation.HTTPHeader(h))
			assert.Equal(t, tt.want, h, name)
		}
	}

	denied := propagation.B3.Extract(context.Background(), propagation.Map{"b3": "0"})
	h := copied()
	propagation.B3Multi.Inject(denied, propagation.HTTPHeader(h))
	assert.Equal(t, http.Header{"X-B3-Sampled": {"0"}}, h)

	h = copied()
	propagation.B3Multi.Inject(context.Background(), propagation.HTTPHeader(h))
	assert.Equal(t, copied(), h, "nothing replaces it")
	assert.ElementsMatch(t, propagation.B3.Fields(), propagation.B3Multi.Fields())
	assert.Len(t, propagation.New(propagation.WithFormats(propagation.B3, propagation.B3Multi)).Fields(), 9)
}

// Formats work over carriers of other packages too.
func TestFormatsWorkOverForeignCarriers(t *testing.T) {
	for _, f := range allFormats {
		m := otelprop.MapCarrier{}
		ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
		f.Inject(ctx, m)
		assert.NotEmpty(t, m, f)
		got := trace.SpanContextFromContext(f.Extract(context.Background(), m))
		assert.Equal(t, traceHex, got.TraceID().String(), f)
	}
}
