package propagation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

var whole = propagation.Member{
	Caller:     true,
	Keep:       true,
	Start:      time.UnixMilli(1_760_000_000_123),
	ModelID:    "Qwen/Qwen2.5-7B-Instruct",
	PipelineID: "rag-v3",
}

// member puts m over a tracestate and returns the result.
func member(t *testing.T, before string, m propagation.Member) trace.SpanContext {
	t.Helper()
	sc := mustSpanContext(t, benchTraceparent, before)
	return trace.SpanContextFromContext(propagation.ContextWithMember(trace.ContextWithSpanContext(context.Background(), sc), m))
}

func TestOurMemberSaysWhatWasPutIn(t *testing.T) {
	got := member(t, "ot=th:8,vendor=x", whole)
	assert.Equal(t, "genai=c:1;k:1;t:199c82cc07b;m:Qwen/Qwen2.5-7B-Instruct;p:rag-v3,ot=th:8,vendor=x", got.TraceState().String())
	assert.Equal(t, whole, propagation.MemberOf(got))
	assert.True(t, propagation.HasCallerMark(got))

	// It arrives, over each transport.
	for name, newCarrier := range transports {
		c, _ := newCarrier(nil)
		propagation.New().Inject(trace.ContextWithSpanContext(context.Background(), got), c)
		arrived := trace.SpanContextFromContext(propagation.New().Extract(context.Background(), c))
		assert.Equal(t, whole, propagation.MemberOf(arrived), name)
	}
	assert.Equal(t, propagation.Member{}, propagation.MemberOf(trace.SpanContext{}))
	assert.Equal(t, propagation.Member{}, propagation.MemberOf(mustSpanContext(t, benchTraceparent, "ot=c:1")))
}

func TestWhatAMemberLeavesZeroStays(t *testing.T) {
	for _, tt := range []struct {
		why, before string
		m           propagation.Member
		after       string
	}{
		{"nothing", "ot=th:8", propagation.Member{}, "ot=th:8"},
		{"nothing new", "genai=m:a;c:1,ot=th:8", propagation.Member{}, "genai=m:a;c:1,ot=th:8"},
		{"a model beside a mark", "ot=th:8,genai=c:1", propagation.Member{ModelID: "b"}, "genai=m:b;c:1,ot=th:8"},
		{"another model", "genai=c:1;m:a;x:1", propagation.Member{ModelID: "b"}, "genai=m:b;c:1;x:1"},
		{"a model that does not fit", "genai=c:1;m:a", propagation.Member{ModelID: strings.Repeat("b", 97)}, "genai=c:1"},
		{"a model that does not fit when escaped", "genai=c:1;m:a", propagation.Member{ModelID: strings.Repeat("ü", 17)}, "genai=c:1"},
		{"a time before there were any", "genai=c:1", propagation.Member{Start: time.UnixMilli(-1)}, "genai=c:1"},
		{"an unknown field twice", "genai=x:1;x:2;yy:3;yy:4", propagation.Member{Keep: true}, "genai=k:1;x:1;x:2;yy:3;yy:4"},
	} {
		assert.Equal(t, tt.after, member(t, tt.before, tt.m).TraceState().String(), tt.why)
	}
	assert.Equal(t, context.Background(), propagation.ContextWithMember(context.Background(), whole))
}

func TestNamesOfAnyCharactersAreLegalInATracestate(t *testing.T) {
	for _, name := range []string{"a,b=c;d%e:f", "modèle 1", "→", "a\nb", "\x7f", "100%", "gpt-4o:2024-08-06", strings.Repeat("x", 96)} {
		sc := member(t, "", propagation.Member{ModelID: name, PipelineID: name})
		assert.Equal(t, name, propagation.MemberOf(sc).ModelID)
		assert.Equal(t, name, propagation.MemberOf(sc).PipelineID)
		assert.Equal(t, sc.TraceState(), extractW3C(benchTraceparent, sc.TraceState().String()).TraceState(), "%q", name)
	}
}

