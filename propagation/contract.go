package propagation

import (
	"crypto/sha256"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	contractTraceIDKey      = "trace-id"
	contractSpanIDKey       = "span-id"
	contractParentSpanIDKey = "parent-span-id"
	xTraceIDKey             = "x-trace-id"
	jaegerTraceIDKey        = "trace_id"

	// maxTraceName is the length of the longest text that names a trace.
	maxTraceName = 256
)

func readContract(carrier propagation.TextMapCarrier, r *remote) bool {
	cfg := trace.SpanContextConfig{Remote: true}
	if !parseTraceID(&cfg.TraceID, trimOWS(single(carrier, contractTraceIDKey))) {
		return false
	}
	if s := trimOWS(single(carrier, contractSpanIDKey)); s != "" {
		if len(s) != 16 || !parseID(cfg.SpanID[:], strings.ToLower(s)) {
			return false
		}
		if s := trimOWS(single(carrier, contractParentSpanIDKey)); len(s) == 16 {
			parseID(r.parentSpanID[:], strings.ToLower(s))
		}
	}
	r.sc, r.sampling = trace.NewSpanContext(cfg), SamplingDeferred
	return true
}

// parseTraceID reads 32 or 16 digits or a UUID, in either letter case.
func parseTraceID(id *trace.TraceID, s string) bool {
	switch {
	case len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-':
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	case len(s) != 32 && len(s) != 16:
		return false
	}
	return parseID(id[:], strings.ToLower(s))
}

func writeContract(o *outgoing, carrier propagation.TextMapCarrier) {
	if !o.sc.HasTraceID() {
		return
	}
	carrier.Set(contractTraceIDKey, o.sc.TraceID().String())
	span, parent := "", ""
	if o.sc.HasSpanID() {
		span = o.sc.SpanID().String()
	}
	if id := o.parentSpanID(); id.IsValid() {
		parent = id.String()
	}
	replace(carrier, contractSpanIDKey, span)
	replace(carrier, contractParentSpanIDKey, parent)
}

// readTraceName reads a header that names a trace and no span of it.
func readTraceName(carrier propagation.TextMapCarrier, key string, r *remote) bool {
	s := trimOWS(single(carrier, key))
	cfg := trace.SpanContextConfig{Remote: true}
	if !parseTraceID(&cfg.TraceID, s) {
		if !isTraceName(s) {
			return false
		}
		cfg.TraceID = hashTraceName(s)
		r.traceName = s
	}
	r.sc, r.sampling = trace.NewSpanContext(cfg), SamplingDeferred
	return true
}

// isTraceName reports whether s may name a trace. An ID of zeros names none.
func isTraceName(s string) bool {
	if len(s) > maxTraceName || strings.Trim(s, "0-") == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// hashTraceName is the same in every process that reads the name.
func hashTraceName(name string) (id trace.TraceID) {
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	return id
}

func writeTraceName(o *outgoing, carrier propagation.TextMapCarrier, key string) {
	switch {
	case o.st != nil && o.st.traceName != "":
		carrier.Set(key, o.st.traceName)
	case o.sc.HasTraceID():
		carrier.Set(key, o.sc.TraceID().String())
	}
}
