package propagation

import (
	"encoding/base64"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A binaryCarrier holds the bytes of keys that end in "-bin" in the way of its
// transport. Other carriers may be text only.
type binaryCarrier interface{ holdsBytes() }

func writeTraceBin(o *outgoing, carrier propagation.TextMapCarrier) {
	if !o.sc.IsValid() {
		return
	}
	all := EncodeTraceBin(o.sc)
	value := all[:]
	if o.sampling == SamplingDeferred {
		value = value[:traceBinFlags] // absent flags are what says so
	}
	if md, ok := carrier.(GRPCMetadata); ok {
		md.Set(traceBinKey, string(value))
		return
	}
	if _, ok := carrier.(binaryCarrier); ok { // binary keys are theirs to encode
		carrier.Set(traceBinKey, string(value))
		return
	}
	carrier.Set(traceBinKey, base64.RawStdEncoding.EncodeToString(value))
}

func readTraceBin(carrier propagation.TextMapCarrier, r *remote) bool {
	if h, ok := carrier.(HTTPHeader); ok { // as it came, which spares decoding values never used
		return firstTraceBin("", h[traceBinField], r)
	}
	one, several := fieldsOf(carrier, traceBinKey)
	return firstTraceBin(one, several, r)
}

// maxTraceBinValues bounds how many values are tried in search of a valid one.
const maxTraceBinValues = 16

// firstTraceBin reads the first valid one of some values, each of which is raw
// bytes or a list of base64 items.
func firstTraceBin(one string, several []string, r *remote) bool {
	if several == nil {
		tried := 0
		return one != "" && readTraceBinValue(one, &tried, r)
	}
	tried := 0
	for _, value := range several {
		if readTraceBinValue(value, &tried, r) {
			return true
		}
		if tried >= maxTraceBinValues {
			break
		}
	}
	return false
}

func readTraceBinValue(value string, tried *int, r *remote) bool {
	// Raw bytes begin with the version, 0, which base64 text never has.
	if strings.HasPrefix(value, "\x00") {
		*tried++
		return takeTraceBin(value, r)
	}
	for item := range strings.SplitSeq(value, ",") {
		if decodeTraceBinText(item, r) {
			return true
		}
		if *tried++; *tried >= maxTraceBinValues {
			break
		}
	}
	return false
}

// decodeTraceBinText decodes base64, padded or not.
func decodeTraceBinText(s string, r *remote) bool {
	s = strings.TrimRight(trimOWS(s), "=")
	var buf [2 * traceBinLen]byte // fields behind the known ones are rare
	if base64.RawStdEncoding.DecodedLen(len(s)) > len(buf) {
		b, err := base64.RawStdEncoding.DecodeString(s)
		return err == nil && takeTraceBin(b, r)
	}
	n, err := base64.RawStdEncoding.Decode(buf[:], []byte(s))
	return err == nil && takeTraceBin(buf[:n], r)
}

func takeTraceBin[T []byte | string](b T, r *remote) bool {
	cfg, flagged, ok := decodeTraceBin(b)
	if !ok {
		return false
	}
	r.sc = trace.NewSpanContext(cfg)
	if !flagged {
		r.sampling = SamplingDeferred
	}
	return true
}

// The layout of grpc-trace-bin: a version byte, then fields in ascending order
// of their ids, each an id byte and a value of fixed length.
const (
	traceBinVersion      = 0
	traceBinFieldTraceID = 0
	traceBinFieldSpanID  = 1
	traceBinFieldFlags   = 2

	traceBinSpanID = 1 + (1 + 16)             // where the field begins
	traceBinFlags  = traceBinSpanID + (1 + 8) // the same
	traceBinLen    = traceBinFlags + (1 + 1)  // of all three
)

// EncodeTraceBin returns the grpc-trace-bin form of sc. Of the trace flags it
// has those that W3C Trace Context Level 2 defines (sampled and random). An
// invalid sc gives a value that [DecodeTraceBin] refuses.
func EncodeTraceBin(sc trace.SpanContext) [29]byte {
	traceID, spanID := sc.TraceID(), sc.SpanID()
	var b [traceBinLen]byte
	b[0] = traceBinVersion
	b[1] = traceBinFieldTraceID
	*(*[16]byte)(b[2:]) = traceID
	b[traceBinSpanID] = traceBinFieldSpanID
	*(*[8]byte)(b[traceBinSpanID+1:]) = spanID
	b[traceBinFlags] = traceBinFieldFlags
	b[traceBinFlags+1] = byte(sc.TraceFlags() & knownFlags)
	return b
}

// DecodeTraceBin returns the span context that b holds in grpc-trace-bin form,
// marked as remote, and whether there is a valid one.
//
// Fields may be absent: without flags the flags are 0, without an id the
// result is invalid. Decoding stops without error at a field that is unknown
// or out of order. A known field that is cut short makes all of b invalid, as
// do another version than 0 and an id of zeros. Unknown flags are ignored.
func DecodeTraceBin(b []byte) (trace.SpanContext, bool) {
	cfg, _, ok := decodeTraceBin(b)
	if !ok {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(cfg), true
}

// decodeTraceBin decodes bytes, or the string that metadata holds, without a
// conversion between them. A value without both IDs is invalid, so that they
// stand where they always stand. It also reports whether there are flags.
func decodeTraceBin[T []byte | string](b T) (cfg trace.SpanContextConfig, flagged, ok bool) {
	if len(b) < traceBinFlags || b[0] != traceBinVersion ||
		b[1] != traceBinFieldTraceID || b[traceBinSpanID] != traceBinFieldSpanID {
		return cfg, false, false
	}
	copy(cfg.TraceID[:], b[2:traceBinSpanID])
	copy(cfg.SpanID[:], b[traceBinSpanID+1:traceBinFlags])
	if len(b) > traceBinFlags && b[traceBinFlags] == traceBinFieldFlags {
		if len(b) < traceBinLen {
			return cfg, false, false
		}
		cfg.TraceFlags, flagged = trace.TraceFlags(b[traceBinFlags+1])&knownFlags, true
	}
	cfg.Remote = true
	return cfg, flagged, cfg.TraceID.IsValid() && cfg.SpanID.IsValid()
}
