package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/examples/internal/command"
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
	read(out, root, trace)
	return nil
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

// read says in words what the picture shows: what the first token waited for.
func read(out io.Writer, root waterfall.Span, trace []waterfall.Span) {
	ttft, ok := root.Attributes[string(semconv.LLMTTFTMsKey)].(float64)
	if !ok {
		return
	}
	first := time.Duration(ttft * float64(time.Millisecond))
	fmt.Fprintf(out, "\nThe answer began after %s", command.Milliseconds(first))
	type part struct {
		text string
		took time.Duration
	}
	var parts []part
	var searches []waterfall.Span
	for _, s := range trace {
		switch kind, _ := s.Attributes[string(semconv.GenAIRetrieverTypeKey)].(string); {
		case kind == string(semconv.GenAIRetrieverTypeHybrid):
			parts = append(parts, part{"searching", took(s)})
		case kind != "":
			searches = append(searches, s)
		case s.Role == string(semconv.GenAISpanRolePrefill):
			text := "reading the prompt (prefill)"
			if n, ok := s.Attributes[string(semconv.AITokensInputKey)].(int64); ok {
				text = fmt.Sprintf("reading a prompt of %d tokens (prefill)", n)
			}
			parts = append(parts, part{text, took(s)})
		case s.Role == string(semconv.GenAISpanRoleQueue):
			parts = append(parts, part{"waiting for the engine", took(s)})
		case s.Role == string(semconv.GenAISpanRoleRerank):
			parts = append(parts, part{"reranking", took(s)})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.took, a.took) })
	for i, p := range parts {
		lead := ", "
		if i == 0 {
			lead = ": "
		}
		fmt.Fprintf(out, "%s%s for %s", lead, command.Milliseconds(p.took), p.text)
	}
	fmt.Fprintln(out, ".")
	if len(searches) > 1 {
		slices.SortFunc(searches, func(a, b waterfall.Span) int { return cmp.Compare(took(b), took(a)) })
		names := make([]string, len(searches))
		for i, s := range searches {
			names[i] = fmt.Sprintf("%s took %s", s.Name, command.Milliseconds(took(s)))
		}
		fmt.Fprintf(out, "The searches ran side by side: %s; the longer one counts.\n", strings.Join(names, ", "))
	}
}
