package otlp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
)

func Example() {
	got, err := otlp.ReadFile("testdata/request.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, trace := range got.Traces() {
		for _, span := range trace.Spans {
			fmt.Println(trace.Path(span))
		}
	}
	// Output:
	// POST /v1/chat/completions
	// POST /v1/chat/completions › chat toy-1
}

func ExampleRead_damage() {
	_, err := otlp.Read("capture.jsonl", strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"abc"}]}]}]}`))
	fmt.Println(err)
	// Output:
	// capture.jsonl:1:55: resourceSpans[0].scopeSpans[0].spans[0].traceId: found the text "abc"; expected 32 hexadecimal digits
}

func ExampleReader() {
	file, err := os.Open("testdata/request.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()

	in := otlp.NewReader(file.Name(), file)
	for {
		c, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(c.Spans), "spans,", len(c.Metrics), "metrics,", len(c.Logs), "log records")
	}
	// Output:
	// 2 spans, 0 metrics, 0 log records
	// 0 spans, 1 metrics, 0 log records
	// 0 spans, 0 metrics, 1 log records
}

func ExampleListen() {
	ctx := context.Background()
	r, err := otlp.Listen(otlp.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Usually another program exports, with r.Env() in its environment.
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(r.HTTPAddr()))
	if err != nil {
		fmt.Println(err)
		return
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	_, span := tracers.Tracer("example").Start(ctx, "chat toy-1")
	span.End()
	err = errors.Join(tracers.Shutdown(ctx), r.Close(ctx))

	fmt.Println(r.Capture().Spans[0].Name, err)
	// Output: chat toy-1 <nil>
}
