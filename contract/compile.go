package contract

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
)

// program is a contract in the form in which it is checked.
type program struct {
	keys     *keys
	rules    []*rule
	scope    scopeRule
	roles    []roleRule
	byHint   roleIndex
	requests []requestRule
	metrics  map[string]*metricRule
	logs     map[string]*logRule
	logged   []*logRule // those that count the records of spans
	hops     []hopRule
	forbid   forbidRule
	limits   limitRules
	timing   []timingRule
	topology topologyRules
	agree    []agreeRule
	slos     []sloRule
	accept   []acceptRule
	words    wordRules

	asked         roleSet  // those that have events that somebody asked for
	unexercised   Severity // how grave it is that a rule was never tested
	known         knownKeys
	measured      []*measuredRule
	atoms         []atom // of roles, in terms
	anyMetric     metricForm
	unknownMetric *rule
}

// rule is one line of a contract that can be violated.
type rule struct {
	n        int // its place in program.rules
	id       string
	on, key  string
	at       spec.Position
	severity Severity // empty: switched off
	exercise bool     // a capture to which it never applies is a finding
	needs    roleSet  // the roles that it is about
	most     int      // of what counts distinct values
}

// compiler turns a contract into a program and keeps the first error.
type compiler struct {
	spec    *spec.Contract
	files   []*spec.File // the later one wins
	program *program
	keys    *keys
	byRole  map[string]int
	err     error
}

func (p *compiler) failf(at spec.Position, format string, args ...any) {
	if p.err == nil {
		p.err = &spec.Error{Position: at, Message: fmt.Sprintf(format, args...)}
	}
}

// at returns where a part is said that does not know it itself.
func (p *compiler) at(path ...string) spec.Position {
	for _, f := range slices.Backward(p.files) {
		if f.Has(path...) {
			return f.At(path...)
		}
	}
	return spec.Position{}
}

func compile(c *spec.Contract, files []*spec.File) (*Contract, error) {
	p := &compiler{spec: c, files: files, keys: newKeys(&c.Forbid), byRole: map[string]int{}}
	p.program = &program{keys: p.keys}
	if p.declare(); !p.fewKeys() {
		return nil, p.err
	}
	p.program.known = p.knownKeys()
	p.severities()
	if p.names(); p.err != nil {
		return nil, p.err
	}
	p.scope()
	for i, name := range sorted(c.Spans) {
		p.program.roles[i] = p.role(name, c.Spans[name])
	}
	p.program.byHint = newRoleIndex(p.program.roles, &p.program.known)
	for _, name := range sorted(c.Requests) {
		p.program.requests = append(p.program.requests, p.request(name, c.Requests[name]))
	}
	p.metrics()
	p.logs()
	for i := range c.Propagation {
		p.program.hops = append(p.program.hops, p.hop(&c.Propagation[i]))
	}
	p.forbid()
	p.limits()
	for i := range c.Timing {
		p.program.timing = append(p.program.timing, p.timing(&c.Timing[i]))
	}
	p.topology()
	for i := range c.Agree {
		p.program.agree = append(p.program.agree, p.agree(&c.Agree[i]))
	}
	for i := range c.SLO {
		p.program.slos = append(p.program.slos, p.slo(&c.SLO[i]))
	}
	p.words()
	for i := range c.Accept {
		p.program.accept = append(p.program.accept, p.accept(&c.Accept[i]))
	}
	if !p.fewKeys() {
		return nil, p.err
	}
	p.program.unexercised = p.severity("contract.unexercised")
	return &Contract{spec: *c, program: p.program}, nil
}

// names gives each role its number, before anything refers to it.
func (p *compiler) names() {
	roles := sorted(p.spec.Spans)
	if len(roles) > maxRoles {
		p.failf(p.spec.Spans[roles[maxRoles]].Position, "the contract has %d roles, more than %d", len(roles), maxRoles)
		roles = roles[:maxRoles]
	}
	for i, name := range roles {
		if !roleName.MatchString(name) {
			p.failf(p.spec.Spans[name].Position, "role %q: a role is a word of lower case letters, digits and _", name)
		}
		if name == "trace" || name == "parent" {
			p.failf(p.spec.Spans[name].Position, "role %q: the word has a meaning of its own", name)
		}
		p.byRole[name] = i
	}
	p.program.roles = make([]roleRule, len(roles))
}

var roleName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// roleSet returns the roles as bits.
func (p *compiler) roleSet(at spec.Position, names spec.Strings) roleSet {
	var set roleSet
	for _, name := range names {
		set |= 1 << p.roleIndex(at, name)
	}
	return set
}

func (p *compiler) roleIndex(at spec.Position, name string) int {
	i, ok := p.byRole[name]
	if !ok {
		message := fmt.Sprintf("there is no role %q", name)
		if near := spec.Nearest(name, sorted(p.byRole)); near != "" {
			message += fmt.Sprintf(", did you mean %q?", near)
		} else if len(p.byRole) > 0 {
			message += "; roles are " + strings.Join(sorted(p.byRole), ", ")
		} else {
			message += "; roles are named in the section spans"
		}
		p.failf(at, "%s", message)
	}
	return i
}

