package contract

import (
	"time"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// Contract is a contract ready to be checked. It does not change and may be used
// concurrently.
type Contract struct {
	spec spec.Contract
}

// Load reads a contract file and what it extends.
func Load(path string) (*Contract, error) { panic("TODO") }

// Parse reads a contract from memory. Its name appears in errors. It may extend
// built-in profiles only.
func Parse(name string, data []byte) (*Contract, error) { panic("TODO") }

// Builtin returns a built-in profile by its name, such as chat.
func Builtin(name string) (*Contract, error) { panic("TODO") }

// Builtins returns the names of the built-in profiles.
func Builtins() []string { panic("TODO") }

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

type config struct {
	requests     []string
	exact        bool
	now          time.Time
	quiet        time.Duration
	maxOpenBytes int
}

// WithRequests bounds what must be exercised to these kinds of requests and the
// roles that they require. What was captured besides is checked all the same.
func WithRequests(kinds ...string) Option { panic("TODO") }

// WithExactTimes takes every tolerance for zero. It suits captures made under
// testing/synctest.
func WithExactTimes() Option { panic("TODO") }

// WithNow sets the day on which accepted violations are judged. Default: today.
func WithNow(now time.Time) Option { panic("TODO") }

// WithQuiet makes a checker that is fed piece by piece take a trace for complete
// once nothing of it came while the newest span moved on by d. Default: traces are
// complete only when Report is called.
func WithQuiet(d time.Duration) Option { panic("TODO") }

// WithMaxOpenBytes bounds what the open traces of a checker hold, roughly in
// bytes; beyond it the oldest are checked early. Default 256 MiB; it matters only
// together with WithQuiet.
func WithMaxOpenBytes(n int) Option { panic("TODO") }

// Checker checks a contract against telemetry that comes piece by piece. It must
// not be used concurrently.
type Checker struct{}

// NewChecker returns a checker that has seen nothing.
func (c *Contract) NewChecker(opts ...Option) *Checker { panic("TODO") }

// Add gives more telemetry to the checker, which keeps it.
func (k *Checker) Add(got *capture.Capture) { panic("TODO") }

// Report checks what is still open and returns the result. The checker must not be
// used afterwards.
func (k *Checker) Report() *Report { panic("TODO") }

// WriteText writes the report for people.
// func (r *Report) WriteText(w io.Writer) error   (in text.go)
