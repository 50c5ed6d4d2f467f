// Command toolcalls lets an agent answer a question with tools, and prints where its
// time went:
//
//	agent → openai-go client → model, which asks for tools
//	      → calculator, clock, search in files, HTTP service, MCP server over stdio
//	      → model, with the results, until it answers
//
// The tools are real, and the MCP server is a process of its own: the program, started
// again. The model is a toy that follows a script, at a server that speaks OpenAI's API.
// With -base-url any such server stands in its place.
//
//	go run ./examples/toolcalls
//	go run ./examples/toolcalls -prompt "What is (3 + 4) * 12.5?"
//	go run ./examples/toolcalls -record toolcalls.jsonl
//	go run ./examples/toolcalls -base-url http://localhost:11434/v1 -model qwen3:4b
//
// With OTEL_EXPORTER_OTLP_ENDPOINT set, traces and metrics of both processes are
// exported as well. The heart of it is in agent.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
	_ "time/tzdata" // the clock knows the zones wherever it runs

	"github.com/genaitrace/otelgenai/capture/view"
	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/examples/internal/toyserver"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

func main() { command.Main("toolcalls", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && args[0] == unitsCommand {
		return serveUnits(ctx, stderr)
	}
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(cfg.root)
	if err != nil {
		return command.Usagef("-root: %v", err)
	}
	defer func() { _ = root.Close() }() // it is only read
	tel, err := telemetry.New(ctx, "otelgenai-toolcalls", cfg.record)
	if err != nil {
		return err
	}
	err = serveAndAsk(ctx, cfg, root, tel, stdout, stderr)
	spans := append(tel.Spans.Ended(), view.Spans(tel.Children().Spans)...)
	reported := report(stdout, cfg, spans)
	tel.Close(stderr)
	return errors.Join(err, reported)
}

// serveAndAsk runs everything for as long as the question takes. When it returns, every
// span has ended, and the child process too.
func serveAndAsk(ctx context.Context, cfg *config, root *os.Root, tel *telemetry.Telemetry, stdout, stderr io.Writer) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	traced := genaihttp.NewTransport(transport,
		genaihttp.WithTracerProvider(tel.Traces),
		genaihttp.WithMeterProvider(tel.Metrics),
		genaihttp.WithLoggerProvider(tel.Logs),
	)
	status, stopStatus, err := serving.Listen(serving.Traced(newStatusService(), tel))
	if err != nil {
		return err
	}
	defer stopStatus()
	server, stopServer, err := startUnits(ctx, tel, stderr)
	if err != nil {
		return err
	}
	defer stopServer()
	tools, err := newTools(ctx, root, &http.Client{Transport: traced}, status, server)
	if err != nil {
		return err
	}
	model, stopModel, err := newModel(cfg, traced)
	if err != nil {
		return err
	}
	defer stopModel()

	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	a := newAgent(tel.Tracer, model, cfg.model, tools)
	a.maxSteps, a.out = cfg.maxSteps, stdout
	return ask(ctx, a, cfg.prompt, stdout)
}

// engine reads and writes faster than its default, and writes more: conversations with
// tools are long.
var engine = toy.Config{PrefillTime: 200 * time.Microsecond, DecodeTime: 2 * time.Millisecond, MaxTokens: 1024}

// newModel is the client of the model: of the toy, which is started, or of -base-url.
func newModel(cfg *config, traced http.RoundTripper) (model *chatclient.Client, stop func(), err error) {
	o := chatclient.Options{Transport: traced, Model: cfg.model, APIKey: cfg.apiKey}
	if cfg.baseURL != nil {
		o.BaseURL = cfg.baseURL.String()
		return chatclient.New(o), func() {}, nil
	}
	address, stop, err := serving.Listen(toyserver.New(engine))
	if err != nil {
		return nil, nil, err
	}
	o.BaseURL = address + "/v1"
	return chatclient.New(o), stop, nil
}

// ask prints a question, what the agent does, and the answer or why there is none.
func ask(ctx context.Context, a *agent, question string, out io.Writer) error {
	fmt.Fprintf(out, "Q: %s\n\n", question)
	answer, err := a.run(ctx, question)
	if err != nil {
		fmt.Fprintf(out, "✗ %v\n\n", err)
		return command.ShownError{Err: err}
	}
	fmt.Fprintf(out, "A: %s\n\n", answer)
	return nil
}
