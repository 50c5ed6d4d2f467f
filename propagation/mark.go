package propagation

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// The caller mark is a sub-field of this library's tracestate member. The
// member has the form of OpenTelemetry's own member "ot": k:v pairs joined by
// semicolons (https://opentelemetry.io/docs/specs/otel/trace/tracestate-handling/).
// Sub-fields that this version does not know are passed on.
//
//	tracestate: genai=c:1,ot=th:8
const (
	memberKey     = "genai"
	callerField   = "c"
	callerMark    = "c:1"
	maxMemberSize = 256 // characters of a tracestate value
)

// ContextWithCallerMark returns ctx with a span context that tells the callee
// that its caller reports the token usage of this request. Backends add up
// gen_ai.usage.* over all spans, so the callee must then write its own counts
// under other keys.
//
// The mark is a member "genai=c:1" at the front of the tracestate. The other
// members are kept, but for the right-most if there are 32 already; all else
// in the span context stays the same. Without a valid span context, or if the
// mark is already there, ctx is returned as it is.
//
// Pass the result to Inject and to nothing else: its span is not the span of
// ctx, records nothing, and is there to carry the span context only.
func ContextWithCallerMark(ctx context.Context) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() || HasCallerMark(sc) {
		return ctx
	}
	state, err := sc.TraceState().Insert(memberKey, withCallerMark(sc.TraceState().Get(memberKey)))
	if err != nil {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, sc.WithTraceState(state))
}

// HasCallerMark reports whether sc, or a span context that it descends from in
// this trace, was marked by [ContextWithCallerMark]. A span started below a
// marked remote parent has the mark, because samplers hand the tracestate of
// the parent on. It allocates nothing.
func HasCallerMark(sc trace.SpanContext) bool {
	rest := sc.TraceState().Get(memberKey)
	for rest != "" {
		var field string
		if field, rest, _ = strings.Cut(rest, ";"); isCallerField(field) {
			return field == callerMark
		}
	}
	return false
}

// withCallerMark returns the value of this library's member with the mark in
// front of the sub-fields it has, as many as there is room for.
func withCallerMark(value string) string {
	if value == "" {
		return callerMark
	}
	var b strings.Builder
	b.WriteString(callerMark)
	for field := range strings.SplitSeq(value, ";") {
		if field == "" || isCallerField(field) {
			continue
		}
		if b.Len()+1+len(field) > maxMemberSize {
			break
		}
		b.WriteByte(';')
		b.WriteString(field)
	}
	// A value must not end in a space, which the field before the last might.
	return strings.TrimRight(b.String(), " ")
}

func isCallerField(field string) bool {
	key, _, _ := strings.Cut(field, ":")
	return key == callerField
}
