package genaitrace

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"

	"github.com/genaitrace/otelgenai/semconv"
)

// optInVariable is shared with other instrumentations; values that do not start
// with optInPrefix are theirs.
const (
	optInVariable = "OTEL_SEMCONV_STABILITY_OPT_IN"
	optInPrefix   = "otelgenai/"
)

// WithVocabulary sets in which words a Tracer writes facts that have an official
// and a house name. Default: what an entry "otelgenai/…" of the environment
// variable OTEL_SEMCONV_STABILITY_OPT_IN names (otelgenai/standard,
// otelgenai/both, otelgenai/house, otelgenai/legacy; other entries are not ours),
// else [semconv.Standard]. A value that is none of the constants counts as not
// given, and is reported to [otel.Handle]; [Validate] refuses it.
//
// Usage is written once a trace in every vocabulary: a span under a caller that
// reports the official keys writes the house keys alone.
func WithVocabulary(v semconv.Vocabulary) Option {
	return optionFunc(func(c config) config {
		if !v.Valid() {
			c.err = errors.Join(c.err, fmt.Errorf("WithVocabulary: %v is not a vocabulary: want semconv.Standard, Both, House or Legacy", v))
			return c
		}
		c.vocabulary, c.chosen = v, true
		return c
	})
}

// Validate returns an error that names each option that [New] would have to leave
// out, and what to write instead.
func Validate(opts ...Option) error {
	_, err := configure(opts)
	if err != nil {
		return fmt.Errorf("genaitrace: %w", err)
	}
	return nil
}

// configure applies the options, and the environment where they say nothing.
func configure(opts []Option) (config, error) {
	c := config{stalls: defaultStalls}
	for _, o := range opts {
		if o != nil {
			c = o.apply(c)
		}
	}
	c = c.contentFromEnvironment()
	if c.chosen {
		return c, c.err
	}
	for entry := range strings.SplitSeq(os.Getenv(optInVariable), ",") {
		name, ours := strings.CutPrefix(strings.TrimSpace(entry), optInPrefix)
		if !ours {
			continue
		}
		v, err := semconv.ParseVocabulary(name)
		if err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("%s: %w", optInVariable, err))
			continue
		}
		c.vocabulary = v
	}
	return c, c.err
}

var reported sync.Map // text of an error → true; as many as a program has wrong options

// reportOnce keeps a wrong option or variable from being reported by every Tracer.
func reportOnce(err error) {
	if _, seen := reported.LoadOrStore(err.Error(), true); !seen {
		otel.Handle(fmt.Errorf("genaitrace: %w (it is left out)", err))
	}
}
