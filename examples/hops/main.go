// Command hops takes one request over six transports in one process, and prints
// the trace, which is one:
//
//	HTTP/1.1 gateway → gRPC engine → WebSocket session → Kafka record → HTTP/2 tool of MCP
//
// Every connection is real and goes over loopback, but for Kafka, of which there
// are the headers of a record alone. Each hop shows the line or two that carry the
// context on.
//
//	go run ./examples/hops
//	go run ./examples/hops -record hops.jsonl
//
// With OTEL_EXPORTER_OTLP_ENDPOINT set, the trace is exported as well. The heart of it is
// in hops.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/reading"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/propagation"
)

func main() { command.Main("hops", run) }

// run sends a request and prints what became of it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var record string
	flags := command.NewFlags("hops")
	flags.StringVar(&record, "record", "", command.RecordUsage)
	about := "hops takes one request over six transports, and prints the trace, which is one."
	if err := command.Parse(flags, args, stderr, about, "hops takes flags alone"); err != nil {
		return err
	}
	tel, err := telemetry.New(ctx, "otelgenai-hops", record)
	if err != nil {
		return err
	}
	chain, err := ask(ctx, tel)
	if err == nil {
		err = report(stdout, tel, chain)
	}
	tel.Close(stderr)
	return err
}

// ask sends the request and returns the chain of its prompt, as it arrived at the tool.
// Every span has ended then.
func ask(ctx context.Context, tel *telemetry.Telemetry) (propagation.PromptChain, error) {
	h := &hops{
		tracer: tel.Traces.Tracer("hops"),
		bridge: propagation.New(propagation.WithPromptChain()),
	}
	err := h.start()
	if err == nil {
		err = h.ask(ctx, "What is one trace?")
	}
	return h.chain, errors.Join(err, h.stop())
}

// report draws the trace and says what it shows.
func report(out io.Writer, tel *telemetry.Telemetry, chain propagation.PromptChain) error {
	spans := tel.Spans.Ended()
	if len(spans) == 0 { // not sampled
		return nil
	}
	if err := waterfall.Render(out, spans, waterfall.Options{}); err != nil {
		return err
	}
	traces := map[string]bool{}
	for _, s := range spans {
		traces[s.TraceID] = true
	}
	fmt.Fprintf(out, "\n%d spans of six transports are %d trace: each hop put its context where its transport has room.\n", len(spans), len(traces))
	if err := reading.Write(out, spans); err != nil {
		return err
	}
	return printChain(out, chain)
}

// printChain prints through which hops the prompt came to the tool.
func printChain(out io.Writer, chain propagation.PromptChain) error {
	if len(chain.Hops) == 0 {
		return errors.New("no prompt chain arrived at the tool")
	}
	names := make([]string, 0, len(chain.Hops))
	for _, hop := range chain.Hops {
		names = append(names, hop.Name)
	}
	last := chain.Hops[len(chain.Hops)-1]
	causes := make([]string, 0, len(chain.Hops))
	for _, hop := range chain.Backtrace(last.SpanID)[1:] {
		causes = append(causes, hop.Name)
	}
	_, err := fmt.Fprintf(out, "The prompt came by %s; %s was caused by %s.\n",
		strings.Join(names, " → "), last.Name, strings.Join(causes, " and "))
	return err
}
