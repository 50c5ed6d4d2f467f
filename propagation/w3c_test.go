package propagation_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

func extractW3C(traceparent string, tracestate ...string) trace.SpanContext {
	h := http.Header{"Traceparent": {traceparent}, "Tracestate": tracestate}
	ctx := propagation.W3C.Extract(context.Background(), propagation.HTTPHeader(h))
	return trace.SpanContextFromContext(ctx)
}

func TestTraceparentIsReadByTheRulesOfItsVersion(t *testing.T) {
	const ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
	tests := []struct {
		why, value string
		flags      string // "" if the value is refused
	}{
		{"version 00", "00-" + ids + "-01", "01"},
		{"no flag", "00-" + ids + "-00", "00"},
		{"both flags", "00-" + ids + "-03", "03"},
		{"random flag alone", "00-" + ids + "-02", "02"},
		{"unknown flag beside sampled", "00-" + ids + "-05", "01"},
		{"unknown flags alone", "00-" + ids + "-fc", "00"},
		{"all flags", "00-" + ids + "-ff", "03"},
		{"later version of the same length", "cc-" + ids + "-01", "01"},
		{"later version that ends in a dash", "01-" + ids + "-01-", "01"},
		{"last version", "fe-" + ids + "-01-x", "01"},
		{"spaces and tabs around", " \t00-" + ids + "-01\t ", "01"},

		{"empty", "", ""},
		{"whitespace", " \t ", ""},
		{"version ff", "ff-" + ids + "-01", ""},
		{"version 00 that ends in a dash", "00-" + ids + "-01-", ""},
		{"two values in one field", "00-" + ids + "-01,00-" + ids + "-01", ""},
		{"later version with another separator", "cc-" + ids + "-01.x", ""},
		{"upper-case trace id", "00-" + strings.ToUpper(ids) + "-01", ""},
		{"upper-case flags", "00-" + ids + "-0A", ""},
		{"upper-case version", "0A-" + ids + "-01", ""},
		{"version that is no number", ".0-" + ids + "-01", ""},
		{"flags that are no number", "00-" + ids + "-.1", ""},
		{"trace id with a bad digit", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", ""},
		{"span id with a bad digit", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902 7-01", ""},
		{"long trace id", "00-4bf92f3577b34da6a3ce929d0e0e47360-0f067aa0ba902b7-01", ""},
		{"another first separator", "00_" + ids + "-01", ""},
		{"another second separator", "00-" + strings.Replace(ids, "-", "_", 1) + "-01", ""},
		{"another third separator", "00-" + ids + "_01", ""},
		{"non-ASCII", "00-" + strings.Repeat("ü", 16) + "-00f067aa0ba902b7-01", ""},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			sc := extractW3C(tt.value)
			if tt.flags == "" {
				assert.Equal(t, trace.SpanContext{}, sc)
				return
			}
			assert.Equal(t, parent{
				TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
				SpanID:  "00f067aa0ba902b7",
				Flags:   tt.flags,
			}, parentOf(sc))
		})
	}
}

// tracestateOf returns the tracestate that the next hop gets: more than the span
// context can hold.
func tracestateOf(fields ...string) string {
	h := http.Header{"Traceparent": {benchTraceparent}, "Tracestate": fields}
	next := propagation.Map{}
	propagation.W3C.Inject(propagation.W3C.Extract(context.Background(), propagation.HTTPHeader(h)), next)
	if next["traceparent"] != benchTraceparent {
		return "an invalid tracestate invalidates the traceparent"
	}
	return next["tracestate"]
}

