package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"

	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// config is what the flags say.
type config struct {
	prompt         string
	requests       int
	docs           string
	baseURL        *url.URL // nil: nothing but what is built in
	model          string
	embeddingModel string // empty: the hashing embedder
	record         string
}

// chatURL is the server that answers; nil for the built-in engine.
func (c *config) chatURL() *url.URL {
	if c.model == toy.Model {
		return nil
	}
	return c.baseURL
}

// questions are asked in turn where -prompt does not say what to ask.
var questions = []string{
	"What is TTFT?",
	"Why is there no event for each token?",
	"What does cancelled mean for the status of a span?",
	"What is a contract?",
}

func (c *config) question(i int) string {
	if c.prompt != "" {
		return c.prompt
	}
	return questions[i%len(questions)]
}

// usageError is a mistake on the command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

const maxRequests = 100 // their spans are kept in memory

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	var baseURL string
	flags := flag.NewFlagSet("rag", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.StringVar(&cfg.prompt, "prompt", "", "`question` to ask (default \""+questions[0]+"\", with -n a few in turn)")
	flags.IntVar(&cfg.requests, "n", 1, "`number` of questions to ask, one after another")
	flags.StringVar(&cfg.docs, "docs", "", "`directory` whose Markdown files are searched (default: this project's documents)")
	flags.StringVar(&baseURL, "base-url", "", "`URL` of an OpenAI-compatible server for -embedding-model and -model,\nfor example http://localhost:11434/v1; OPENAI_API_KEY is its key")
	flags.StringVar(&cfg.embeddingModel, "embedding-model", "", "`name` of the model that makes vectors\n(default: hashes of words, which know nothing of meaning)")
	flags.StringVar(&cfg.model, "model", "", "`name` of the model that answers (default: the built-in toy, which quotes)")
	flags.StringVar(&cfg.record, "record", "", "`file` to write the telemetry to, as OTLP: .json, .jsonl or .pb, also with .gz")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "rag answers a question from documents that it searches in two ways, and prints where the time went.")
			flags.SetOutput(stderr)
			flags.PrintDefaults()
			return nil, err
		}
		return nil, usageError{err.Error()}
	}
	switch {
	case flags.NArg() > 0:
		return nil, usageError{fmt.Sprintf("unexpected argument %q: a question goes behind -prompt", flags.Arg(0))}
	case cfg.requests < 1 || cfg.requests > maxRequests:
		return nil, usageError{fmt.Sprintf("-n is %d, want 1 to %d", cfg.requests, maxRequests)}
	}
	return cfg, cfg.setServer(baseURL)
}

func (c *config) setServer(text string) error {
	if text == "" {
		if c.embeddingModel != "" || c.model != "" && c.model != toy.Model {
			return usageError{"-embedding-model and -model need -base-url URL, the server that has the model"}
		}
		c.model = toy.Model
		return nil
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		// The text is not repeated: it may hold a password.
		return usageError{"-base-url is no URL of a server, want something like http://localhost:11434/v1"}
	}
	if c.embeddingModel == "" && c.model == "" {
		return usageError{"-base-url needs -embedding-model NAME, -model NAME or both"}
	}
	if base.Path == "" {
		base.Path = "/" // else JoinPath makes a relative one
	}
	if c.model == "" {
		c.model = toy.Model
	}
	c.baseURL = base
	return nil
}
