package propagation

import (
	"context"
	"encoding/base64"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TraceBin is the propagator of grpc-trace-bin, the binary header of
// OpenCensus and of gRPC libraries before OpenTelemetry
// (https://github.com/census-instrumentation/opencensus-specs/blob/master/encodings/BinaryEncoding.md).
//
// It carries ids and flags, no tracestate: use it beside [W3C], as
// [WithTraceBin] does, not in its place.
//
// Over [GRPCMetadata] the value is raw bytes, over [HTTPHeader] and over
// carriers of other packages, which may be text only, it is base64. Either
// form is read from any carrier.
//
// The zero value is ready for use, from any number of goroutines.
type TraceBin struct{}

var (
	_ propagation.TextMapPropagator = TraceBin{}
	_ format                        = TraceBin{}
)

// Inject writes the span context of ctx to carrier, unless it is invalid.
func (p TraceBin) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		p.inject(sc, carrier)
	}
}

// Extract returns ctx with the span context that carrier holds as the remote
// parent, or ctx itself if carrier holds none that is valid. Of several values
// the first valid one counts.
func (p TraceBin) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	sc, ok := p.extract(carrier)
	if !ok {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, sc)
}

// Fields returns the header name that Inject writes.
func (TraceBin) Fields() []string {
	return []string{traceBinKey}
}

func (TraceBin) inject(sc trace.SpanContext, carrier propagation.TextMapCarrier) {
	value := EncodeTraceBin(sc)
	switch carrier.(type) {
	case GRPCMetadata, HTTPHeader: // binary keys are theirs to encode
		carrier.Set(traceBinKey, string(value[:]))
	default:
		carrier.Set(traceBinKey, base64.RawStdEncoding.EncodeToString(value[:]))
	}
}

func (TraceBin) extract(carrier propagation.TextMapCarrier) (trace.SpanContext, bool) {
	switch c := carrier.(type) {
	case HTTPHeader: // as it came, which spares decoding values never used
		return firstTraceBin(c[traceBinField])
	case propagation.ValuesGetter:
		return firstTraceBin(c.Values(traceBinKey))
	default:
		return firstTraceBin([]string{carrier.Get(traceBinKey)})
	}
}

// maxTraceBinValues bounds how many values are tried in search of a valid one.
const maxTraceBinValues = 16

// firstTraceBin returns the first valid span context among values, each of
// which is raw bytes or a list of base64 items.
func firstTraceBin(values []string) (trace.SpanContext, bool) {
	tried := 0
	for _, value := range values {
		// Raw bytes begin with the version, 0, which base64 text never has.
		if strings.HasPrefix(value, "\x00") {
			if sc, ok := decodeTraceBin(value); ok {
				return sc, true
			}
			tried++
			continue
		}
		for item := range strings.SplitSeq(value, ",") {
			if sc, ok := decodeTraceBinText(item); ok {
				return sc, true
			}
			if tried++; tried >= maxTraceBinValues {
				return trace.SpanContext{}, false
			}
		}
	}
	return trace.SpanContext{}, false
}

// decodeTraceBinText decodes base64, padded or not.
func decodeTraceBinText(s string) (trace.SpanContext, bool) {
	s = strings.TrimRight(trimOWS(s), "=")
	var buf [2 * traceBinLen]byte // fields behind the known ones are rare
	if base64.RawStdEncoding.DecodedLen(len(s)) > len(buf) {
		b, err := base64.RawStdEncoding.DecodeString(s)
		if err != nil {
			return trace.SpanContext{}, false
		}
		return decodeTraceBin(b)
	}
	n, err := base64.RawStdEncoding.Decode(buf[:], []byte(s))
	if err != nil {
		return trace.SpanContext{}, false
	}
	return decodeTraceBin(buf[:n])
}

// The layout of grpc-trace-bin: a version byte, then fields in ascending order
// of their ids, each an id byte and a value of fixed length.
const (
	traceBinVersion      = 0
	traceBinFieldTraceID = 0
	traceBinFieldSpanID  = 1
	traceBinFieldFlags   = 2

	traceBinLen = 1 + (1 + 16) + (1 + 8) + (1 + 1)
)

// EncodeTraceBin returns the grpc-trace-bin form of sc. Of the trace flags it
// has those that W3C Trace Context Level 2 defines (sampled and random). An
// invalid sc gives a value that [DecodeTraceBin] refuses.
func EncodeTraceBin(sc trace.SpanContext) [29]byte {
	traceID, spanID := sc.TraceID(), sc.SpanID()
	var b [traceBinLen]byte
	b[0] = traceBinVersion
	b[1] = traceBinFieldTraceID
	copy(b[2:], traceID[:])
	b[18] = traceBinFieldSpanID
	copy(b[19:], spanID[:])
	b[27] = traceBinFieldFlags
	b[28] = byte(sc.TraceFlags() & knownFlags)
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
	return decodeTraceBin(b)
}

// decodeTraceBin is DecodeTraceBin for bytes and for strings, which metadata
// holds, without a conversion between them.
func decodeTraceBin[T []byte | string](b T) (trace.SpanContext, bool) {
	if len(b) == 0 || b[0] != traceBinVersion {
		return trace.SpanContext{}, false
	}
	cfg := trace.SpanContextConfig{Remote: true}
	var flags [1]byte
	b, ok := readField(b[1:], traceBinFieldTraceID, cfg.TraceID[:])
	if ok {
		b, ok = readField(b, traceBinFieldSpanID, cfg.SpanID[:])
	}
	if ok {
		_, ok = readField(b, traceBinFieldFlags, flags[:])
	}
	if !ok || !cfg.TraceID.IsValid() || !cfg.SpanID.IsValid() {
		return trace.SpanContext{}, false
	}
	cfg.TraceFlags = trace.TraceFlags(flags[0]) & knownFlags
	return trace.NewSpanContext(cfg), true
}

// readField fills value from the field at the start of b, if that has the
// given id, and returns what follows. It reports false if the field is cut
// short.
func readField[T []byte | string](b T, id byte, value []byte) (rest T, ok bool) {
	if len(b) == 0 || b[0] != id {
		return b, true
	}
	if len(b) < 1+len(value) {
		return b, false
	}
	return b[1+copy(value, b[1:]):], true
}
