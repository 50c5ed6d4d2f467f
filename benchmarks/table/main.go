package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 8, "how often to measure each column")
	chats := flag.Int("chats", 300, "how many chats to measure each time; of libraries a tenth")
	out := flag.String("o", "RESULTS.md", "`file` to write")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *chats < 10 {
		return fmt.Errorf("want flags alone, -rounds of at least 1 and -chats of at least 10: %q", os.Args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := binary{path: filepath.Join(dir, "benchmarks.test")}
	if _, err := output(ctx, "go", "test", "-c", "-o", b.path, "."); err != nil {
		return err
	}
	truth, err := b.truth(ctx, filepath.Join(dir, "score.md"))
	if err != nil {
		return err
	}
	p := page{rounds: *rounds, chats: *chats, command: command(), truth: truth, load: []string{load()}}
	if p.exported, err = b.round(ctx, newResults(), "^BenchmarkExported$", 1); err != nil {
		return err
	}
	for i := range *rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", i+1, *rounds)
		r, err := b.round(ctx, newResults(), "^BenchmarkStream$", *chats)
		if err != nil {
			return err
		}
		if r, err = b.round(ctx, r, "^BenchmarkLibrary$", *chats/10); err != nil {
			return err
		}
		p.costs = append(p.costs, r)
	}
	p.load = append(p.load, load())
	var text bytes.Buffer
	if err := p.write(&text); err != nil {
		return err
	}
	return os.WriteFile(*out, text.Bytes(), 0o644)
}

// command is what made the page, to make it again.
func command() string {
	words := []string{"go run ./table"}
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "o" {
			words = append(words, "-"+f.Name, f.Value.String())
		}
	})
	return strings.Join(words, " ")
}

// A binary is the test binary of the module.
type binary struct{ path string }

// truth runs the columns against what is true, and returns the table.
func (b binary) truth(ctx context.Context, file string) (string, error) {
	if _, err := output(ctx, b.path, "-test.run", "^TestTruth$", "-test.count", "1", "-score", file); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file) //nolint:gosec // a file that we have named
	return string(text), err
}

// round runs benchmarks once and adds what they measure.
func (b binary) round(ctx context.Context, r *results, benchmarks string, times int) (*results, error) {
	text, err := output(ctx, b.path, "-test.run", "^$", "-test.bench", benchmarks, "-test.benchtime", fmt.Sprintf("%dx", times))
	if err != nil {
		return nil, err
	}
	return r, r.read(bytes.NewReader(text))
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // our own binary, and arguments that it checks
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, text, stderr.String())
	}
	return text, nil
}

// load is the machine's load over the last minute; "" where it does not say.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
