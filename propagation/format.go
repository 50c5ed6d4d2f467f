package propagation

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A Format is one way to write a trace context into a carrier. The constants
// stand in order of precedence. Each is a propagator by itself, over any carrier;
// a [Bridge] combines them.
//
// A value that is invalid, or that a request has more than once where that is
// not allowed, is as if it were absent.
type Format uint8

const (
	// W3C is W3C Trace Context, Level 2: traceparent and tracestate
	// (https://www.w3.org/TR/trace-context-2/). A tracestate that is invalid is
	// dropped as a whole, never the traceparent with it. Keys of Level 2 that
	// [trace.TraceState] cannot hold travel in the context beside it.
	W3C Format = iota + 1
	// TraceBin is grpc-trace-bin, the binary header of OpenCensus and of gRPC
	// libraries before OpenTelemetry
	// (https://github.com/census-instrumentation/opencensus-specs/blob/master/encodings/BinaryEncoding.md).
	// It is bytes in gRPC metadata and Kafka headers, and base64 elsewhere;
	// either is read from any carrier, and of several values the first valid one.
	TraceBin
	// B3 is Zipkin's b3 header (https://github.com/openzipkin/b3-propagation). It
	// reads the single header and, failing that, the X-B3-* headers, and writes
	// the single one.
	B3
	// B3Multi reads what B3 reads and writes the X-B3-* headers.
	B3Multi
	// Jaeger is uber-trace-id, of Jaeger's own clients. It reads the URL-encoded
	// form of those clients as well.
	Jaeger
	// Contract is trace-id, span-id and parent-span-id, where parent-span-id is
	// the parent of the sender's span. Without a span-id the next span joins
	// the trace as a root. It has no sampled flag: the decision is deferred.
	Contract
	// XTraceID is x-trace-id: 32 or 16 hexadecimal digits, a UUID, or any other
	// text of at most 256 printable characters, whose SHA-256 then begins with
	// the trace ID. The next span joins the trace as a root.
	XTraceID
	// JaegerTraceID is TRACE_ID, as some gateways pass the trace of Jaeger on.
	// It is read as XTraceID is.
	JaegerTraceID
)

var _ propagation.TextMapPropagator = W3C

// formats has what the dispatch needs of each format. The size is that of all
// headers of the format at their longest, without tracestate, as HTTP/2 counts.
var formats = [...]struct {
	name   string
	fields []string
	size   int
}{
	W3C:           {"w3c", []string{traceparentKey, tracestateKey}, headerSize(traceparentKey, traceparentLen)},
	TraceBin:      {"grpc-trace-bin", []string{traceBinKey}, headerSize(traceBinKey, 40)},
	B3:            {"b3", b3Fields, headerSize(b3Key, 32+1+16+1+1+1+16)},
	B3Multi:       {"b3multi", b3Fields, headerSize(b3TraceIDKey, 32) + headerSize(b3SpanIDKey, 16) + headerSize(b3ParentSpanIDKey, 16) + headerSize(b3SampledKey, 1)},
	Jaeger:        {"jaeger", []string{jaegerKey}, headerSize(jaegerKey, 32+1+16+1+16+1+1)},
	Contract:      {"contract", []string{contractTraceIDKey, contractSpanIDKey, contractParentSpanIDKey}, headerSize(contractTraceIDKey, 32) + headerSize(contractSpanIDKey, 16) + headerSize(contractParentSpanIDKey, 16)},
	XTraceID:      {"x-trace-id", []string{xTraceIDKey}, headerSize(xTraceIDKey, maxTraceName)},
	JaegerTraceID: {"trace_id", []string{jaegerTraceIDKey}, headerSize(jaegerTraceIDKey, maxTraceName)},
}

func (f Format) valid() bool { return f > 0 && int(f) < len(formats) }

// String returns the name of the format, such as "w3c" or "grpc-trace-bin".
func (f Format) String() string {
	if !f.valid() {
		return "Format(" + strconv.Itoa(int(f)) + ")"
	}
	return formats[f].name
}

