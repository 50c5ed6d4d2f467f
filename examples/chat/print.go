package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/reading"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/semconv"
)

// report prints a table of the requests, if there were several, and the trace of
// the slowest one.
func report(out io.Writer, cfg *config, tel *telemetry.Telemetry, errs []error) error {
	requests := byRequest(tel.Spans.Ended())
	if sampler := os.Getenv("OTEL_TRACES_SAMPLER"); sampler != "" && len(requests) < cfg.requests {
		fmt.Fprintf(out, "\n%d of %d requests left a trace: OTEL_TRACES_SAMPLER=%s\n", len(requests), cfg.requests, sampler)
	}
	if len(requests) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if cfg.baseURL == nil {
		fmt.Fprintf(out, "%s is a toy: its answers come from rules, its times from a cost model.\n\n", cfg.model)
	}
	slowest := slices.MaxFunc(requests, func(a, b *request) int { return cmp.Compare(a.total(), b.total()) })
	if cfg.requests > 1 {
		if err := summary(out, cfg, tel, requests, errs); err != nil {
			return err
		}
		fmt.Fprintf(out, "\nrequest %d was the slowest:\n\n", slowest.number)
	}
	if err := waterfall.Render(out, slowest.spans, waterfall.Options{}); err != nil {
		return err
	}
	return reading.Write(out, slowest.spans)
}

// request is the trace of one request.
type request struct {
	spans  []waterfall.Span
	root   waterfall.Span // of the gateway
	number int            // 0 for the only one
}

// byRequest sorts spans into requests, in the order of their numbers.
func byRequest(spans []waterfall.Span) []*request {
	traces := make(map[string]*request)
	for _, s := range spans {
		r := traces[s.TraceID]
		if r == nil {
			r = &request{}
			traces[s.TraceID] = r
		}
		r.spans = append(r.spans, s)
		if s.ParentID == "" {
			r.root = s
			text, _ := s.Attributes[numberKey].(string)
			r.number, _ = strconv.Atoi(text)
		}
	}
	requests := make([]*request, 0, len(traces))
	for _, r := range traces {
		requests = append(requests, r)
	}
	slices.SortFunc(requests, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	return requests
}

func (r *request) total() time.Duration { return r.root.End.Sub(r.root.Start) }

// summary prints a line for each request. What is not known stays empty, and a
// column of which nothing is known is left out. The id of a trace is worth its
// room only where there is a collector to look it up in.
func summary(out io.Writer, cfg *config, tel *telemetry.Telemetry, requests []*request, errs []error) error {
	lines := [][]string{{"request", "queue", "TTFT", "tokens/s", "total", "outcome", "trace", "question"}}
	for _, r := range requests {
		if r.number == 0 { // its root span has not ended
			continue
		}
		call := reading.Find(r.spans, semconv.GenAISpanRoleInference, "CLIENT")
		line := []string{strconv.Itoa(r.number), "", "", "", command.Milliseconds(r.total()), "", "",
			short(cfg.question(r.number-1), 40)}
		if wait, ok := reading.Since(reading.Find(r.spans, semconv.GenAISpanRoleQueue, "INTERNAL"), semconv.LLMQueueWaitMsKey); ok {
			line[1] = command.Milliseconds(wait)
		}
		ttft, ok := reading.Since(r.root, semconv.LLMTTFTMsKey)
		if !ok { // a whole answer has a first token only behind the gateway
			ttft, ok = reading.Since(call, semconv.LLMTTFTMsKey)
		}
		if ok {
			line[2] = command.Milliseconds(ttft)
		}
		if rate, ok := reading.TokensPerSecond(call); ok {
			line[3] = fmt.Sprintf("%.1f", rate)
		}
		if err := errs[r.number-1]; err != nil {
			line[5] = "✗ " + outcome(err)
		}
		if tel.TracesTo != nil {
			line[6] = r.root.TraceID
		}
		lines = append(lines, line)
	}

	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		var cells []string
		for c, cell := range line {
			if slices.ContainsFunc(lines[1:], func(l []string) bool { return l[c] != "" }) {
				cells = append(cells, cell)
			}
		}
		last := len(cells) - 1 // to the left, as it is text
		fmt.Fprintf(w, "%s\t   %s\n", strings.Join(cells[:last], "\t"), cells[last])
	}
	return w.Flush()
}
