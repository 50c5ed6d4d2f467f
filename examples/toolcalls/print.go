package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// tell says what the model wants, and what it cost.
func (a *agent) tell(step int, message openai.ChatCompletionMessage, usage openai.CompletionUsage) {
	wants := "answers"
	if n := len(message.ToolCalls); n > 0 {
		wants = plural(n, "tool call")
	}
	fmt.Fprintf(a.out, "step %d: %s", step, wants)
	if usage.PromptTokens > 0 {
		fmt.Fprintf(a.out, " (%d tokens in, %d out", usage.PromptTokens, usage.CompletionTokens)
		if cached := usage.PromptTokensDetails.CachedTokens; cached > 0 {
			fmt.Fprintf(a.out, ", %d cached", cached)
		}
		fmt.Fprint(a.out, ")")
	}
	fmt.Fprintln(a.out)
}

// tell says what came of a call.
func (r result) tell(out io.Writer) {
	fmt.Fprintf(out, "  %s %s\n", r.call.Function.Name, oneLine(r.call.Function.Arguments, 60))
	for i, err := range r.attempts {
		switch {
		case err != nil && i+1 < len(r.attempts):
			fmt.Fprintf(out, "    ✗ %s, again:\n", oneLine(err.Error(), 90))
		case err != nil:
			fmt.Fprintf(out, "    ✗ %s\n", oneLine(err.Error(), 90))
		default:
			fmt.Fprintf(out, "    → %s\n", oneLine(r.text, 90))
		}
	}
}

// oneLine puts text on one line of at most limit characters.
func oneLine(text string, limit int) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// report prints the trace of the run, and what it says.
func report(out io.Writer, cfg *config, spans []waterfall.Span) error {
	r := runIn(spans)
	if r.root.SpanID == "" { // it was not sampled
		return nil
	}
	if cfg.baseURL == nil {
		fmt.Fprintf(out, "%s is a toy: a script chooses its tools, and its times come from a cost model.\n\n", cfg.model)
	}
	if err := waterfall.Render(out, withoutParts(r.spans), waterfall.Options{}); err != nil {
		return err
	}
	r.read(out)
	return nil
}

// withoutParts leaves out what each time to first token was made of, which would be a
// picture for each step. A recording has it.
func withoutParts(spans []waterfall.Span) []waterfall.Span {
	spans = slices.Clone(spans)
	for i := range spans {
		attributes := maps.Clone(spans[i].Attributes)
		maps.DeleteFunc(attributes, func(key string, _ any) bool { return strings.HasPrefix(key, "genai.ttft.") })
		spans[i].Attributes = attributes
	}
	return spans
}

// A traced run is its trace, in parts.
type traced struct {
	root               waterfall.Span
	spans              []waterfall.Span
	calls, tools, mcps []waterfall.Span
}

func runIn(spans []waterfall.Span) (r traced) {
	for _, s := range spans {
		if s.Role == string(semconv.GenAISpanRoleAgent) {
			r.root = s
		}
	}
	for _, s := range spans {
		if s.TraceID != r.root.TraceID {
			continue
		}
		r.spans = append(r.spans, s)
		switch {
		case s.Role == string(semconv.GenAISpanRoleInference) && s.Kind == "CLIENT":
			r.calls = append(r.calls, s)
		case s.Role == string(semconv.GenAISpanRoleTool):
			r.tools = append(r.tools, s)
		case s.Role == string(semconv.GenAISpanRoleMCP) && s.Kind == "SERVER":
			r.mcps = append(r.mcps, s)
		}
	}
	return r
}

// read says in words what the picture shows.
func (r traced) read(out io.Writer) {
	work, apart := busy(r.tools)
	model, _ := busy(r.calls)
	fmt.Fprintf(out, "\nThe run took %s: %s in %s and %s in %s.\n", command.Milliseconds(took(r.root)),
		command.Milliseconds(model), plural(len(r.calls), "model call"),
		command.Milliseconds(work), plural(len(r.tools), "tool call"))
	if apart > work {
		fmt.Fprintf(out, "The tools ran side by side: one after the other they would have taken %s.\n", command.Milliseconds(apart))
	}
	if in, ok := r.root.Attributes[string(semconv.AITokensInputKey)].(int64); ok {
		fmt.Fprintf(out, "Each step reads the conversation again: %d tokens in all, and %v written.\n", in, r.root.Attributes[string(semconv.AITokensOutputKey)])
	}
	for _, s := range r.tools {
		name := text(s, genaiconv.ToolNameKey)
		if n, _ := s.Attributes[string(semconv.GenAIAttemptKey)].(int64); n > 1 {
			fmt.Fprintf(out, "%s was tried again: its attempt %d ended with %s.\n", name, n, text(s, semconv.GenAIToolStatusKey))
		}
		if text(s, semconv.GenAIToolStatusKey) == string(deniedStatus) {
			fmt.Fprintf(out, "%s was not allowed: the check beside it blocked the call.\n", name)
		}
	}
	for _, s := range r.mcps {
		fmt.Fprintf(out, "%s ran in another process, for %s of the %s that it took from here.\n",
			text(s, genaiconv.ToolNameKey), command.Milliseconds(took(s)), command.Milliseconds(took(r.parent(s))))
	}
}

func (r traced) parent(s waterfall.Span) waterfall.Span {
	i := slices.IndexFunc(r.spans, func(p waterfall.Span) bool { return p.SpanID == s.ParentID })
	if i < 0 {
		return s
	}
	return r.spans[i]
}

func text[K ~string](s waterfall.Span, key K) string {
	value, _ := s.Attributes[string(key)].(string)
	return value
}

func took(s waterfall.Span) time.Duration { return s.End.Sub(s.Start) }

// busy is how long at least one of the spans ran, and how long all of them together.
func busy(spans []waterfall.Span) (some, all time.Duration) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b waterfall.Span) int { return cmp.Compare(a.Start.UnixNano(), b.Start.UnixNano()) })
	var until time.Time
	for _, s := range spans {
		all += took(s)
		if s.Start.After(until) {
			until = s.Start
		}
		if s.End.After(until) {
			some += s.End.Sub(until)
			until = s.End
		}
	}
	return some, all
}
