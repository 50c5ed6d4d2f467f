package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// report prints a table of the requests, if there were several, and the trace of
// the slowest one.
func report(out io.Writer, cfg *config, spans []sdktrace.ReadOnlySpan) error {
	requests := byRequest(spans)
	if len(requests) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if cfg.baseURL == nil {
		fmt.Fprintf(out, "%s is a toy: its answers come from rules, its times from a cost model.\n\n", cfg.model)
	}
	slowest := slices.MaxFunc(requests, func(a, b *request) int { return cmp.Compare(a.total(), b.total()) })
	if len(requests) > 1 {
		if err := summary(out, requests); err != nil {
			return err
		}
		fmt.Fprint(out, "\nthe slowest request:\n\n")
	}
	return waterfall.Render(out, slowest.spans, waterfall.Options{})
}

// request is the trace of one request.
type request struct {
	spans []waterfall.Span
	root  waterfall.Span // of the gateway
}

// byRequest sorts spans into requests, in the order of their arrival.
func byRequest(spans []sdktrace.ReadOnlySpan) []*request {
	traces := make(map[string]*request)
	for _, span := range spans {
		s := convert(span)
		r := traces[s.TraceID]
		if r == nil {
			r = &request{}
			traces[s.TraceID] = r
		}
		r.spans = append(r.spans, s)
		if s.ParentID == "" {
			r.root = s
		}
	}
	requests := make([]*request, 0, len(traces))
	for _, r := range traces {
		requests = append(requests, r)
	}
	slices.SortFunc(requests, func(a, b *request) int { return a.root.Start.Compare(b.root.Start) })
	return requests
}

func (r *request) total() time.Duration { return r.root.End.Sub(r.root.Start) }

// find returns the first span of a role and kind; an empty one if there is none.
func (r *request) find(role semconv.GenAISpanRoleAttr, kind string) waterfall.Span {
	for _, s := range r.spans {
		if s.Role == string(role) && s.Kind == kind {
			return s
		}
	}
	return waterfall.Span{}
}

// summary prints a line for each request. What is not known stays empty.
func summary(out io.Writer, requests []*request) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "request\ttrace\tqueue\tTTFT\ttokens/s\ttotal\t\n")
	for i, r := range requests {
		call := r.find(semconv.GenAISpanRoleInference, "CLIENT")
		ttft, ok := number(r.root, semconv.LLMTTFTMsKey)
		if !ok { // a whole answer has a first token only behind the gateway
			ttft, ok = number(call, semconv.LLMTTFTMsKey)
		}
		failed := ""
		if r.root.Error != "" {
			failed = "  ✗ " + r.root.Error
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", i+1, r.root.TraceID,
			milliseconds(number(r.find(semconv.GenAISpanRoleQueue, "INTERNAL"), semconv.LLMQueueWaitMsKey)),
			milliseconds(ttft, ok),
			tokensPerSecond(call),
			milliseconds(float64(r.total())/float64(time.Millisecond), true),
			failed)
	}
	return w.Flush()
}

// tokensPerSecond counts the tokens after the first one.
func tokensPerSecond(call waterfall.Span) string {
	first, ok1 := number(call, semconv.LLMTTFTMsKey)
	last, ok2 := number(call, semconv.GenAILastTokenMsKey)
	tokens, ok3 := number(call, genaiconv.UsageOutputTokensKey)
	if !ok1 || !ok2 || !ok3 || tokens < 2 || last <= first {
		return ""
	}
	return fmt.Sprintf("%.1f", 1000*(tokens-1)/(last-first))
}

func milliseconds(ms float64, known bool) string {
	if !known {
		return ""
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func number[K ~string](s waterfall.Span, key K) (float64, bool) {
	switch v := s.Attributes[string(key)].(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// convert makes a span of the SDK ready for the waterfall.
func convert(s sdktrace.ReadOnlySpan) waterfall.Span {
	out := waterfall.Span{
		TraceID:    s.SpanContext().TraceID().String(),
		SpanID:     s.SpanContext().SpanID().String(),
		Name:       s.Name(),
		Kind:       strings.ToUpper(s.SpanKind().String()),
		Start:      s.StartTime(),
		End:        s.EndTime(),
		Attributes: make(map[string]any),
	}
	if s.Parent().IsValid() {
		out.ParentID = s.Parent().SpanID().String()
	}
	for _, kv := range s.Attributes() {
		out.Attributes[string(kv.Key)] = kv.Value.AsInterface()
	}
	out.Role, _ = out.Attributes[string(semconv.GenAISpanRoleKey)].(string)
	for _, e := range s.Events() {
		out.Events = append(out.Events, waterfall.Event{Name: e.Name, Time: e.Time})
	}
	if s.Status().Code == codes.Error {
		errorType, _ := out.Attributes[string(otelsemconv.ErrorTypeKey)].(string)
		out.Error = cmp.Or(s.Status().Description, errorType, "error")
	}
	return out
}
