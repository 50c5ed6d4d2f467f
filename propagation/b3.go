package propagation

import (
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	b3Key             = "b3"
	b3TraceIDKey      = "x-b3-traceid"
	b3SpanIDKey       = "x-b3-spanid"
	b3ParentSpanIDKey = "x-b3-parentspanid"
	b3SampledKey      = "x-b3-sampled"
	b3FlagsKey        = "x-b3-flags"
)

// b3Fields are those of either form.
var b3Fields = []string{b3Key, b3TraceIDKey, b3SpanIDKey, b3ParentSpanIDKey, b3SampledKey, b3FlagsKey}

// b3 is the content of a b3 header or of the X-B3-* headers.
type b3 struct{ traceID, spanID, parent, sampled string }

func readB3(carrier propagation.TextMapCarrier, r *remote) bool {
	if s := trimOWS(single(carrier, b3Key)); s != "" {
		if fields, ok := splitB3(s); ok && fields.decode(r) {
			return true
		}
	}
	fields := b3{
		traceID: trimOWS(single(carrier, b3TraceIDKey)),
		spanID:  trimOWS(single(carrier, b3SpanIDKey)),
		parent:  trimOWS(single(carrier, b3ParentSpanIDKey)),
		sampled: trimOWS(single(carrier, b3SampledKey)),
	}
	if trimOWS(single(carrier, b3FlagsKey)) == "1" {
		fields.sampled = "d" // debug implies the decision to sample
	}
	switch fields.sampled {
	case "true": // of old clients
		fields.sampled = "1"
	case "false":
		fields.sampled = "0"
	}
	return fields.decode(r)
}

// splitB3 splits {trace}-{span}-{state}-{parent}, of which the last one and the
// last two may be absent, or a state alone.
func splitB3(s string) (b3, bool) {
	var fields b3
	if len(s) == 1 {
		fields.sampled = s
		return fields, true
	}
	var more bool
	fields.traceID, s, _ = strings.Cut(s, "-")
	if fields.spanID, s, more = strings.Cut(s, "-"); !more {
		return fields, true
	}
	fields.sampled, fields.parent, more = strings.Cut(s, "-")
	return fields, len(fields.sampled) == 1 && (!more || fields.parent != "")
}

// decode reports whether the fields are a trace context or a denial of one. A
// caller that has no IDs but wants to be sampled or debugged has no trace yet;
// that is for the next span's sampler to decide.
func (f *b3) decode(r *remote) bool {
	cfg := trace.SpanContextConfig{Remote: true}
	switch f.sampled {
	case "1":
		cfg.TraceFlags = trace.FlagsSampled
	case "d":
		cfg.TraceFlags, r.sampling = trace.FlagsSampled, SamplingDebug
	case "0":
		r.sampling = SamplingDenied
	case "":
		r.sampling = SamplingDeferred
	default:
		return false
	}
	if f.traceID == "" && f.spanID == "" && f.parent == "" && f.sampled == "0" {
		return true
	}
	if strings.Trim(f.parent, "0") == "" && len(f.parent) == 16 {
		f.parent = "" // as some clients write it
	}
	if n := len(f.traceID); n != 16 && n != 32 || len(f.spanID) != 16 ||
		!parseID(cfg.TraceID[:], f.traceID) || !parseID(cfg.SpanID[:], f.spanID) ||
		f.parent != "" && (len(f.parent) != 16 || !parseID(r.parentSpanID[:], f.parent)) {
		*r = remote{}
		return false
	}
	r.sc = trace.NewSpanContext(cfg)
	return true
}

// b3State is what o says of sampling, "" where the decision is deferred.
func b3State(o *outgoing) string {
	switch {
	case o.sampling == SamplingDebug:
		return "d"
	case o.sampling == SamplingDeferred:
		return ""
	case o.sc.IsSampled():
		return "1"
	default:
		return "0"
	}
}

func writeB3(o *outgoing, carrier propagation.TextMapCarrier) {
	if !o.sc.IsValid() {
		if o.sampling == SamplingDenied {
			carrier.Set(b3Key, "0")
		}
		return
	}
	traceID, spanID := o.sc.TraceID(), o.sc.SpanID()
	var stack [32 + 1 + 16 + 1 + 1 + 1 + 16]byte
	buf := appendHex(stack[:0], traceID[:]...)
	buf = append(buf, '-')
	buf = appendHex(buf, spanID[:]...)
	if s := b3State(o); s != "" {
		buf = append(append(buf, '-'), s...)
		if o.parent.IsValid() { // which the format allows behind a state alone
			buf = appendHex(append(buf, '-'), o.parent[:]...)
		}
	}
	carrier.Set(b3Key, string(buf))
}

func writeB3Multi(o *outgoing, carrier propagation.TextMapCarrier) {
	if !o.sc.IsValid() {
		if o.sampling == SamplingDenied {
			carrier.Set(b3SampledKey, "0")
		}
		return
	}
	carrier.Set(b3TraceIDKey, o.sc.TraceID().String())
	carrier.Set(b3SpanIDKey, o.sc.SpanID().String())
	parent := ""
	if o.parent.IsValid() {
		parent = o.parent.String()
	}
	sampled, flags := b3State(o), ""
	if sampled == "d" {
		sampled, flags = "", "1"
	}
	replace(carrier, b3ParentSpanIDKey, parent)
	replace(carrier, b3SampledKey, sampled)
	replace(carrier, b3FlagsKey, flags)
}

// replace sets key, and removes it where value is empty and there was one before.
func replace(carrier propagation.TextMapCarrier, key, value string) {
	if value != "" || carrier.Get(key) != "" {
		carrier.Set(key, value)
	}
}
