package propagation_test

import (
	"context"
	"fmt"
	"net/http"
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
	ctx := propagation.W3C{}.Extract(context.Background(), propagation.HTTPHeader(h))
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

func TestATracestateLosesOnlyWhatCannotBeRead(t *testing.T) {
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
		{"member without value", []string{"a=1,b,c=3"}, "a=1,c=3"},
		{"member with an empty value", []string{"a=1,b=,c=3"}, "a=1,c=3"},
		{"value with an equals sign", []string{"a=1,b=2=2,c=3"}, "a=1,c=3"},
		{"space before the equals sign", []string{"a =1,b=2"}, "b=2"},
		{"control character", []string{"a=\x01,b=2"}, "b=2"},
		{"non-ASCII", []string{"ä=1,b=ö,c=3"}, "c=3"},
		{"the newest of equal keys", []string{"a=1,b=2", "a=3"}, "a=1,b=2"},
		{"a valid one of equal keys", []string{"a=,a=2"}, "a=2"},
		{"value of 256 characters", []string{long(256)}, long(256)},
		{"value of 257 characters", []string{"a=1," + long(257) + ",b=2"}, "a=1,b=2"},
		{"tenant key", []string{"tenant@system=1"}, "tenant@system=1"},
		{"33 members over two fields", []string{members(0, 20), members(20, 33)}, members(0, 32)},
		{"the refused are not counted", []string{"A=1," + members(0, 33)}, members(0, 32)},
		{"a member behind 63 refused ones", []string{"a=1" + strings.Repeat(",X", 63) + ",b=2"}, "a=1,b=2"},
		{"a member behind 64 refused ones", []string{"a=1" + strings.Repeat(",X", 64) + ",b=2"}, "a=1"},
		{"the longest list", []string{longest}, longest},
		{"the longest list and more", []string{longest + ",b=2", "c=3"}, longest},
		{"one member of enormous length", []string{long(1 << 20)}, ""},
		{"a list of enormous length", []string{"a=1," + strings.Repeat(",", 1<<20) + "b=2"}, "a=1"},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			sc := extractW3C(benchTraceparent, tt.fields...)
			assert.True(t, sc.IsValid(), "an invalid tracestate invalidates the traceparent")
			assert.Equal(t, tt.want, sc.TraceState().String())
		})
	}
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
			propagation.W3C{}.Inject(ctx, propagation.GRPCMetadata(md))

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
	propagation.W3C{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	assert.Equal(t, strings.TrimSuffix(benchTraceparent, "01")+"03", carrier["traceparent"])
}

func TestInjectReplacesTheHeadersOfAForwardedRequest(t *testing.T) {
	h := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"a=1", "b=2"}}
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent))
	propagation.W3C{}.Inject(ctx, propagation.HTTPHeader(h))
	assert.Equal(t, http.Header{"Traceparent": {benchTraceparent}}, h)
}

func TestNothingIsInjectedWithoutAValidSpanContext(t *testing.T) {
	invalid := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent).WithSpanID(trace.SpanID{}))
	for _, p := range []otelprop.TextMapPropagator{
		propagation.W3C{}, propagation.TraceBin{}, propagation.New(propagation.WithTraceBin()),
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
		propagation.W3C{}, propagation.TraceBin{}, propagation.New(propagation.WithTraceBin()),
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
	propagation.W3C{}.Inject(ctx, carrier)
	assert.Equal(t, otelprop.MapCarrier{"traceparent": benchTraceparent, "tracestate": "a=1"}, carrier)

	got := trace.SpanContextFromContext(propagation.W3C{}.Extract(context.Background(), carrier))
	assert.Equal(t, extractW3C(benchTraceparent, "a=1"), got)
}

func TestReadingAndWritingAllocateNoMoreThanTheirResults(t *testing.T) {
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}}
	extract := testing.AllocsPerRun(100, func() { propagation.W3C{}.Extract(context.Background(), h) })
	assert.LessOrEqual(t, extract, 2.0, "the context and the span in it")

	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent, "a=1"))
	md := propagation.GRPCMetadata{"traceparent": {""}, "tracestate": {""}}
	inject := testing.AllocsPerRun(100, func() { propagation.W3C{}.Inject(ctx, md) })
	assert.LessOrEqual(t, inject, 3.0, "one string for both values and the slice of each")
}
