package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
)

// packages and benchmarks are what rows names, and a little more.
var packages = []string{
	"github.com/genaitrace/otelgenai/genaitrace",
	"github.com/genaitrace/otelgenai/middleware/wire",
	"github.com/genaitrace/otelgenai/middleware/genaihttp",
}

const benchmarks = "^Benchmark(Token|Operation|Inference500|Framing|StreamInMemory500|Stream500)$"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "costdoc:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 6, "how often to run each benchmark")
	benchtime := flag.String("benchtime", "1s", "how long to run it each time, as in go test")
	out := flag.String("o", "docs/cost.md", "file to write, - for the standard output")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		return fmt.Errorf("want flags alone, and -rounds of at least 1: %q", os.Args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all := newResults()
	for round := range *rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
		if err := benchmark(ctx, all, *benchtime); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	if err := write(&page, all, made{*rounds, *benchtime, command(), runtime.Version()}); err != nil {
		return err
	}
	if *out == "-" {
		_, err := io.Copy(os.Stdout, &page)
		return err
	}
	return os.WriteFile(*out, page.Bytes(), 0o644)
}

// command is what made the page, to make it again.
func command() string {
	words := []string{"go run ./genaitrace/internal/costdoc"}
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "o" {
			words = append(words, "-"+f.Name, f.Value.String())
		}
	})
	return strings.Join(words, " ")
}

// benchmark runs every benchmark once. Go runs those of several packages one after
// the other.
func benchmark(ctx context.Context, all *results, benchtime string) error {
	args := slices.Concat([]string{"test", "-run", "^$", "-bench", benchmarks, "-benchmem", "-benchtime", benchtime}, packages)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are ours, and one that go test checks
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, text, stderr.String())
	}
	return all.read(bytes.NewReader(text))
}
