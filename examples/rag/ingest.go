package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
)

// batchSize is how many chunks one call turns into vectors.
const batchSize = 32

// ingest fills both indexes, in a trace of its own.
func ingest(ctx context.Context, tel *telemetry.Telemetry, chunks []chunk, d *dense, l *lexical, stderr io.Writer) (err error) {
	begin := time.Now()
	ctx, run := tel.Tracer.StartWorkflow(ctx, "ingest")
	defer run.EndErr(&err)
	progress := newProgress(stderr, len(chunks))
	defer progress.stop()
	for batch := range slices.Chunk(chunks, batchSize) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.add(ctx, batch); err != nil {
			return err
		}
		if err := l.add(batch); err != nil {
			return err
		}
		progress.add(len(batch))
	}
	progress.stop()
	fmt.Fprintf(stderr, "indexed %d pieces of text in %s, their vectors by %s\n",
		len(chunks), command.Milliseconds(time.Since(begin)), d.embed.model())
	return nil
}

// progress is a bar on a terminal, and nothing elsewhere: the line at the end counts.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(out io.Writer, total int) *progress {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription("indexing"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
	)}
}

// A bar that cannot be drawn is no reason to stop.

func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n)
	}
}

// stop takes the bar away, once.
func (p *progress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
