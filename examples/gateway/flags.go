package main

import (
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// config is what the flags say.
type config struct {
	upstream *url.URL
	toy      bool // upstream is the toy engine, once it runs
	listen   string
	admin    string
	drain    time.Duration
	once     bool
	model    string
	prompt   string
	record   string
}

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	var upstream string
	flags := command.NewFlags("gateway")
	flags.StringVar(&upstream, "upstream", "", "`URL` of the server to pass requests on to, such as http://localhost:11434 or\nhttps://api.openai.com (default: a toy engine that is started along)")
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:4000", "`address` to listen on")
	flags.StringVar(&cfg.admin, "admin", "127.0.0.1:9464", "`address` of /metrics and /healthz")
	flags.DurationVar(&cfg.drain, "drain", 30*time.Second, "how `long` answers may go on after a signal to stop")
	flags.BoolVar(&cfg.once, "once", false, "send one question through the gateway, print where its time went, and end")
	flags.StringVar(&cfg.model, "model", "", "`name` of the model that -once asks")
	flags.StringVar(&cfg.prompt, "prompt", "What is TTFT?", "`question` that -once asks")
	flags.StringVar(&cfg.record, "record", "", command.RecordUsage)
	if err := command.Parse(flags, args, stderr,
		"gateway passes requests on to a server of models, and traces and measures them.\n"+
			"With OTEL_EXPORTER_OTLP_ENDPOINT set, traces and metrics go to that collector.",
		"the server goes behind -upstream"); err != nil {
		return nil, err
	}
	if err := cfg.setUpstream(upstream); err != nil {
		return nil, err
	}
	return cfg, cfg.check()
}

func (c *config) setUpstream(text string) error {
	if text == "" {
		if c.model != "" && c.model != toy.Model {
			return command.Usagef("the toy engine has only the model %s; -upstream URL names a server that has %q", toy.Model, c.model)
		}
		c.toy, c.model = true, toy.Model
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		// The text is not repeated: it may hold a password.
		return command.UsageError{Text: "-upstream is no URL of a server, want something like http://localhost:11434"}
	case u.User != nil:
		return command.UsageError{Text: "-upstream has a user or password, which would not be sent: clients send their own Authorization"}
	case u.RawQuery != "" || u.Fragment != "":
		return command.Usagef("-upstream has a query or fragment, want something like %s://%s", u.Scheme, u.Host)
	case c.once && c.model == "":
		return command.UsageError{Text: "-once needs -model NAME where there is an -upstream"}
	case !c.once && c.model != "":
		return command.UsageError{Text: "-model is for -once: otherwise each request names its model"}
	}
	c.upstream = u
	return nil
}

func (c *config) check() error {
	for _, a := range []struct{ name, value string }{{"-listen", c.listen}, {"-admin", c.admin}} {
		if _, _, err := net.SplitHostPort(a.value); err != nil {
			return command.Usagef("%s is %q, want an address such as 127.0.0.1:4000", a.name, a.value)
		}
	}
	if c.drain < 0 {
		return command.Usagef("-drain is %v, want a time such as 30s", c.drain)
	}
	return nil
}

// apiBase is what clients of OpenAI take as their base URL: the gateway's, and /v1
// unless that is a part of -upstream already.
func (c *config) apiBase(gateway string) string {
	if c.upstream != nil && strings.HasSuffix(strings.TrimSuffix(c.upstream.Path, "/"), "/v1") {
		return gateway
	}
	return gateway + "/v1"
}
