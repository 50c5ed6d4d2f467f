package main

import (
	"io"
	"net/url"
	"os"
	"time"

	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// config is what the flags say.
type config struct {
	prompt   string
	root     string
	maxSteps int
	timeout  time.Duration
	baseURL  *url.URL // nil: the built-in toy
	model    string
	apiKey   string
	record   string
}

const question = "How many seconds are 17 * 23 ms, what time is it in UTC, where is StartTool defined, " +
	"is the service up, and is there a password in ../..?"

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	var baseURL, keyVariable string
	flags := command.NewFlags("toolcalls")
	flags.StringVar(&cfg.prompt, "prompt", question, "`question` to ask")
	flags.StringVar(&cfg.root, "root", ".", "`directory` that files are searched in, and never outside of it")
	flags.IntVar(&cfg.maxSteps, "max-steps", 8, "largest `number` of times to ask the model")
	flags.DurationVar(&cfg.timeout, "timeout", 2*time.Minute, "largest `time` that the whole run may take")
	flags.StringVar(&baseURL, "base-url", "", "`URL` of an OpenAI-compatible server whose model calls tools,\nfor example http://localhost:11434/v1 (default: a toy that follows a script)")
	flags.StringVar(&cfg.model, "model", "", "`name` of the model; needed with -base-url")
	flags.StringVar(&keyVariable, "api-key-env", "OPENAI_API_KEY", "`name` of the environment variable that holds the key for -base-url")
	flags.StringVar(&cfg.record, "record", "", command.RecordUsage)
	if err := command.Parse(flags, args, stderr,
		"toolcalls lets an agent answer a question with tools, and prints where the time went.",
		"a question goes behind -prompt"); err != nil {
		return nil, err
	}
	switch {
	case cfg.prompt == "":
		return nil, command.Usagef("-prompt is empty, want a question")
	case cfg.maxSteps < 1:
		return nil, command.Usagef("-max-steps is %d, want at least 1", cfg.maxSteps)
	case cfg.timeout <= 0:
		return nil, command.Usagef("-timeout is %v, want a time such as 30s", cfg.timeout)
	}
	return cfg, cfg.setServer(baseURL, keyVariable)
}

func (c *config) setServer(text, keyVariable string) (err error) {
	c.apiKey = "none" // a real one is for real servers
	if text == "" {
		if c.model != "" && c.model != toy.Model {
			return command.Usagef("the built-in server has only the model %s; -base-url URL uses a server that has %q", toy.Model, c.model)
		}
		c.model = toy.Model
		return nil
	}
	if c.baseURL, err = command.BaseURL(text); err != nil {
		return err
	}
	if c.model == "" {
		return command.UsageError{Text: "-base-url needs -model NAME"}
	}
	if key := os.Getenv(keyVariable); key != "" {
		c.apiKey = key
	} else if keyVariable != "OPENAI_API_KEY" {
		return command.Usagef("-api-key-env names %s, which is not set", keyVariable)
	}
	return nil
}
