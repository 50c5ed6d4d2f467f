package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
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

// askOne prints a question and its answer as it comes.
func askOne(ctx context.Context, c *client, cfg *config, out io.Writer) error {
	fmt.Fprintf(out, "Q: %s\nA: ", cfg.question(0))
	_, err := c.ask(ctx, cfg.question(0), func(piece string) { fmt.Fprint(out, piece) })
	fmt.Fprintln(out)
	return err
}

// askMany sends the requests, at most cfg.concurrency at a time, and writes a
// line for each that is done.
func askMany(ctx context.Context, c *client, cfg *config, progress io.Writer) error {
	var (
		wg           sync.WaitGroup
		mu           sync.Mutex
		done, failed int
		firstErr     error
	)
	next := make(chan int)
	for range min(cfg.concurrency, cfg.requests) {
		wg.Go(func() {
			for i := range next {
				start := time.Now()
				text, err := c.ask(ctx, cfg.question(i), func(string) {})
				took := time.Since(start)

				mu.Lock()
				done++
				if err != nil {
					failed++
					text = err.Error()
					if firstErr == nil {
						firstErr = err
					}
				}
				fmt.Fprintf(progress, "%*d/%d  %6.2f s  %s  →  %s\n",
					len(fmt.Sprint(cfg.requests)), done, cfg.requests, took.Seconds(), cfg.question(i), text)
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
		return fmt.Errorf("interrupted after %d of %d requests: %w", done, cfg.requests, ctx.Err())
	case failed > 0:
		return fmt.Errorf("%d of %d requests failed, the first with: %w", failed, cfg.requests, firstErr)
	}
	return nil
}
