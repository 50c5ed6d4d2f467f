package main

import (
	"io"
	"net/url"

	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// config is what the flags say.
type config struct {
	prompt      string
	requests    int
	concurrency int
	baseURL     *url.URL // nil: the built-in engine
	model       string
	stream      bool
	maxTokens   int
	record      string
}

const maxRequests = 1000 // their spans are kept in memory

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	var baseURL string
	flags := command.NewFlags("chat")
	flags.StringVar(&cfg.prompt, "prompt", "", "`question` to ask (default \""+questions[0]+"\", with -n a few in turn)")
	flags.IntVar(&cfg.requests, "n", 1, "`number` of requests to send")
	flags.IntVar(&cfg.concurrency, "concurrency", 4, "`number` of requests to send at the same time")
	flags.StringVar(&baseURL, "base-url", "", "`URL` of an OpenAI-compatible server to use instead of the built-in toy engine,\nfor example http://localhost:11434/v1; OPENAI_API_KEY is its key")
	flags.StringVar(&cfg.model, "model", "", "`name` of the model; needed with -base-url")
	flags.BoolVar(&cfg.stream, "stream", true, "stream the answer")
	flags.IntVar(&cfg.maxTokens, "max-tokens", 0, "largest `number` of tokens to generate (default: no limit but the server's)")
	flags.StringVar(&cfg.record, "record", "", command.RecordUsage)
	if err := command.Parse(flags, args, stderr,
		"chat sends a question through a traced chain of services and prints where its time went.",
		"a question goes behind -prompt"); err != nil {
		return nil, err
	}
	switch {
	case cfg.requests < 1 || cfg.requests > maxRequests:
		return nil, command.Usagef("-n is %d, want 1 to %d", cfg.requests, maxRequests)
	case cfg.concurrency < 1:
		return nil, command.Usagef("-concurrency is %d, want at least 1", cfg.concurrency)
	case cfg.maxTokens < 0:
		return nil, command.Usagef("-max-tokens is %d, want at least 1, or 0 for no limit", cfg.maxTokens)
	}
	if baseURL == "" {
		if cfg.model != "" && cfg.model != toy.Model {
			return nil, command.Usagef("the built-in engine has only the model %s; -base-url URL uses a server that has %q", toy.Model, cfg.model)
		}
		cfg.model = toy.Model
		return cfg, nil
	}
	base, err := command.BaseURL(baseURL)
	if err != nil {
		return nil, err
	}
	if cfg.model == "" {
		return nil, command.UsageError{Text: "-base-url needs -model NAME"}
	}
	cfg.baseURL = base
	return cfg, nil
}
