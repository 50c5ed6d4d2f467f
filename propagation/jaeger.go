package propagation

import (
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	jaegerKey     = "uber-trace-id"
	jaegerSampled = 1
	jaegerDebug   = 2

	// maxJaegerLen bounds what is decoded: all fields at their longest, with each
	// separator URL-encoded, and some room.
	maxJaegerLen = 128
)

// readJaeger reads {trace}:{span}:{parent}:{flags}. IDs have no leading zeros,
// the parent is 0 if there is none, and clients may URL-encode the value.
func readJaeger(carrier propagation.TextMapCarrier, r *remote) bool {
	s := trimOWS(single(carrier, jaegerKey))
	if len(s) > maxJaegerLen {
		return false
	}
	if strings.Contains(s, "%") {
		s, _ = url.PathUnescape(s)
	}
	traceID, s, _ := strings.Cut(s, ":")
	spanID, s, _ := strings.Cut(s, ":")
	parent, flags, _ := strings.Cut(s, ":")
	cfg := trace.SpanContextConfig{Remote: true}
	bits, err := strconv.ParseUint(flags, 16, 8)
	if err != nil || !parseID(cfg.TraceID[:], traceID) || !parseID(cfg.SpanID[:], spanID) {
		return false
	}
	if !parseID(r.parentSpanID[:], parent) {
		if strings.Trim(parent, "0") != "" {
			return false
		}
		r.parentSpanID = trace.SpanID{}
	}
	switch {
	case bits&jaegerDebug != 0: // debug implies sampled
		cfg.TraceFlags, r.sampling = trace.FlagsSampled, SamplingDebug
	case bits&jaegerSampled != 0:
		cfg.TraceFlags = trace.FlagsSampled
	}
	r.sc = trace.NewSpanContext(cfg)
	return true
}

func writeJaeger(o *outgoing, carrier propagation.TextMapCarrier) {
	if !o.sc.IsValid() {
		return
	}
	traceID, spanID := o.sc.TraceID(), o.sc.SpanID()
	var stack [32 + 1 + 16 + 1 + 16 + 1 + 1]byte
	buf := appendHex(stack[:0], traceID[:]...)
	buf = append(buf, ':')
	buf = appendHex(buf, spanID[:]...)
	buf = append(buf, ':')
	if o.parent.IsValid() {
		buf = appendHex(buf, o.parent[:]...)
	} else {
		buf = append(buf, '0')
	}
	flags := byte('0')
	switch {
	case o.sampling == SamplingDebug:
		flags = '3'
	case o.sc.IsSampled():
		flags = '1'
	}
	carrier.Set(jaegerKey, string(append(buf, ':', flags)))
}
