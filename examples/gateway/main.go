// Command gateway is a proxy that anyone can put before vLLM, SGLang, llama.cpp,
// Ollama, Text Generation Inference, OpenAI or Anthropic: it passes every byte on
// unchanged and at once, and traces and measures each call of a model. Where the
// engine tells on the wire how long a request waited, and how long prefill and decode
// took, these become spans: the engine needs no agent.
//
//	go run ./examples/gateway -upstream http://localhost:11434
//	go run ./examples/gateway -upstream https://api.openai.com -once -model gpt-5-mini
//	go run ./examples/gateway        # a toy engine, one question, and where its time went
//	go run ./examples/gateway -once  # the same, and no more
//
// Prometheus scrapes /metrics of -admin. With OTEL_EXPORTER_OTLP_ENDPOINT set, or the
// variable of one signal, traces and metrics are exported as well. The heart of it is
// in gateway.go.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/url"

	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/examples/internal/toyserver"
)

func main() { command.Main("gateway", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	tel, err := newTelemetry(ctx, cfg)
	if err != nil {
		return err
	}
	out := log.New(stderr, "gateway: ", 0)
	for _, to := range tel.to {
		out.Print(to)
	}
	err = pass(ctx, cfg, tel, stdout, out)
	tel.close(out)
	return err
}

// pass runs the gateway. When it returns, every span has ended.
func pass(ctx context.Context, cfg *config, tel *telemetry, stdout io.Writer, out *log.Logger) error {
	if cfg.toy {
		address, stop, err := serveLocally(toyserver.New(toy.Config{}), out)
		if err != nil {
			return err
		}
		defer stop()
		if cfg.upstream, err = url.Parse(address); err != nil {
			return err
		}
	}
	base := newBase()
	defer base.CloseIdleConnections()
	gateway := newGateway(cfg.upstream, base, out, tel.options()...)
	if cfg.once || cfg.toy {
		if err := askOnce(ctx, cfg, gateway, tel, stdout, out); err != nil || cfg.once {
			return err
		}
	}
	return serve(ctx, cfg, gateway, tel.scrape, out)
}

// newBase reaches one host many times, and leaves the encoding of answers to clients.
func newBase() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = base.MaxIdleConns
	return base
}
