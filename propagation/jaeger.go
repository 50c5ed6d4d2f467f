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

// readJaeger reads {trace}:{span}:{parent}:{flags}. IDs may lack leading zeros, the
// parent is 0 if there is none, and clients may URL-encode the value.
func readJaeger(carrier propagation.TextMapCarrier, r *remote) bool {
	s := trimOWS(single(carrier, jaegerKey))
	if len(s) > maxJaegerLen {
		return false
	}
	if strings.Contains(s, "%") {
		s, _ = url.PathUnescape(s)
	}
	fields := strings.SplitN(s, ":", 5)
	cfg := trace.SpanContextConfig{Remote: true}
	if len(fields) != 4 || !parseID(cfg.TraceID[:], fields[0]) || !parseID(cfg.SpanID[:], fields[1]) {
		return false
	}
	bits, err := strconv.ParseUint(fields[3], 16, 8)
	switch {
	case fields[3] == "":
		r.sampling = SamplingDeferred
	case err != nil:
		return false
	case bits&jaegerSampled != 0: // without it debug must not be set, and means nothing
		cfg.TraceFlags = trace.FlagsSampled
		if bits&jaegerDebug != 0 {
			r.sampling = SamplingDebug
		}
	}
	parseID(r.parentSpanID[:], fields[2]) // which Jaeger itself ignores
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
	buf = append(buf, ':')
	switch {
	case o.sampling == SamplingDeferred:
	case o.sampling == SamplingDebug:
		buf = append(buf, '0'+jaegerSampled+jaegerDebug)
	case o.sc.IsSampled():
		buf = append(buf, '0'+jaegerSampled)
	default:
		buf = append(buf, '0')
	}
	carrier.Set(jaegerKey, string(buf))
}
