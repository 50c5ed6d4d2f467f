// Command chat sends a question through three hops in one process, and prints
// where its time went:
//
//	openai-go client → HTTP gateway → gRPC inference service → engine
//
// The hops are real and talk over loopback; the engine is a toy (see package
// toy). With -base-url the gateway passes the question on to any
// OpenAI-compatible server instead. With OTEL_EXPORTER_OTLP_ENDPOINT set, or the
// variable of one signal such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, the traces
// and metrics are exported as well.
//
//	go run ./examples/chat
//	go run ./examples/chat -prompt "What is 17 * 23?" -stream=false
//	go run ./examples/chat -n 8 -concurrency 4
//	go run ./examples/chat -base-url http://localhost:11434/v1 -model qwen2.5:0.5b
package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

func main() { command.Main("chat", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	tel, err := telemetry.New(ctx, "otelgenai-chat", cfg.record)
	if err != nil {
		return err
	}
	errs, asked := serveAndAsk(ctx, cfg, tel, stdout, stderr)
	reported := report(stdout, cfg, tel, errs)
	tel.Close(stderr)
	return errors.Join(asked, reported)
}

// serveAndAsk runs the hops for as long as the questions take. When it returns,
// every span has ended. It returns the error of each of several requests, and one
// for all.
func serveAndAsk(ctx context.Context, cfg *config, tel *telemetry.Telemetry, stdout, stderr io.Writer) ([]error, error) {
	gateway, stopBackend, err := serving.NewBackend(cfg.baseURL, toy.Config{}, tel)
	if err != nil {
		return nil, err
	}
	defer stopBackend()
	address, stop, err := serving.Listen(traced(gateway, tel))
	if err != nil {
		return nil, err
	}
	defer stop()

	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c := newClient(address, transport, cfg)
	if cfg.requests == 1 {
		return nil, askOne(ctx, c, cfg, stdout)
	}
	return askMany(ctx, c, cfg, stderr)
}
