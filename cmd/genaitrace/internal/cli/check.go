package cli

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
)

// maxOpenBytes is what traces that may still grow hold at most, roughly.
const maxOpenBytes = 256 << 20

func (a *app) check() *cobra.Command {
	var v verdict
	var quiet time.Duration
	cmd := &cobra.Command{
		Use:   "check --contract FILE CAPTURE…",
		Short: "Check captures in files",
		Long: "check reads captures (OTLP as JSON, as lines of JSON such as the Collector writes, or\nas protobuf; - is stdin) and checks them against a contract. Several files are parts\n" +
			"of one capture. They are read piece by piece, so that a large one needs little\nmemory.\n\n" + exitCodes,
		Example: "  genaitrace check --contract observability.yaml gateway.jsonl engine.jsonl\n" +
			"  genaitrace check --contract builtin:chat --format junit=report.xml --format text - < capture.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, "no capture is given; - is stdin")
			}
			if quiet <= 0 {
				return fail(exitUsage, "--quiet is %s, want more than 0", quiet)
			}
			c, err := load(v.contract)
			if err != nil {
				return err
			}
			if err := v.open(); err != nil {
				return err
			}
			defer v.close()
			checker := c.NewChecker(contract.WithQuiet(quiet), contract.WithMaxOpenBytes(maxOpenBytes))
			if err := a.feed(cmd.Context(), args, checker.Add); err != nil {
				return err
			}
			report := checker.Report()
			if report.Evicted > 0 {
				a.notef("%d traces were checked before they were complete, because the open ones held too much; a shorter --quiet, or a capture sorted by time, helps", report.Evicted)
			}
			if err := v.write(a, report); err != nil {
				return err
			}
			return v.judge(report, "the captures hold no span, no metric and no log record")
		},
	}
	v.flags(cmd)
	cmd.Flags().DurationVar(&quiet, "quiet", time.Minute, "take a trace for complete once nothing of it came while the time that two other\ntraces have reached moved on by `DURATION`")
	return cmd
}

// source is one file of a capture.
type source struct {
	name   string
	reader *otlp.Reader
	file   io.Closer
	newest time.Time // of the spans read so far
}

// feed gives what the files hold to add, piece by piece and metrics merged at the
// end. Of several files it reads on in the one that is behind, so that the parts of
// a trace come close together.
func (a *app) feed(ctx context.Context, paths []string, add func(*capture.Capture)) error {
	sources, err := a.sources(paths)
	defer func() {
		for _, s := range sources {
			_ = s.file.Close() // it was only read
		}
	}()
	if err != nil {
		return err
	}
	var metrics otlp.Merger
	open := slices.Clone(sources)
	for len(open) > 0 {
		if err := ctx.Err(); err != nil {
			return fail(exitFailed, "interrupted: %w", err)
		}
		s := slices.MinFunc(open, func(a, b *source) int { return a.newest.Compare(b.newest) })
		got, err := s.reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			open = slices.DeleteFunc(open, func(o *source) bool { return o == s })
		case err != nil:
			return &failure{exitUsage, err}
		default:
			s.advance(got)
			metrics.Add(got.Metrics)
			got.Metrics = nil
			add(got)
		}
	}
	add(&capture.Capture{Metrics: metrics.Metrics()})
	for _, s := range sources {
		a.noteDropped(s.name+": ", s.reader.Dropped())
	}
	return nil
}

// noteDropped tells what was not kept, by reason.
func (a *app) noteDropped(from string, dropped map[string]int) {
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		a.notef("%s%d spans, points and log records were dropped: %s", from, dropped[reason], reason)
	}
}

func (a *app) sources(paths []string) ([]*source, error) {
	var sources []*source
	for i, path := range paths {
		if slices.ContainsFunc(paths[:i], func(p string) bool { return sameFile(p, path) }) {
			return sources, fail(exitUsage, "the capture %s is given twice", path)
		}
		name, file := path, io.NopCloser(a.stdin)
		if path == "-" {
			name = "stdin"
		} else {
			f, err := os.Open(path) //nolint:gosec // the user names the file
			if err != nil {
				return sources, &failure{exitUsage, err}
			}
			file = f
		}
		sources = append(sources, &source{name: name, reader: otlp.NewReader(name, file), file: file})
	}
	return sources, nil
}

// sameFile reports whether two paths name one file, under whatever name.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return a != "-" && b != "-" && errX == nil && errY == nil && os.SameFile(x, y)
}

func (s *source) advance(got *capture.Capture) {
	for _, span := range got.Spans {
		for _, t := range []time.Time{span.Start, span.End} {
			if t.After(s.newest) {
				s.newest = t
			}
		}
	}
}
