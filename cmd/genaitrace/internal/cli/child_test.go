package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// childVariable makes the test binary the child of serve: a program that records
// with the SDK and its own OTLP exporters, as the words of the variable say.
const childVariable = "GENAITRACE_TEST_CHILD"

func child(what string) (code int) {
	for word := range strings.FieldsSeq(what) {
		switch word {
		case "good":
			record("toy-1", true)
		case "bad":
			record("", true)
		case "open":
			record("toy-1", false)
		case "fails":
			code = 7
		case "echoes":
			_, _ = io.Copy(os.Stdout, os.Stdin)
		case "waits":
			interrupted := make(chan os.Signal, 1)
			signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
			fmt.Println("ready")
			<-interrupted
		case "ignores":
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			fmt.Println("ready", os.Getpid())
			time.Sleep(time.Hour)
		case "leaves": // behind something that records when it is told to end
			leave("waits good")
		case "leaves-stubborn":
			leave("ignores")
		}
	}
	return code
}

// leave starts a process and returns once it is ready.
func leave(what string) {
	left := exec.Command(os.Args[0])
	left.Env = append(os.Environ(), childVariable+"="+what)
	ready, err := left.StdoutPipe()
	check(err)
	check(left.Start())
	line := make([]byte, 64)
	n, err := ready.Read(line)
	check(err)
	fmt.Print(string(line[:n]))
}

// record records one request, and whether its root ended.
func record(model string, ended bool) {
	ctx := context.Background()
	exporter, err := newExporter(ctx)
	check(err)
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	tracer := tp.Tracer("child")
	ctx, root := tracer.Start(ctx, "POST /v1/chat/completions", trace.WithSpanKind(trace.SpanKindServer))
	_, call := tracer.Start(ctx, "chat toy-1", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "vllm")))
	if model != "" {
		call.SetAttributes(attribute.String("gen_ai.request.model", model))
	}
	call.End()
	if ended {
		root.End()
	}
	check(tp.Shutdown(context.Background()))
}

// newExporter returns the exporter that the environment names; in Go that choice
// is the program's.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if os.Getenv("GENAITRACE_TEST_PROTOCOL") == "grpc" {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(99)
	}
}
