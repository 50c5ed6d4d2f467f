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
// OpenTelemetry's own propagator and carriers; "+mark" adds the caller mark.
func BenchmarkHTTPToGRPC(b *testing.B) {
	header := http.Header{}
	header.Set("Traceparent", benchTraceparent)
	header.Set("Tracestate", benchTracestate)

	b.Run("otelgenai", func(b *testing.B) {
		w3c := propagation.W3C
		b.ReportAllocs()
		for b.Loop() {
			ctx := w3c.Extract(context.Background(), propagation.HTTPHeader(header))
			w3c.Inject(ctx, propagation.GRPCMetadata{})
		}
	})
	b.Run("otel", func(b *testing.B) {
		w3c := otelprop.TraceContext{}
		b.ReportAllocs()
		for b.Loop() {
			ctx := w3c.Extract(context.Background(), otelprop.HeaderCarrier(header))
			w3c.Inject(ctx, metadataCarrier{})
		}
	})
	b.Run("otelgenai+mark", func(b *testing.B) {
		w3c := propagation.W3C
		b.ReportAllocs()
		for b.Loop() {
			ctx := w3c.Extract(context.Background(), propagation.HTTPHeader(header))
			w3c.Inject(propagation.ContextWithCallerMark(ctx), propagation.GRPCMetadata{})
		}
	})
}

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
