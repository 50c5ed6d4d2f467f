package propagation

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Bridge is a propagator that reads the first valid one of several trace
// context formats, writes all of them, and carries W3C baggage.
//
// The order of precedence is fixed: [W3C], then [TraceBin] if [WithTraceBin]
// was given. A format that is present but invalid gives way to the next, and a
// valid one is never overwritten by a later one, as it would be in a
// [propagation.NewCompositeTextMapPropagator].
//
// Baggage is carried as by [propagation.Baggage], with its limits: on reading,
// 64 members and 8192 bytes over all fields.
//
// Make one with [New]. The zero value and a nil *Bridge are New(). A Bridge is
// immutable and may be used by any number of goroutines.
type Bridge struct {
	// others are the formats beside W3C in order of precedence.
	others []format
}

var _ propagation.TextMapPropagator = (*Bridge)(nil)

// format is one representation of a span context on the wire.
type format interface {
	// extract returns the span context that carrier holds, if it is valid.
	extract(carrier propagation.TextMapCarrier) (trace.SpanContext, bool)
	// inject writes sc, which is valid, to carrier.
	inject(sc trace.SpanContext, carrier propagation.TextMapCarrier)
	// Fields returns the keys that inject writes.
	Fields() []string
}

// Option configures a [Bridge].
type Option interface{ apply(*Bridge) }

type optionFunc func(*Bridge)

func (f optionFunc) apply(b *Bridge) { f(b) }

// WithTraceBin also reads and writes grpc-trace-bin, for peers that know no
// other format: OpenCensus, and gRPC libraries with its plugin. It costs 29
// bytes a request, 40 in text. Off by default.
func WithTraceBin() Option {
	return optionFunc(func(b *Bridge) { b.others = []format{TraceBin{}} })
}

// New returns a [Bridge] for W3C Trace Context and baggage and for the formats
// that the options add. Without options it is the propagator to use where
// none was chosen.
func New(opts ...Option) *Bridge {
	b := new(Bridge)
	for _, opt := range opts {
		if opt != nil {
			opt.apply(b)
		}
	}
	return b
}

// Inject writes the span context of ctx to carrier in every format of b,
// unless it is invalid, and the baggage of ctx, unless there is none.
func (b *Bridge) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		W3C{}.inject(sc, carrier)
		for _, f := range b.otherFormats() {
			f.inject(sc, carrier)
		}
	}
	propagation.Baggage{}.Inject(ctx, carrier)
}

// Extract returns ctx with the span context that carrier holds as the remote
// parent, and with the baggage that carrier holds. Each is left as it is in
// ctx if carrier holds none that is valid.
func (b *Bridge) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	sc, ok := W3C{}.extract(carrier)
	for _, f := range b.otherFormats() {
		if ok {
			break
		}
		sc, ok = f.extract(carrier)
	}
	if ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return propagation.Baggage{}.Extract(ctx, carrier)
}

// Fields returns the header names that Inject writes.
func (b *Bridge) Fields() []string {
	fields := W3C{}.Fields()
	for _, f := range b.otherFormats() {
		fields = append(fields, f.Fields()...)
	}
	return append(fields, propagation.Baggage{}.Fields()...)
}

func (b *Bridge) otherFormats() []format {
	if b == nil {
		return nil
	}
	return b.others
}
