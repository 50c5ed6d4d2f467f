package main

import (
	"fmt"
	"io"
	"time"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/examples/internal/reading"
	"github.com/genaitrace/otelgenai/semconv"
)

// report prints the trace of the slowest question, and what it says.
func report(out io.Writer, cfg *config, spans []waterfall.Span) error {
	root, trace := slowest(spans)
	if root.SpanID == "" { // no question came to the gateway, or none was sampled
		return nil
	}
	if cfg.embeddingModel == "" {
		fmt.Fprintf(out, "%s makes vectors of words and not of meaning; -base-url URL -embedding-model NAME uses a model.\n", hashingModel)
	}
	if cfg.chatURL() == nil {
		fmt.Fprintf(out, "%s is a toy that quotes its sources; its times come from a cost model.\n", cfg.model)
	}
	fmt.Fprintln(out)
	if err := waterfall.Render(out, trace, waterfall.Options{}); err != nil {
		return err
	}
	return reading.Write(out, trace)
}

// slowest returns the longest request at the gateway, and its trace.
func slowest(spans []waterfall.Span) (root waterfall.Span, trace []waterfall.Span) {
	for _, s := range spans {
		if s.ParentID == "" && s.Role == string(semconv.GenAISpanRoleGateway) && took(s) > took(root) {
			root = s
		}
	}
	for _, s := range spans {
		if s.TraceID == root.TraceID {
			trace = append(trace, s)
		}
	}
	return root, trace
}

func took(s waterfall.Span) time.Duration { return s.End.Sub(s.Start) }