func TestATracestateIsReadInFullOrNotAtAll(t *testing.T) {
	long := func(n int) string { return "z=" + strings.Repeat("v", n) }
	longest := longestTraceState()
	tests := []struct {
		why    string
		fields []string
		want   string
	}{
		{"several fields are one list", []string{"a=1,b=2", "c=3"}, "a=1,b=2,c=3"},
		{"empty fields and members", []string{"", "a=1,,\t,b=2", " "}, "a=1,b=2"},
		{"nothing but commas", []string{",,,"}, ""},
		{"whitespace around members", []string{"\t a=1 \t,\tb=2 "}, "a=1,b=2"},
		{"whitespace at the start of a value", []string{"a= 1,b=2"}, "a= 1,b=2"},
		{"the newest of equal keys", []string{"a=1,b=2", "a=3"}, "a=1,b=2"},
		{"value of 256 characters", []string{long(256)}, long(256)},
		{"tenant key", []string{"tenant@system=1"}, "tenant@system=1"},
		{"32 members over two fields", []string{members(0, 20), members(20, 32)}, members(0, 32)},
		{"33 members of which two are the same", []string{members(0, 32), "k03=x"}, members(0, 32)},
		{"the longest list", []string{longest}, longest},

		{"member without value", []string{"a=1,b,c=3"}, ""},
		{"member with an empty value", []string{"a=1,b=,c=3"}, ""},
		{"value with an equals sign", []string{"a=1,b=2=2,c=3"}, ""},
		{"space before the equals sign", []string{"a =1,b=2"}, ""},
		{"control character", []string{"a=\x01,b=2"}, ""},
		{"tab in a value", []string{"a=1\t2,b=2"}, ""},
		{"non-ASCII", []string{"ä=1,b=ö,c=3"}, ""},
		{"upper-case key", []string{"A=1,b=2"}, ""},
		{"value of 257 characters", []string{"a=1," + long(257) + ",b=2"}, ""},
		{"33 members over two fields", []string{members(0, 20), members(20, 33)}, ""},
		{"the longest list and more", []string{longest + ",b=2", "c=3"}, ""},
		{"one member of enormous length", []string{long(1 << 20)}, ""},
		{"a list of enormous length", []string{"a=1," + strings.Repeat(",", 1<<20) + "b=2"}, ""},
		{"fields of enormous number", slices.Repeat([]string{","}, 1<<20), ""},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			assert.Equal(t, tt.want, tracestateOf(tt.fields...))
			assert.Equal(t, tt.want, extractW3C(benchTraceparent, tt.fields...).TraceState().String())
		})
	}
}

// trace.TraceState has the key grammar of Level 1. What it cannot hold goes on to
// the next hop all the same, where it was.
func TestKeysOfLevel2GoOn(t *testing.T) {
	key := strings.Repeat("t", 242) + "@v"
	for _, tt := range []struct{ state, visible string }{
		{"0a@vendor@x=1", ""},
		{"foo@=1,bar=2", "bar=2"},
		{"bar=2,foo@@bar=1", "bar=2"},
		{"a=1,0=1,b=2,c@d@e=1,f=3", "a=1,b=2,f=3"},
		{"9x=1,a=1", "a=1"},
		{key + "=1,a=1", "a=1"},
		{"t@" + strings.Repeat("v", 15) + "=1", ""},
		{"t@1=1", ""},
		{strings.Repeat("0", 256) + "=1", ""},
		{strings.Repeat("t", 241) + "@" + strings.Repeat("v", 14) + "=1", strings.Repeat("t", 241) + "@" + strings.Repeat("v", 14) + "=1"},
		{"0tenant@v=1", "0tenant@v=1"},
	} {
		assert.Equal(t, tt.state, tracestateOf(tt.state))
		assert.Equal(t, tt.visible, extractW3C(benchTraceparent, tt.state).TraceState().String())
	}
	assert.Empty(t, tracestateOf("@foo=1,bar=2"))
	assert.Empty(t, tracestateOf("a=1,"+strings.Repeat("z", 257)+"=1"))
}

// A span of this process stands between: a sampler may change the tracestate.
func TestKeysOfLevel2StayWhereTheyWereWhenOthersChange(t *testing.T) {
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "Tracestate": {"a=1,0x=1,b=2,c@d@=3,d=4"}}
	remote := propagation.W3C.Extract(context.Background(), h)
	for want, change := range map[string]func(trace.TraceState) trace.TraceState{
		"a=1,0x=1,b=2,c@d@=3,d=4": func(s trace.TraceState) trace.TraceState { return s },
		"n=9,a=1,0x=1,b=2,c@d@=3,d=4": func(s trace.TraceState) trace.TraceState {
			s, _ = s.Insert("n", "9")
			return s
		},
		"d=5,a=1,0x=1,b=2,c@d@=3": func(s trace.TraceState) trace.TraceState {
			s, _ = s.Insert("d", "5")
			return s
		},
		"a=1,0x=1,c@d@=3,d=4": func(s trace.TraceState) trace.TraceState { return s.Delete("b") },
		"0x=1,c@d@=3":         func(trace.TraceState) trace.TraceState { return trace.TraceState{} },
	} {
		sc := trace.SpanContextFromContext(remote)
		child := sc.WithRemote(false).WithSpanID(trace.SpanID{1}).WithTraceState(change(sc.TraceState()))
		next := propagation.Map{}
		propagation.W3C.Inject(trace.ContextWithSpanContext(remote, child), next)
		assert.Equal(t, want, next["tracestate"])
	}
	other := trace.SpanContextFromContext(remote).WithTraceID(trace.TraceID{1}).WithTraceState(trace.TraceState{})
	next := propagation.Map{}
	propagation.W3C.Inject(trace.ContextWithSpanContext(remote, other), next)
	assert.NotContains(t, next, "tracestate", "it belongs to another trace")
}

