package propagation

import (
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The layout of a traceparent of version 00. Later versions begin in the same
// way and may go on after a dash.
//
//	00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//	0  3                                36               53
const (
	traceparentTraceID = 3
	traceparentSpanID  = 36
	traceparentFlags   = 53
	traceparentLen     = 55
)

// knownFlags are the trace flags that Level 2 defines. All others are ignored
// when read and zero when written, as the specification demands.
const knownFlags = trace.FlagsSampled | trace.FlagsRandom

func readW3C(carrier propagation.TextMapCarrier, r *remote) bool {
	cfg, ok := parseTraceparent(single(carrier, traceparentKey))
	if !ok {
		return false
	}
	readTraceState(carrier, &cfg, r)
	r.sc = trace.NewSpanContext(cfg)
	return true
}

// writeW3C replaces the tracestate as well, even by none: it belongs to the
// traceparent.
func writeW3C(o *outgoing, carrier propagation.TextMapCarrier) {
	if !o.sc.IsValid() {
		return
	}
	parent, state := formatW3C(o)
	carrier.Set(traceparentKey, parent)
	if state != "" || carrier.Get(tracestateKey) != "" {
		carrier.Set(tracestateKey, state)
	}
}

// parseTraceparent reads a traceparent of any version, leaving aside what
// versions after 00 append.
func parseTraceparent(s string) (trace.SpanContextConfig, bool) {
	cfg := trace.SpanContextConfig{Remote: true}
	s = trimOWS(s)
	if len(s) < traceparentLen || s[2] != '-' ||
		s[traceparentSpanID-1] != '-' || s[traceparentFlags-1] != '-' {
		return cfg, false
	}
	var version, flags [1]byte
	if !decodeHex(version[:], s[:2]) ||
		!decodeHex(cfg.TraceID[:], s[traceparentTraceID:traceparentSpanID-1]) ||
		!decodeHex(cfg.SpanID[:], s[traceparentSpanID:traceparentFlags-1]) ||
		!decodeHex(flags[:], s[traceparentFlags:traceparentLen]) {
		return cfg, false
	}
	if len(s) > traceparentLen && (version[0] == 0 || s[traceparentLen] != '-') {
		return cfg, false
	}
	cfg.TraceFlags = trace.TraceFlags(flags[0]) & knownFlags
	return cfg, version[0] != 0xff && cfg.TraceID.IsValid() && cfg.SpanID.IsValid()
}

// formatW3C returns the traceparent of version 00 and the tracestate of o, in
// one allocation unless the tracestate needs to be put together anew.
func formatW3C(o *outgoing) (parent, state string) {
	var stack [256]byte // enough for most; a longer tracestate allocates
	buf := appendTraceparent(stack[:0], o.sc)
	if o.st != nil && (o.st.hidden != nil || o.sampling != SamplingDecided) {
		return string(buf), rebuildTraceState(o)
	}
	members := o.sc.TraceState()
	if members.Len() == 0 {
		return string(buf), ""
	}
	members.Walk(func(key, value string) bool {
		if len(buf) > traceparentLen {
			buf = append(buf, ',')
		}
		buf = append(buf, key...)
		buf = append(buf, '=')
		buf = append(buf, value...)
		return true
	})
	both := string(buf)
	if o.room > 0 && len(both)-traceparentLen > o.room {
		return both[:traceparentLen], rebuildTraceState(o)
	}
	return both[:traceparentLen], both[traceparentLen:]
}

func appendTraceparent(buf []byte, sc trace.SpanContext) []byte {
	traceID, spanID := sc.TraceID(), sc.SpanID()
	buf = append(buf, "00-"...)
	buf = appendHex(buf, traceID[:]...)
	buf = append(buf, '-')
	buf = appendHex(buf, spanID[:]...)
	buf = append(buf, '-')
	return appendHex(buf, byte(sc.TraceFlags()&knownFlags))
}

const hexDigits = "0123456789abcdef"

// hexValue has 0x10 plus the value of each hexadecimal digit, and 0 for every
// other byte. Upper case is no digit: the specification forbids it.
var hexValue = [256]byte{
	'0': 0x10, '1': 0x11, '2': 0x12, '3': 0x13, '4': 0x14, '5': 0x15, '6': 0x16, '7': 0x17,
	'8': 0x18, '9': 0x19, 'a': 0x1a, 'b': 0x1b, 'c': 0x1c, 'd': 0x1d, 'e': 0x1e, 'f': 0x1f,
}

// decodeHex fills dst with the bytes that src writes as two digits each, and
// reports whether src has digits only.
func decodeHex(dst []byte, src string) bool {
	digits := byte(0x10)
	for i := range dst {
		hi, lo := hexValue[src[2*i]], hexValue[src[2*i+1]]
		dst[i] = hi<<4 | lo&0xf
		digits &= hi & lo
	}
	return digits != 0
}

// hexPairs has the two digits of every byte.
var hexPairs = func() (pairs [512]byte) {
	for i := range 256 {
		pairs[2*i], pairs[2*i+1] = hexDigits[i>>4], hexDigits[i&0xf]
	}
	return pairs
}()

// appendHex appends src to dst, two digits a byte.
func appendHex(dst []byte, src ...byte) []byte {
	for _, b := range src {
		dst = append(dst, hexPairs[2*int(b)], hexPairs[2*int(b)+1])
	}
	return dst
}

// parseID fills dst, a trace or span ID, with 1 to 2*len(dst) hexadecimal digits,
// padded with zeros on the left, and reports whether they are an ID. If not, dst
// is zero.
func parseID(dst []byte, digits string) bool {
	const zeros = "00000000000000000000000000000000"
	missing := 2*len(dst) - len(digits)
	if digits == "" || missing < 0 {
		return false
	}
	if missing > 0 {
		digits = zeros[:missing] + digits
	}
	if !decodeHex(dst, digits) {
		clear(dst)
		return false
	}
	for _, b := range dst {
		if b != 0 {
			return true
		}
	}
	return false
}
