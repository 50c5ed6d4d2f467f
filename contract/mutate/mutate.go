package mutate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// Mutant is one fault and what the contract said to it.
type Mutant struct {
	Operator Operator
	// On is the role, the metric or the log event that has the fault, or role/event
	// for an attribute of an event; empty for a fault of the whole capture.
	On string
	// Key is the attribute or the event; empty where the fault is not in one.
	Key string

	// Caught says whether the contract reported an error.
	Caught bool
	// By lists the rules that reported one, and Warned those that only warned, as they
	// did not without the fault.
	By, Warned []string
}

// Skipped is a fault that could not be put anywhere.
type Skipped struct {
	Operator Operator
	On, Key  string // as of a Mutant
	Why      string
}

// Result is the outcome of Run.
type Result struct {
	Contract string // the name of the contract

	// Mutants are the faults, by role, event, metric and log event and in the order of
	// Operators.
	Mutants []Mutant
	// Skipped lists the faults that fit nowhere or would have changed nothing. They do
	// not count.
	Skipped []Skipped
	// Absent lists what the contract names and the capture does not show at all, such
	// as "span prefill". No fault could be put there.
	Absent []string
}

// Score is the share of the faults that the contract caught, from 0 to 1.
func (r *Result) Score() float64 {
	if len(r.Mutants) == 0 {
		return 0
	}
	return float64(len(r.Mutants)-len(r.Survivors())) / float64(len(r.Mutants))
}

// Survivors returns the faults that the contract did not catch.
func (r *Result) Survivors() []Mutant {
	var survivors []Mutant
	for _, m := range r.Mutants {
		if !m.Caught {
			survivors = append(survivors, m)
		}
	}
	return survivors
}

// Option changes how Run works.
type Option interface{ apply(*config) }

type config struct{ check []contract.Option }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// WithCheck gives options to every check of the contract, such as
// [contract.WithExactTimes].
func WithCheck(opts ...contract.Option) Option {
	return optionFunc(func(c *config) { c.check = append(c.check, opts...) })
}

// Run puts every fault that fits into a copy of good, one at a time, and checks
// each copy against c. A fault is caught when the report holds an error; warnings
// do not count. Good must pass the contract and show something that it names.
func Run(c *contract.Contract, good *capture.Capture, opts ...Option) (*Result, error) {
	var cfg config
	for _, o := range opts {
		o.apply(&cfg)
	}
	before := c.Check(good, cfg.check...)
	if before.Failed(false) {
		return nil, failed(before)
	}
	warnings := map[[3]string]bool{}
	for _, f := range before.Findings {
		warnings[[3]string{f.Rule, f.On, f.Key}] = true
	}

	p := newPlan(c.Spec(), good, c.Roles)
	result := &Result{Contract: c.Name(), Absent: p.absent}
	for _, f := range p.faults {
		mutated, why := f.put()
		if mutated == nil {
			result.Skipped = append(result.Skipped, Skipped{f.operator, f.on, f.key, why})
			continue
		}
		m := Mutant{Operator: f.operator, On: f.on, Key: f.key}
		for _, finding := range c.Check(mutated, cfg.check...).Findings {
			switch {
			case finding.Severity == contract.Error:
				m.Caught = true
				m.By = append(m.By, finding.Rule)
			case !warnings[[3]string{finding.Rule, finding.On, finding.Key}]:
				m.Warned = append(m.Warned, finding.Rule)
			}
		}
		m.By, m.Warned = unique(m.By), unique(m.Warned)
		result.Mutants = append(result.Mutants, m)
	}
	if len(result.Mutants) == 0 {
		return nil, errors.New("mutate: no fault can be put into the capture: it shows nothing that the contract names")
	}
	return result, nil
}

// maxListed bounds the findings in an error.
const maxListed = 20

func failed(r *contract.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "mutate: the capture does not pass the contract %s, so a fault in it could not be told from what is wrong already:", r.Contract)
	n := 0
	for _, f := range r.Findings {
		if f.Severity != contract.Error {
			continue
		}
		if n++; n <= maxListed {
			fmt.Fprintf(&b, "\n  %s: %s", f.Rule, f.Message)
		}
	}
	if n > maxListed {
		fmt.Fprintf(&b, "\n  and %d more", n-maxListed)
	}
	return errors.New(b.String())
}

func unique(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}