// rule adds a rule to the program.
func (p *compiler) rule(id, on, key string, at spec.Position) *rule {
	r := &rule{n: len(p.program.rules), id: id, on: on, key: key, at: at, severity: p.severity(id)}
	p.program.rules = append(p.program.rules, r)
	return r
}

// policyRule adds a rule whose severity a policy decides.
func (p *compiler) policyRule(id string, policy, byDefault spec.Policy, at spec.Position) *rule {
	r := p.rule(id, "", "", at)
	switch cmp.Or(policy, byDefault) {
	case spec.PolicyAllow:
		r.severity = ""
	case spec.PolicyWarn:
		if r.severity == Error {
			r.severity = Warn
		}
	case spec.PolicyDeny:
	default:
		p.failf(at, "%q is none of allow, warn, deny", policy)
	}
	return r
}

// severities checks the section severity.
func (p *compiler) severities() {
	for _, pattern := range sorted(p.spec.Severity) {
		switch s := p.spec.Severity[pattern]; s {
		case spec.SeverityError, spec.SeverityWarn, spec.SeverityOff:
		default:
			p.failf(p.at("severity", pattern), "severity of %s is %q, want error, warn or off", pattern, s)
		}
		p.knownRule(p.at("severity", pattern), pattern)
	}
}

// knownRule checks that a pattern over rules means one.
func (p *compiler) knownRule(at spec.Position, pattern string) {
	g := newGlob(pattern)
	var ids []string
	for _, r := range rules {
		if g.match(r.ID) {
			return
		}
		ids = append(ids, r.ID)
	}
	message := fmt.Sprintf("there is no rule %q", pattern)
	if near := spec.Nearest(pattern, ids); near != "" {
		message += fmt.Sprintf(", did you mean %q?", near)
	}
	p.failf(at, "%s", message)
}

// severity returns how grave a violation of a rule is: what the longest matching
// pattern of the contract says, else the default.
func (p *compiler) severity(id string) Severity {
	severity, length := ruleByID(id).Severity, -1
	for _, pattern := range sorted(p.spec.Severity) {
		if len(pattern) > length && newGlob(pattern).match(id) {
			severity, length = Severity(p.spec.Severity[pattern]), len(pattern)
		}
	}
	if severity == Severity(spec.SeverityOff) {
		return ""
	}
	return severity
}

// scopeRule says which spans the contract speaks about.
type scopeRule struct {
	services, ignored globs
	undeclared        *rule
}

// excludes reports whether the contract does not speak about a span.
func (r *scopeRule) excludes(s *capture.Span) bool {
	if r.services != nil && !r.services.match(s.Resource.Service()) {
		return true
	}
	return r.ignored != nil && s.Scope != nil && r.ignored.match(s.Scope.Name)
}

func (p *compiler) scope() {
	s := p.spec.Scope
	p.program.scope = scopeRule{
		services:   newGlobs(s.Services),
		ignored:    newGlobs(s.IgnoreScopes),
		undeclared: p.policyRule("span.undeclared", s.Undeclared, spec.PolicyAllow, p.at("scope", "undeclared")),
	}
}

// tolerance is how far two values may be apart.
type tolerance struct {
	abs   float64 // nanoseconds, or a number
	share float64
}

func (t tolerance) of(a, b float64) float64 {
	return max(t.abs, t.share*max(abs(a), abs(b)))
}

func abs(f float64) float64 { return max(f, -f) }

func (p *compiler) tolerance(at spec.Position, t *spec.Tolerance) tolerance {
	if t == nil {
		return tolerance{}
	}
	out := tolerance{share: t.Pct / 100}
	if t.Abs != "" {
		out.abs, _ = p.constant(at, "abs", t.Abs)
	}
	if out.abs < 0 || out.share < 0 {
		p.failf(at, "a tolerance cannot be negative")
	}
	return out
}

// constant reads a duration, in nanoseconds, or a number.
func (p *compiler) constant(at spec.Position, key, text string) (value float64, isTime bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d), text != "0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.failf(at, "%s is %q, want a duration such as 5ms, or a number", key, text)
	}
	return f, false
}

// duration reads a duration, with a default for an empty text.
func (p *compiler) duration(at spec.Position, key, text string, byDefault time.Duration) time.Duration {
	if text == "" {
		return byDefault
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		p.failf(at, "%s is %q, want a duration such as 5ms", key, text)
	}
	return d
}

func (p *compiler) notNegative(at spec.Position, key string, n int) {
	if n < 0 {
		p.failf(at, "%s is %d, want 0 or more", key, n)
	}
}

// types are the words for types of values.
var types = map[string]semconv.Type{
	"string": semconv.TypeString, "int": semconv.TypeInt, "double": semconv.TypeDouble,
	"boolean": semconv.TypeBoolean, "string[]": semconv.TypeStrings, "int[]": semconv.TypeInts,
	"double[]": typeDoubles, "enum": semconv.TypeEnum, "any": semconv.TypeAny,
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func isTrue(b *bool) bool { return b != nil && *b }
