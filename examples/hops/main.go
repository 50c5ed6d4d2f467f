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
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/propagation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "hops: %v\n", err)
		os.Exit(1)
	}
}

// run sends a request and prints what became of it.
func run(ctx context.Context, out io.Writer) error {
	spans := capture.NewRecorder()
	h := &hops{
		tracer: spans.TracerProvider().Tracer("hops"),
		bridge: propagation.New(propagation.WithPromptChain()),
	}
	err := h.start()
	if err == nil {
		err = h.ask(ctx, "What is one trace?")
	}
	if err = errors.Join(err, h.stop()); err != nil {
		return err
	}
	captured, err := spans.Capture(ctx)
	if err != nil {
		return err
	}
	for _, t := range captured.Traces() {
		if err := waterfall.Render(out, drawn(t.Spans), waterfall.Options{}); err != nil {
			return err
		}
	}
	return printChain(out, h.chain)
}

func drawn(spans []*capture.Span) []waterfall.Span {
	list := make([]waterfall.Span, 0, len(spans))
	for _, s := range spans {
		d := waterfall.Span{
			TraceID: s.TraceID.String(),
			SpanID:  s.SpanID.String(),
			Name:    s.Name,
			Kind:    strings.ToUpper(s.Kind.String()),
			Start:   s.Start,
			End:     s.End,
		}
		if s.ParentID.IsValid() {
			d.ParentID = s.ParentID.String()
		}
		list = append(list, d)
	}
	return list
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
	_, err := fmt.Fprintf(out, "\nthe prompt came by %s\n%s was caused by %s\n",
		strings.Join(names, " → "), last.Name, strings.Join(causes, " and "))
	return err
}

// serve starts the span of a request that came in with ctx, with links to what is
// not its parent.
func (h *hops) serve(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	return h.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithLinks(propagation.Links(ctx)...))
}
