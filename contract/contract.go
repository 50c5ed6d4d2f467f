package contract

import (
	"time"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// Contract is a contract ready to be checked. It does not change and may be used
// concurrently.
type Contract struct {
	spec    spec.Contract
	program *program
}

// Name returns the name of the contract.
func (c *Contract) Name() string { return c.spec.Name }

// Spec returns the contract with everything that it extends merged in. The caller
// must not change it.
func (c *Contract) Spec() *spec.Contract { return &c.spec }

// Check checks a whole capture.
func (c *Contract) Check(got *capture.Capture, opts ...Option) *Report {
	k := c.NewChecker(opts...)
	k.Add(got)
	return k.Report()
}

// Option changes how a contract is checked.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	requests     []string // nil for all
	exact        bool
	now          time.Time
	quiet        time.Duration
	maxOpenBytes int
}

// WithRequests bounds what must be exercised to these kinds of requests and the
// roles that they require. What was captured besides is checked all the same.
func WithRequests(kinds ...string) Option {
	return option(func(c *config) { c.requests = append([]string{}, kinds...) })
}

// WithExactTimes takes every tolerance for zero. It suits captures made under
// testing/synctest.
func WithExactTimes() Option { return option(func(c *config) { c.exact = true }) }

// WithNow sets the moment at which accepted violations are judged. Default: now.
func WithNow(now time.Time) Option { return option(func(c *config) { c.now = now }) }

// WithQuiet makes a checker that is fed piece by piece take a trace for complete
// once nothing of it came for d. The clock is that of the telemetry, the time that
// two traces have reached, so that one host with a wrong clock closes nothing. What
// comes later is counted and not checked. Default, and for a d of zero or less:
// traces are complete only when Report is called.
func WithQuiet(d time.Duration) Option {
	return option(func(c *config) { c.quiet = max(d, 0) })
}

// WithMaxOpenBytes bounds what the open traces of a checker hold, roughly in
// bytes; beyond it the longest quiet ones are checked early. Default 256 MiB, also
// for an n of zero or less; it matters only together with WithQuiet.
func WithMaxOpenBytes(n int) Option {
	return option(func(c *config) {
		if n > 0 {
			c.maxOpenBytes = n
		}
	})
}
