// Package reading says in words what the waterfall of a request shows: what the first
// token waited for, how fast the others came, and where a request failed.
package reading

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
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Write writes it of one trace. What is not known is left out.
func Write(out io.Writer, trace []waterfall.Span) error {
	var text strings.Builder
	writeFailure(&text, trace)
	writeFirst(&text, trace)
	writeSearches(&text, trace)
	if text.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%s", text.String())
	return err
}

// writeFailure names the deepest span that failed.
func writeFailure(out io.Writer, trace []waterfall.Span) {
	above := make(map[string]bool)
	for _, s := range trace {
		if s.Error != "" {
			above[s.ParentID] = true
		}
	}
	for _, s := range trace {
		if s.Error != "" && !above[s.SpanID] {
			fmt.Fprintf(out, "It failed in %s: %s.\n", s.Name, s.Error)
			return
		}
	}
}

// writeFirst says what the first token waited for, the longest first, and how fast the
// others came.
func writeFirst(out io.Writer, trace []waterfall.Span) {
	call := Find(trace, semconv.GenAISpanRoleInference, "CLIENT")
	began := "The answer began"
	ttft, ok := Since(Find(trace, semconv.GenAISpanRoleGateway, "SERVER"), semconv.LLMTTFTMsKey)
	if !ok {
		// A whole answer has a first token only behind the gateway.
		began = "The model began to answer"
		ttft, ok = Since(call, semconv.LLMTTFTMsKey)
	}
	if !ok {
		return
	}
	fmt.Fprintf(out, "%s after %s", began, command.Milliseconds(ttft))
	waits := waits(trace)
	for i, w := range waits {
		lead := ", "
		if i == 0 {
			lead = ": "
		}
		fmt.Fprintf(out, "%s%s for %s", lead, command.Milliseconds(w.took), w.text)
	}
	if len(waits) == 0 {
		fmt.Fprint(out, "; the server does not tell what it did until then")
	}
	fmt.Fprintln(out, ".")
	if rate, ok := TokensPerSecond(call); ok {
		fmt.Fprintf(out, "From then on %.1f tokens came a second.\n", rate)
	}
}

// wait is something that the first token waited for.
type wait struct {
	text string
	took time.Duration
}

func waits(trace []waterfall.Span) []wait {
	var found []wait
	for _, s := range trace {
		text := ""
		switch semconv.GenAISpanRoleAttr(s.Role) { //nolint:exhaustive // the other roles are no wait
		case semconv.GenAISpanRoleRetrieval:
			if kind(s) == string(semconv.GenAIRetrieverTypeHybrid) {
				text = "searching"
			}
		case semconv.GenAISpanRoleRerank:
			text = "reranking"
		case semconv.GenAISpanRoleQueue:
			text = "waiting for the engine"
		case semconv.GenAISpanRolePrefill:
			text = "reading the prompt (prefill)"
			if n, ok := Number(s, semconv.AITokensInputKey); ok {
				text = fmt.Sprintf("reading a prompt of %.0f tokens (prefill)", n)
			}
		}
		if text != "" {
			found = append(found, wait{text, s.End.Sub(s.Start)})
		}
	}
	slices.SortStableFunc(found, func(a, b wait) int { return cmp.Compare(b.took, a.took) })
	return found
}

// writeSearches says which searches ran at the same time.
func writeSearches(out io.Writer, trace []waterfall.Span) {
	var searches []waterfall.Span
	for _, s := range trace {
		if k := kind(s); k != "" && k != string(semconv.GenAIRetrieverTypeHybrid) {
			searches = append(searches, s)
		}
	}
	if len(searches) < 2 {
		return
	}
	slices.SortFunc(searches, func(a, b waterfall.Span) int { return cmp.Compare(b.End.Sub(b.Start), a.End.Sub(a.Start)) })
	names := make([]string, len(searches))
	for i, s := range searches {
		names[i] = fmt.Sprintf("%s took %s", s.Name, command.Milliseconds(s.End.Sub(s.Start)))
	}
	fmt.Fprintf(out, "The searches ran side by side: %s; the longer one counts.\n", strings.Join(names, ", "))
}

func kind(s waterfall.Span) string {
	text, _ := s.Attributes[string(semconv.GenAIRetrieverTypeKey)].(string)
	return text
}

// Find returns the first span of a role and kind; an empty one if there is none.
func Find(trace []waterfall.Span, role semconv.GenAISpanRoleAttr, kind string) waterfall.Span {
	for _, s := range trace {
		if s.Role == string(role) && s.Kind == kind {
			return s
		}
	}
	return waterfall.Span{}
}

// TokensPerSecond counts the tokens of a model call after the first one.
func TokensPerSecond(call waterfall.Span) (float64, bool) {
	first, ok1 := Number(call, semconv.LLMTTFTMsKey)
	last, ok2 := Number(call, semconv.GenAILastTokenMsKey)
	tokens, ok3 := Number(call, genaiconv.UsageOutputTokensKey)
	if !ok1 || !ok2 || !ok3 || tokens < 2 || last <= first {
		return 0, false
	}
	return 1000 * (tokens - 1) / (last - first), true
}

// Number returns an attribute that is a number.
func Number[K ~string](s waterfall.Span, key K) (float64, bool) {
	switch v := s.Attributes[string(key)].(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// Since returns an attribute that counts milliseconds.
func Since[K ~string](s waterfall.Span, key K) (time.Duration, bool) {
	ms, ok := Number(s, key)
	return time.Duration(ms * float64(time.Millisecond)), ok
}
