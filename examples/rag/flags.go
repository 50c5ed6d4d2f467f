package main

import (
	"io"
	"net/url"

	"github.com/genaitrace/otelgenai/examples/internal/command"
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

const maxRequests = 100 // their spans are kept in memory

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	var baseURL string
	flags := command.NewFlags("rag")
	flags.StringVar(&cfg.prompt, "prompt", "", "`question` to ask (default \""+questions[0]+"\", with -n a few in turn)")
	flags.IntVar(&cfg.requests, "n", 1, "`number` of questions to ask, one after another")
	flags.StringVar(&cfg.docs, "docs", "", "`directory` whose Markdown files are searched (default: this project's documents)")
	flags.StringVar(&baseURL, "base-url", "", "`URL` of an OpenAI-compatible server for -embedding-model and -model,\nfor example http://localhost:11434/v1; OPENAI_API_KEY is its key")
	flags.StringVar(&cfg.embeddingModel, "embedding-model", "", "`name` of the model that makes vectors\n(default: hashes of words, which know nothing of meaning)")
	flags.StringVar(&cfg.model, "model", "", "`name` of the model that answers (default: the built-in toy, which quotes)")
	flags.StringVar(&cfg.record, "record", "", command.RecordUsage)
	if err := command.Parse(flags, args, stderr,
		"rag answers a question from documents that it searches in two ways, and prints where the time went.",
		"a question goes behind -prompt"); err != nil {
		return nil, err
	}
	if cfg.requests < 1 || cfg.requests > maxRequests {
		return nil, command.Usagef("-n is %d, want 1 to %d", cfg.requests, maxRequests)
	}
	return cfg, cfg.setServer(baseURL)
}

func (c *config) setServer(text string) error {
	if text == "" {
		if c.embeddingModel != "" || c.model != "" && c.model != toy.Model {
			return command.UsageError{Text: "-embedding-model and -model need -base-url URL, the server that has the model"}
		}
		c.model = toy.Model
		return nil
	}
	base, err := command.BaseURL(text)
	if err != nil {
		return err
	}
	if c.embeddingModel == "" && c.model == "" {
		return command.UsageError{Text: "-base-url needs -embedding-model NAME, -model NAME or both"}
	}
	if c.model == "" {
		c.model = toy.Model
	}
	c.baseURL = base
	return nil
}
