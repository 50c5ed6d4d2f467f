package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/capture/view"
	"github.com/genaitrace/otelgenai/capture/waterfall"
)

// viewOptions are the flags of view.
type viewOptions struct {
	html   string
	trace  string
	sort   string
	max    int
	width  int
	ascii  bool
	failed bool
}

func (a *app) view() *cobra.Command {
	var o viewOptions
	cmd := &cobra.Command{
		Use:   "view CAPTURE…",
		Short: "Show traces as a waterfall, in the terminal or as a page",
		Long: "view draws the traces of captures: the tree of spans with their times, who measured\nwhich time to first token, where it went and when the tokens came. Captures are OTLP as\n" +
			"JSON, as lines of JSON or as protobuf; - is stdin. Several files are parts of one\ncapture. With --html it writes a page that needs nothing else to be read.",
		Example: "  genaitrace view capture.jsonl\n" +
			"  genaitrace view --html trace.html --trace 4bf92f gateway.jsonl engine.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, "no capture is given; - is stdin")
			}
			if err := o.validate(); err != nil {
				return err
			}
			return a.show(cmd.Context(), args, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.html, "html", "", "write a page to `FILE` (- is stdout) instead of drawing in the terminal")
	flags.StringVar(&o.trace, "trace", "", "show the traces whose id begins with `HEX` only")
	flags.StringVar(&o.sort, "sort", "slowest", "which traces come first: `ORDER` is slowest, first or last")
	flags.IntVar(&o.max, "max", 10, "show at most `N` traces")
	flags.IntVar(&o.width, "width", 100, "`COLUMNS` of the terminal")
	flags.BoolVar(&o.ascii, "ascii", false, "draw with ASCII characters only")
	flags.BoolVar(&o.failed, "failed", false, "show traces with a failed span only")
	return cmd
}

func (o *viewOptions) validate() error {
	if !slices.Contains([]string{"slowest", "first", "last"}, o.sort) {
		return fail(exitUsage, "--sort is %q, want slowest, first or last", o.sort)
	}
	if o.max < 1 {
		return fail(exitUsage, "--max is %d, want 1 or more", o.max)
	}
	if o.width < 40 || o.width > 1000 {
		return fail(exitUsage, "--width is %d, want 40 to 1000", o.width)
	}
	o.trace = strings.ToLower(o.trace)
	if len(o.trace) > 32 || strings.Trim(o.trace, "0123456789abcdef") != "" {
		return fail(exitUsage, "--trace is %q, want the hexadecimal digits of a trace id, or its first ones", o.trace)
	}
	return nil
}

func (a *app) show(ctx context.Context, paths []string, o viewOptions) error {
	got := new(capture.Capture)
	if err := a.feed(ctx, paths, got.Add); err != nil {
		return err
	}
	traces := choose(got.Traces(), o)
	if len(traces) == 0 {
		switch {
		case len(got.Spans) == 0:
			return fail(exitNothing, "the captures hold no span")
		case o.trace != "":
			return fail(exitNothing, "no trace of the captures fits --trace %s", o.trace)
		default:
			return fail(exitNothing, "no trace of the captures has a failed span")
		}
	}
	if len(traces) > o.max {
		a.notef("%d of %d traces are shown; --max and --trace choose", o.max, len(traces))
		traces = traces[:o.max]
	}
	if o.html != "" {
		return a.writePage(paths, traces, o.html)
	}
	for i, t := range traces {
		if i > 0 {
			if _, err := a.stdout.Write([]byte("\n")); err != nil {
				return &failure{exitFailed, err}
			}
		}
		err := waterfall.Render(a.stdout, view.Spans(t.Spans), waterfall.Options{Width: o.width, ASCII: o.ascii})
		if err != nil {
			return &failure{exitFailed, err}
		}
	}
	return nil
}

// choose returns the traces that o asks for, in its order.
func choose(traces []*capture.Trace, o viewOptions) []*capture.Trace {
	traces = slices.DeleteFunc(slices.Clone(traces), func(t *capture.Trace) bool {
		return !strings.HasPrefix(t.ID.String(), o.trace) || o.failed && !failed(t)
	})
	slices.SortStableFunc(traces, func(x, y *capture.Trace) int {
		xStart, xEnd := bounds(x)
		yStart, yEnd := bounds(y)
		switch o.sort {
		case "first":
			return xStart.Compare(yStart)
		case "last":
			return yStart.Compare(xStart)
		default:
			return int(min(max(yEnd.Sub(yStart)-xEnd.Sub(xStart), -1), 1))
		}
	})
	return traces
}

func failed(t *capture.Trace) bool {
	return slices.ContainsFunc(t.Spans, func(s *capture.Span) bool { return s.Status == codes.Error })
}

// bounds are the first and the last time that a trace knows.
func bounds(t *capture.Trace) (start, end time.Time) {
	for _, s := range t.Spans {
		if start.IsZero() || !s.Start.IsZero() && s.Start.Before(start) {
			start = s.Start
		}
		for _, at := range []time.Time{s.Start, s.End} {
			if at.After(end) {
				end = at
			}
		}
	}
	return start, end
}

// writePage writes the page in one go: to a new file in the place of an old one, so
// that one that fails leaves the old one. What is no file, such as a pipe, it writes to.
func (a *app) writePage(paths []string, traces []*capture.Trace, to string) (err error) {
	var spans []waterfall.Span
	for _, t := range traces {
		spans = append(spans, view.Spans(t.Spans)...)
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	opts := waterfall.PageOptions{Title: strings.Join(names, ", "), MaxTraces: len(traces)}
	render := func(w io.Writer) error {
		out := bufio.NewWriter(w)
		return errors.Join(waterfall.RenderPage(out, spans, opts), out.Flush())
	}
	if to == "-" {
		if err := render(a.stdout); err != nil {
			return &failure{exitFailed, err}
		}
		return nil
	}
	if old, err := os.Stat(to); err == nil && !old.Mode().IsRegular() {
		f, err := os.OpenFile(to, os.O_WRONLY, 0) //nolint:gosec // the user names it
		if err != nil {
			return &failure{exitUsage, err}
		}
		if err := errors.Join(render(f), f.Close()); err != nil {
			return &failure{exitFailed, err}
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".genaitrace-*.html")
	if err != nil {
		return &failure{exitUsage, err}
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // what is half written
		}
	}()
	if err := errors.Join(render(f), f.Chmod(0o600), f.Close()); err != nil {
		return &failure{exitFailed, err}
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return &failure{exitFailed, err}
	}
	a.notef("wrote %s", to)
	return nil
}
