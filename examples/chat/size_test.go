package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// A trace of 2,000 tokens takes a few kilobytes on the wire, where an event a
// token takes 167 KB.
func TestATraceOf2000TokensIsSmallOnTheWire(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := genaitrace.New(genaitrace.WithTracerProvider(
		sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))))
	synctest.Test(t, func(t *testing.T) {
		recordCall(t.Context(), tracer)
		recordInference(t.Context(), tracer)
	})
	spans := recorder.Ended()
	caller, host := spans[:1], spans[1:]
	if name := caller[0].Name(); name != "chat qwen2.5-7b-instruct" || len(host) != 6 {
		t.Fatalf("first span %q and %d others, want the call and the 6 of the host", name, len(host))
	}
	callerBytes, hostBytes := otlpBytes(t, caller), otlpBytes(t, host)
	t.Logf("OTLP, uncompressed: caller's span %d bytes, host's tree %d bytes; an event a token: %d bytes",
		callerBytes, hostBytes, otlpBytes(t, eventPerToken(t.Context())))
	if callerBytes > 3500 || hostBytes > 6000 {
		t.Errorf("more than 3,500 or 6,000 bytes")
	}
}

// eventPerToken is one span that has an event with three attributes for each of
// 2,000 tokens.
func eventPerToken(ctx context.Context) []sdktrace.ReadOnlySpan {
	recorder := tracetest.NewSpanRecorder()
	limits := sdktrace.NewSpanLimits()
	limits.EventCountLimit = -1
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithRawSpanLimits(limits))
	_, span := provider.Tracer("by hand").Start(ctx, "chat qwen2.5-7b-instruct")
	for i := range 2000 {
		span.AddEvent("token", trace.WithAttributes(
			attribute.Int("index", i), attribute.Int("length", 4), attribute.Bool("first", i == 0)))
	}
	span.End()
	return recorder.Ended()
}

func wireRequest() genaitrace.Request {
	return genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", Stream: true,
		MaxTokens: 2048, Temperature: new(0.7), ServerAddress: "engine.internal", ServerPort: 8000}
}

func wireUsage() genaitrace.Usage {
	return genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(2000), CachedTokens: new(1024)}
}

func recordCall(ctx context.Context, tracer *genaitrace.Tracer) {
	_, call := tracer.StartCall(ctx, wireRequest())
	for i := range 2000 {
		time.Sleep(time.Duration(10+i%7) * time.Millisecond)
		call.Chunk(genaitrace.Visible)
	}
	call.SetResponse("chatcmpl-0123456789abcdef", "qwen2.5-7b-instruct")
	call.SetFinish("stop")
	call.SetUsage(wireUsage())
	call.End()
}

func recordInference(ctx context.Context, tracer *genaitrace.Tracer) {
	ctx, inf := tracer.StartInference(ctx, wireRequest())
	_, queue := inf.StartQueue(ctx)
	time.Sleep(35 * time.Millisecond)
	queue.End()
	_, tokenize := inf.StartTokenize(ctx)
	tokenize.SetInputTokens(2456)
	tokenize.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2456, Cached: new(1024)})
	time.Sleep(120 * time.Millisecond)
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	for i := range 2000 {
		decode.Token()
		time.Sleep(time.Duration(10+i%7) * time.Millisecond)
	}
	decode.End()
	_, post := inf.StartPostprocess(ctx)
	post.End()
	inf.SetUsage(wireUsage())
	inf.SetFinish("stop")
	inf.End()
}

// otlpBytes exports spans over OTLP/HTTP protobuf and returns the size of what
// was sent.
func otlpBytes(t *testing.T, spans []sdktrace.ReadOnlySpan) (size int) {
	t.Helper()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		size += len(body)
	}))
	defer collector.Close()
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithInsecure(),
		otlptracehttp.WithEndpoint(strings.TrimPrefix(collector.URL, "http://")),
		otlptracehttp.WithCompression(otlptracehttp.NoCompression))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(exporter.ExportSpans(ctx, spans), exporter.Shutdown(ctx)); err != nil {
		t.Fatal(err)
	}
	return size
}