func TestWhatCannotBeReadIsAbsent(t *testing.T) {
	for value, want := range map[string]propagation.Member{
		"c:0;k:yes;t:;m;p:":            {},
		"t:xyz":                        {},
		"t:-1":                         {},
		"t:ffffffffffffffff":           {},
		"t:7fffffffffffffff":           {},
		"m:%zz;p:%ff":                  {},
		"m:" + strings.Repeat("m", 97): {},
		"m:a;m:b":                      {ModelID: "a"},
		"c:0;c:1":                      {},
		";;m:a;":                       {ModelID: "a"},
		"z:1;m:a:b;unknown;p:%2C1":     {ModelID: "a:b", PipelineID: ",1"},
	} {
		assert.Equal(t, want, propagation.MemberOf(mustSpanContext(t, benchTraceparent, "genai="+value)), value)
	}
}

// The sampling state needs room in our member, which others filled.
func TestTheSamplingStateDisplacesNoMoreThanItMust(t *testing.T) {
	long := "x:" + strings.Repeat("x", 240)
	ctx := propagation.B3.Extract(context.Background(), propagation.Map{"b3": traceHex + "-" + spanHex})
	sc, err := trace.SpanContextFromContext(ctx).TraceState().Insert("genai", "c:1;"+long+";k:1")
	require.NoError(t, err)
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(ctx).WithTraceState(sc))
	assert.Equal(t, "genai=s:d-0ba902b7;c:1;k:1", inject(propagation.New(), ctx)["tracestate"])
}

func TestNobodySaysDebugOfATraceThatIsNotSampled(t *testing.T) {
	ctx := propagation.New().Extract(context.Background(), propagation.Map{
		"traceparent": strings.TrimSuffix(benchTraceparent, "1") + "0", "tracestate": "genai=s:b-0ba902b7",
	})
	assert.Equal(t, propagation.SamplingDecided, propagation.SamplingFromContext(ctx))
	assert.Equal(t, traceHex+"-"+spanHex+"-0", inject(propagation.New(propagation.WithFormats(propagation.B3)), ctx)["b3"])
}

// A traceparent cannot say "deferred", so our member does, for as long as the span
// it says it of is the last one.
func TestSamplingStateCrossesW3C(t *testing.T) {
	all := propagation.New(propagation.WithFormats(propagation.B3))
	w3c := propagation.New()
	for state, b3 := range map[string]string{
		"genai=s:d-0ba902b7": traceHex + "-" + spanHex,
		"genai=s:n-0ba902b7": traceHex + "-" + spanHex + "-0",
		"genai=s:b-0ba902b7": traceHex + "-" + spanHex + "-d",
	} {
		ctx := all.Extract(context.Background(), propagation.Map{"b3": b3})
		hop := inject(w3c, ctx)
		assert.Equal(t, state, hop["tracestate"])
		ctx = w3c.Extract(context.Background(), hop)
		assert.Equal(t, b3, inject(all, ctx)["b3"], "and back")
		assert.Empty(t, trace.SpanContextFromContext(ctx).TraceState().String(), "no span gets it")
	}

	for _, tt := range []struct{ why, before, after, sampling string }{
		{"beside others", "genai=c:1;s:d-0ba902b7;x:2,a=1", "genai=s:d-0ba902b7;c:1;x:2,a=1", "deferred"},
		{"behind others", "a=1,genai=s:d-0ba902b7", "genai=s:d-0ba902b7,a=1", "deferred"},
		{"of another span", "genai=c:1;s:d-11111111,a=1", "genai=c:1,a=1", "decided"},
		{"unknown", "genai=s:q-0ba902b7,a=1", "a=1", "decided"},
		{"short", "genai=s:d,a=1", "a=1", "decided"},
		{"twice", "genai=s:n-0ba902b7;s:d-0ba902b7", "genai=s:n-0ba902b7", "denied"},
		{"no room", "genai=c:1;" + strings.Repeat("x", 244) + ";s:d-0ba902b7,a=1", "", "decided"},
	} {
		ctx := w3c.Extract(context.Background(), propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "Tracestate": {tt.before}})
		assert.Equal(t, tt.sampling, propagation.SamplingFromContext(ctx).String(), tt.why)
		assert.Equal(t, tt.after, inject(w3c, ctx)["tracestate"], tt.why)
	}
}
