package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/command"
)

// questions are asked in turn where -prompt does not say what to ask.
var questions = []string{
	"What is TTFT?",
	"What is the capital of France?",
	"What is 17 * 23?",
	"What does prefill do?",
	"Why does a request wait in a queue?",
	"What is the KV cache good for?",
	"Explain decode.",
	"What is a trace?",
}

func (c *config) question(i int) string {
	if c.prompt != "" {
		return c.prompt
	}
	return questions[i%len(questions)]
}

// outcome names how a request ended.
func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return "failed"
	}
}

// askOne prints a question and its answer as it comes, or why it does not.
func askOne(ctx context.Context, c *chatclient.Client, cfg *config, out io.Writer) error {
	fmt.Fprintf(out, "Q: %s\nA: ", cfg.question(0))
	text, err := c.Ask(ctx, cfg.question(0), func(piece string) { fmt.Fprint(out, piece) })
	if err == nil {
		fmt.Fprintln(out)
		return nil
	}
	if text != "" {
		fmt.Fprint(out, "\n   ")
	}
	fmt.Fprintf(out, "✗ %s: %v\n", outcome(err), err)
	return command.ShownError{Err: err}
}

// askMany sends the requests, at most cfg.concurrency at a time, and writes a
// line for each that is done. It returns the error of each, and one for all.
func askMany(ctx context.Context, c *chatclient.Client, cfg *config, progress io.Writer) ([]error, error) {
	var (
		wg             sync.WaitGroup
		mu             sync.Mutex
		done, answered int
	)
	errs := make([]error, cfg.requests)
	next := make(chan int)
	for range min(cfg.concurrency, cfg.requests) {
		wg.Go(func() {
			for i := range next {
				start := time.Now()
				text, err := c.Ask(ctx, cfg.question(i), func(string) {}, withNumber(i+1))
				took := time.Since(start)

				mu.Lock()
				done++
				errs[i] = err
				if err == nil {
					answered++
				} else {
					text = err.Error()
				}
				fmt.Fprintf(progress, "request %d %s (%d of %d)  %s  %s → %s\n", i+1, outcome(err), done, cfg.requests,
					command.Milliseconds(took), short(cfg.question(i), 40), short(text, 100))
				mu.Unlock()
			}
		})
	}
	for i := range cfg.requests {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	switch {
	case ctx.Err() != nil:
		return errs, fmt.Errorf("interrupted after %d of %d answers: %w", answered, cfg.requests, ctx.Err())
	case answered < done:
		first := slices.IndexFunc(errs, func(err error) bool { return err != nil })
		return errs, fmt.Errorf("%d of %d requests failed, request %d with: %w", done-answered, cfg.requests, first+1, errs[first])
	}
	return errs, nil
}

// short puts text on one line of at most limit characters.
func short(text string, limit int) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
}
