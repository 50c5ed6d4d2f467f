package propagation_test

import (
	"context"
	"net/http"
	"testing"

	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

const (
	benchTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	benchTracestate  = "ot=th:8,vendor=opaque-0123456789"
)

// BenchmarkHTTPToGRPC is one hop of a gateway: read the trace context of an
// HTTP request, write it to fresh gRPC metadata. "otel" does so with
// OpenTelemetry's own propagators and carriers; "member" adds a tracestate member
// of our own. The headers are the same.
func BenchmarkHTTPToGRPC(b *testing.B) {
	bridge := propagation.New()
	composite := otelprop.NewCompositeTextMapPropagator(otelprop.TraceContext{}, otelprop.Baggage{})
	member := propagation.Member{Caller: true}
	for _, bag := range []string{"", "tenant=acme,session.id=s%201;ttl=60"} {
		header, suffix := http.Header{}, ""
		header.Set("Traceparent", benchTraceparent)
		header.Set("Tracestate", benchTracestate)
		if bag != "" {
			header.Set("Baggage", bag)
			suffix = "+baggage"
		}
		b.Run("otelgenai"+suffix, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := bridge.Extract(context.Background(), propagation.HTTPHeader(header))
				bridge.Inject(ctx, propagation.GRPCMetadata{})
			}
		})
		b.Run("otel"+suffix, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := composite.Extract(context.Background(), otelprop.HeaderCarrier(header))
				composite.Inject(ctx, metadataCarrier{})
			}
		})
		b.Run("member"+suffix, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := bridge.Extract(context.Background(), propagation.HTTPHeader(header))
				bridge.Inject(propagation.ContextWithMember(ctx, member), propagation.GRPCMetadata{})
			}
		})
	}
}

// BenchmarkTraceBin is a value of grpc-trace-bin: made, read, and both over gRPC
// metadata.
func BenchmarkTraceBin(b *testing.B) {
	sc := mustSpanContext(b, benchTraceparent, "")
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			propagation.EncodeTraceBin(sc)
		}
	})
	value := propagation.EncodeTraceBin(sc)
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			propagation.DecodeTraceBin(value[:])
		}
	})
	ctx := trace.ContextWithSpanContext(context.Background(), sc)
	b.Run("grpc", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			md := propagation.GRPCMetadata{}
			propagation.TraceBin.Inject(ctx, md)
			propagation.TraceBin.Extract(context.Background(), md)
		}
	})
}

func BenchmarkHasCallerMark(b *testing.B) {
	sc := mustSpanContext(b, benchTraceparent, "ot=th:8,genai=c:1")
	b.ReportAllocs()
	for b.Loop() {
		propagation.HasCallerMark(sc)
	}
}

// metadataCarrier is the least that a carrier over gRPC metadata can do.
type metadataCarrier metadata.MD

func (c metadataCarrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c metadataCarrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

func (c metadataCarrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}

// mustSpanContext reads a remote span context with OpenTelemetry's own
// propagator, so that tests of this package do not rest on its parser.
func mustSpanContext(tb testing.TB, traceparent, tracestate string) trace.SpanContext {
	tb.Helper()
	ctx := otelprop.TraceContext{}.Extract(context.Background(), otelprop.MapCarrier{
		"traceparent": traceparent,
		"tracestate":  tracestate,
	})
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		tb.Fatalf("no span context in %q", traceparent)
	}
	return sc
}
