package propagation

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// W3C is the propagator of W3C Trace Context, Level 2: the headers traceparent
// and tracestate (https://www.w3.org/TR/trace-context-2/).
//
// It reads what OpenTelemetry's own TraceContext reads, and also what that one
// refuses although the specification allows it: whitespace around the value,
// flags of a later version, repeated tracestate fields, empty or duplicate
// tracestate members. A tracestate that cannot be read in full loses the
// members that cannot be read, never the others and never the traceparent.
// Members that [trace.TraceState] cannot hold, whose grammar is that of Level
// 1, are among those: keys that begin with a digit or have several "@".
//
// The zero value is ready for use, from any number of goroutines.
type W3C struct{}

var (
	_ propagation.TextMapPropagator = W3C{}
	_ format                        = W3C{}
)

// Inject writes the span context of ctx to carrier, unless it is invalid. A
// tracestate that carrier already holds, for instance one that a proxy copied
// from the request it forwards, belongs to another traceparent and is replaced
// even if the span context has none.
func (p W3C) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		p.inject(sc, carrier)
	}
}

// Extract returns ctx with the span context that carrier holds as the remote
// parent, or ctx itself if carrier holds none that is valid. Two traceparent
// values are none, even if they are equal.
func (p W3C) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	sc, ok := p.extract(carrier)
	if !ok {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, sc)
}

// Fields returns the header names that Inject writes.
func (W3C) Fields() []string {
	return []string{traceparentKey, tracestateKey}
}

func (W3C) inject(sc trace.SpanContext, carrier propagation.TextMapCarrier) {
	parent, state := formatW3C(sc)
	carrier.Set(traceparentKey, parent)
	if state != "" || carrier.Get(tracestateKey) != "" {
		carrier.Set(tracestateKey, state)
	}
}

func (W3C) extract(carrier propagation.TextMapCarrier) (trace.SpanContext, bool) {
	cfg, ok := parseTraceparent(single(carrier, traceparentKey))
	if !ok {
		return trace.SpanContext{}, false
	}
	cfg.TraceState = parseTraceState(combined(carrier, tracestateKey))
	return trace.NewSpanContext(cfg), true
}

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

// formatW3C returns the traceparent of version 00 and the tracestate of sc, in
// one allocation.
func formatW3C(sc trace.SpanContext) (parent, state string) {
	traceID, spanID := sc.TraceID(), sc.SpanID()

	var stack [256]byte // enough for most; a longer tracestate allocates
	buf := append(stack[:0], "00-"...)
	buf = appendHex(buf, traceID[:]...)
	buf = append(buf, '-')
	buf = appendHex(buf, spanID[:]...)
	buf = append(buf, '-')
	buf = appendHex(buf, byte(sc.TraceFlags()&knownFlags))
	sc.TraceState().Walk(func(key, value string) bool {
		if len(buf) > traceparentLen {
			buf = append(buf, ',')
		}
		buf = append(buf, key...)
		buf = append(buf, '=')
		buf = append(buf, value...)
		return true
	})
	both := string(buf)
	return both[:traceparentLen], both[traceparentLen:]
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

// appendHex appends src to dst, two digits a byte.
func appendHex(dst []byte, src ...byte) []byte {
	for _, b := range src {
		dst = append(dst, hexDigits[b>>4], hexDigits[b&0xf])
	}
	return dst
}