// Fields returns the header names that Inject writes or, where they were copied from
// a request, removes.
func (f Format) Fields() []string {
	if !f.valid() {
		return nil
	}
	return append([]string(nil), formats[f].fields...)
}

// Extract returns ctx with the trace context that carrier holds as the parent of
// the next span, or ctx itself if carrier holds none that is valid.
func (f Format) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	var r remote
	if !f.read(carrier, &r) {
		return ctx
	}
	return r.into(ctx)
}

// Inject writes the trace context of ctx to carrier, if it has a valid one. What
// carrier already holds of this format, for instance because a proxy copied it
// from the request that it forwards, is replaced.
func (f Format) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	o := outgoingOf(ctx)
	f.clear(&o, carrier)
	f.write(&o, carrier)
}

// read fills r with what carrier holds, and reports whether that is valid.
func (f Format) read(carrier propagation.TextMapCarrier, r *remote) bool {
	switch f {
	case W3C:
		return readW3C(carrier, r)
	case TraceBin:
		return readTraceBin(carrier, r)
	case B3, B3Multi:
		return readB3(carrier, r)
	case Jaeger:
		return readJaeger(carrier, r)
	case Contract:
		return readContract(carrier, r)
	case XTraceID:
		return readTraceName(carrier, xTraceIDKey, r)
	case JaegerTraceID:
		return readTraceName(carrier, jaegerTraceIDKey, r)
	default:
		return false
	}
}

// clear removes from carrier what write does not replace though it contradicts it:
// the other form of b3. A format writes after all were cleared.
func (f Format) clear(o *outgoing, carrier propagation.TextMapCarrier) {
	if (f == B3 || f == B3Multi) && (o.sc.IsValid() || o.sampling == SamplingDenied) {
		for _, key := range b3Fields {
			replace(carrier, key, "")
		}
	}
}

// write writes o to carrier, as far as the format can say it.
func (f Format) write(o *outgoing, carrier propagation.TextMapCarrier) {
	switch f {
	case W3C:
		writeW3C(o, carrier)
	case TraceBin:
		writeTraceBin(o, carrier)
	case B3:
		writeB3(o, carrier)
	case B3Multi:
		writeB3Multi(o, carrier)
	case Jaeger:
		writeJaeger(o, carrier)
	case Contract:
		writeContract(o, carrier)
	case XTraceID:
		writeTraceName(o, carrier, xTraceIDKey)
	case JaegerTraceID:
		writeTraceName(o, carrier, jaegerTraceIDKey)
	}
}

// outgoing is what the formats write.
type outgoing struct {
	span     trace.Span
	sc       trace.SpanContext
	st       *state // nil, or of the trace of sc
	sampling Sampling
	parent   trace.SpanID // the parent of the caller's span, where that is sent on
	room     int          // bytes for the tracestate, 0 for as many as it has
	shed     int          // tracestate members that found no room
}

// outgoingOf returns what ctx says. Where the current span is still the caller's,
// as in a proxy without spans of its own, so are sampling state and parent.
// A span of this process has its own.
func outgoingOf(ctx context.Context) outgoing {
	span := trace.SpanFromContext(ctx)
	o := outgoing{span: span, sc: span.SpanContext()}
	st := stateOf(ctx)
	if st == nil {
		return o
	}
	if !o.sc.HasTraceID() && st.sampling == SamplingDenied {
		o.sampling = SamplingDenied
	}
	if o.st = st.of(o.sc); o.st == nil {
		return o
	}
	switch {
	case o.sc.IsRemote():
		o.sampling, o.parent = o.st.sampling, o.st.parentSpanID
	case o.st.sampling == SamplingDebug && o.sc.IsSampled():
		o.sampling = SamplingDebug // debug is meant for the whole trace
	}
	return o
}

// parentSpanID is the parent of the span that is sent, if known: that of spans
// of the SDK is.
func (o *outgoing) parentSpanID() trace.SpanID {
	if o.parent.IsValid() {
		return o.parent
	}
	if child, ok := o.span.(childSpan); ok {
		return child.Parent().SpanID()
	}
	return trace.SpanID{}
}