// With the keys that nobody sees there may be one too many when a member is added.
func TestATracestateNeverHasMoreThan32Members(t *testing.T) {
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "Tracestate": {members(0, 31) + ",0x=1"}}
	ctx := propagation.ContextWithCallerMark(propagation.W3C.Extract(context.Background(), h))
	next := propagation.Map{}
	propagation.W3C.Inject(ctx, next)
	assert.Equal(t, "genai=c:1,"+members(0, 31), next["tracestate"])
}

// longestTraceState returns 32 members of 513 characters each.
func longestTraceState() string {
	list := make([]string, 32)
	for i := range list {
		list[i] = fmt.Sprintf("k%0255d=%s", i, strings.Repeat("v", 256))
	}
	return strings.Join(list, ",")
}

// members returns a tracestate of the members from to to-1.
func members(from, to int) string {
	list := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("k%02d=%d", i, i))
	}
	return strings.Join(list, ",")
}

func TestWhatIsInjectedIsWhatWasExtracted(t *testing.T) {
	for _, flags := range []string{"00", "01", "02", "03"} {
		for _, state := range []string{"", "a=1", "ot=th:8,vendor=x y", members(0, 32)} {
			traceparent := strings.TrimSuffix(benchTraceparent, "01") + flags
			md := metadata.MD{}
			ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(traceparent, state))
			propagation.W3C.Inject(ctx, propagation.GRPCMetadata(md))

			want := metadata.MD{"traceparent": {traceparent}}
			if state != "" {
				want["tracestate"] = []string{state}
			}
			assert.Equal(t, want, md)
		}
	}
}

func TestInjectZeroesUnknownFlags(t *testing.T) {
	sc := extractW3C(benchTraceparent).WithTraceFlags(0xff)
	carrier := otelprop.MapCarrier{}
	propagation.W3C.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	assert.Equal(t, strings.TrimSuffix(benchTraceparent, "01")+"03", carrier["traceparent"])
}

func TestInjectReplacesTheHeadersOfAForwardedRequest(t *testing.T) {
	h := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"a=1", "b=2"}}
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
	propagation.W3C.Inject(ctx, propagation.HTTPHeader(h))
	assert.Equal(t, http.Header{"Traceparent": {benchTraceparent}}, h)
}

func TestNothingIsInjectedWithoutAValidSpanContext(t *testing.T) {
	invalid := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent).WithSpanID(trace.SpanID{}))
	for _, p := range []otelprop.TextMapPropagator{
		propagation.W3C, propagation.TraceBin, propagation.New(propagation.WithFormats(propagation.TraceBin)),
	} {
		for _, ctx := range []context.Context{context.Background(), invalid} {
			md := metadata.MD{}
			p.Inject(ctx, propagation.GRPCMetadata(md))
			assert.Empty(t, md, "%T", p)
		}
	}
}

func TestExtractKeepsTheContextWhereThereIsNothingToRead(t *testing.T) {
	before := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
	for _, p := range []otelprop.TextMapPropagator{
		propagation.W3C, propagation.TraceBin, propagation.New(propagation.WithFormats(propagation.TraceBin)),
	} {
		for _, c := range []otelprop.TextMapCarrier{
			propagation.HTTPHeader{}, propagation.HTTPHeader(nil), propagation.GRPCMetadata(nil), otelprop.MapCarrier{},
			propagation.HTTPHeader{"Traceparent": {"garbage"}, "Grpc-Trace-Bin": {"garbage"}, "Baggage": {"="}},
		} {
			assert.Equal(t, before, p.Extract(before, c), "%T from %T", p, c)
		}
	}
}

func TestW3CWorksOverCarriersOfOtherPackages(t *testing.T) {
	carrier := otelprop.MapCarrier{}
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent, "a=1"))
	propagation.W3C.Inject(ctx, carrier)
	assert.Equal(t, otelprop.MapCarrier{"traceparent": benchTraceparent, "tracestate": "a=1"}, carrier)

	got := trace.SpanContextFromContext(propagation.W3C.Extract(context.Background(), carrier))
	assert.Equal(t, extractW3C(benchTraceparent, "a=1"), got)
}

func TestReadingAndWritingAllocateNoMoreThanTheirResults(t *testing.T) {
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}}
	extract := testing.AllocsPerRun(100, func() { propagation.W3C.Extract(context.Background(), h) })
	assert.LessOrEqual(t, extract, 2.0, "the context and the span in it")

	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent, "a=1"))
	md := propagation.GRPCMetadata{"traceparent": {""}, "tracestate": {""}}
	inject := testing.AllocsPerRun(100, func() { propagation.W3C.Inject(ctx, md) })
	assert.LessOrEqual(t, inject, 3.0, "one string for both values and the slice of each")
}
