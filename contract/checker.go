package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/semconv"
)

// Checker checks a contract against telemetry that comes piece by piece. It must
// not be used concurrently.
type Checker struct {
	contract *Contract
	config   config
	view     view
	first    []int32   // scratch of one rule, beside the spans of a trace
	values   []float64 // scratch of one rule, beside its terms

	open   openTraces
	spans  int
	traces int
	late   int
	// evicted and dropped are as in a Report.
	evicted, dropped int
	requests         []int

	tested  []int // by rule
	found   map[findingKey]*found
	omitted int

	clean      map[string]struct{}             // short texts that were searched and hold nothing
	origins    map[any]struct{}                // resources and scopes that were checked, by pointer
	lastOrigin [2]any                          // the latest two of them
	names      map[string]bool                 // names of spans, and whether the vocabulary has them
	suggested  map[attribute.Key]attribute.Key // unknown keys, and what was meant
	recognized map[spanType]*semconv.Span

	repeated  map[*capture.Span]int // of the trace, how often each span came again
	seen      seenSpans
	seenRoles roleSet
	orphans   []orphanSpan
	linked    []linkedSpan
	hopEnds   []hopEnd
	hopLinks  map[spanRef]struct{}
	distinct  []*distinctValues // by rule; nil for those that count none
	samples   []samples         // by objective
	metrics   []*capture.Metric
	measured  []measurements // beside program.measured
	logs      int
	logSpans  []logSpan
	seenLogs  map[string]bool
	owed      owedLogs
}

// maxRemembered bounds what is remembered of spans, traces and log records until the
// end.
const maxRemembered = 1 << 20

// NewChecker returns a checker that has seen nothing.
func (c *Contract) NewChecker(opts ...Option) *Checker {
	cfg := config{maxOpenBytes: defaultMaxOpenBytes}
	for _, o := range opts {
		o.apply(&cfg)
	}
	if cfg.now.IsZero() {
		cfg.now = time.Now()
	}
	p := c.program
	return &Checker{
		contract: c, config: cfg, view: newView(p),
		open:     newOpenTraces(),
		requests: make([]int, len(p.requests)),
		tested:   make([]int, len(p.rules)), found: map[findingKey]*found{},
		clean: map[string]struct{}{}, origins: map[any]struct{}{}, names: map[string]bool{},
		suggested: map[attribute.Key]attribute.Key{}, recognized: map[spanType]*semconv.Span{},
		hopLinks: map[spanRef]struct{}{}, distinct: make([]*distinctValues, len(p.rules)), samples: make([]samples, len(p.slos)),
		measured: make([]measurements, len(p.measured)), seenLogs: map[string]bool{},
	}
}

// Add gives more telemetry to the checker, which keeps it. Metrics are taken as
// they are: of a cumulative series give the last point only.
func (k *Checker) Add(got *capture.Capture) {
	if got == nil {
		return
	}
	k.dropped += got.Dropped
	for _, m := range got.Metrics {
		if m != nil {
			k.metrics = append(k.metrics, m)
		}
	}
	for _, l := range got.Logs {
		if l != nil {
			k.logs++
			k.checkLog(l)
		}
	}
	for _, s := range got.Spans {
		if s != nil {
			k.addSpan(s)
		}
	}
	k.closeQuiet()
}

func (k *Checker) checkTrace(t *capture.Trace) {
	k.traces++
	v, p := &k.view, k.contract.program
	v.load(k.once(t))
	for i, s := range v.spans {
		k.seen.add(s, v.roles[i])
	}
	k.seenRoles |= v.any
	for i, s := range v.spans {
		if !v.outside[i] {
			k.checkSpan(i, s)
		}
	}
	for r := range p.roles {
		if p.roles[r].count != nil {
			k.checkCount(&p.roles[r], 1<<r)
		}
	}
	k.checkTopology()
	k.checkLimits()
	for n := range p.hops {
		k.checkHop(n, &p.hops[n])
	}
	for n := range p.agree {
		k.checkAgree(&p.agree[n])
	}
}

// checkSpan checks one span by itself and by its roles.
func (k *Checker) checkSpan(i int, s *capture.Span) {
	v, p := &k.view, k.contract.program
	for j := range s.Attributes {
		info := v.info(i, j)
		k.checkWord(i, "", &s.Attributes[j], info)
		k.checkForbidden(i, "", &s.Attributes[j], info, ownAttribute)
	}
	for e := range s.Events {
		k.checkForbiddenName(i, "the name of an event", s.Events[e].Name)
		k.checkInner(i, s.Events[e].Name, s.Events[e].Attributes)
	}
	for l := range s.Links {
		k.checkInner(i, "link", s.Links[l].Attributes)
	}
	k.checkForbiddenSpan(i, s)
	k.checkOrigin(s.Resource, s.Scope)
	k.checkConvention(i, s)
	for r := range p.roles {
		if v.roles[i]&(1<<r) != 0 {
			k.checkRole(&p.roles[r], i)
		}
	}
	if r := p.scope.undeclared; v.roles[i] == 0 && r.severity != "" {
		k.test(r)
		k.findOn(r, i, "", s.Name, func(f *Finding) {
			f.Message = fmt.Sprintf("the span %s has no role in the contract", k.name(s))
			f.Expected, f.Found = "a role", k.name(s)
		})
	}
	for n := range p.requests {
		k.checkRequest(n, &p.requests[n], i)
	}
	for n := range p.timing {
		if v.roles[i]&(1<<p.timing[n].on) != 0 {
			k.checkTiming(&p.timing[n], i)
		}
	}
	for n := range p.slos {
		if v.roles[i]&(1<<p.slos[n].on) != 0 {
			k.sample(n, &p.slos[n], i)
		}
	}
	k.measure(i)
	k.oweLogs(i, s)
}

// checkInner checks the attributes of an event or a link.
func (k *Checker) checkInner(i int, on string, attributes capture.Attributes) {
	for j := range attributes {
		info := k.view.cache.get(attributes[j].Key)
		k.checkWord(i, on, &attributes[j], info)
		k.checkForbidden(i, on, &attributes[j], info, innerAttribute)
	}
}

// Report checks what is still open and returns the result. The checker must not be
// used afterwards.
func (k *Checker) Report() *Report {
	k.closeAll()
	k.judgeOrphans()
	k.judgeLinked()
	k.judgeHops()
	k.judgeDistinct()
	for n := range k.contract.program.slos {
		k.judgeSLO(n, &k.contract.program.slos[n])
	}
	k.checkMetrics()
	k.judgeLogs()
	k.judgeExercise()

	report := &Report{
		Contract: k.contract.spec.Name,
		Spans:    k.spans, Traces: k.traces, Metrics: len(k.metrics), Logs: k.logs,
		Requests: map[string]int{},
		Late:     k.late, Evicted: k.evicted, Dropped: k.dropped, Omitted: k.omitted,
	}
	for n := range k.requests {
		report.Requests[k.contract.program.requests[n].name] = k.requests[n]
	}
	report.Findings = k.findings()
	k.accept(report)
	for _, f := range k.findings() {
		if strings.HasPrefix(f.Rule, "accept.") {
			report.Findings = append(report.Findings, f)
		}
	}
	slices.SortStableFunc(report.Findings, compareFindings)
	slices.SortStableFunc(report.Accepted, compareFindings)
	report.Rules = k.coverage()
	return report
}

// compareFindings puts the gravest first.
func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(grave(b.Severity), grave(a.Severity)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.On, b.On), cmp.Compare(a.Key, b.Key))
}

func grave(s Severity) int {
	if s == Error {
		return 1
	}
	return 0
}

// Roles returns the roles that each span of a trace has, in order of their names.
func (c *Contract) Roles(t *capture.Trace) map[*capture.Span][]string {
	v := newView(c.program)
	roles := map[*capture.Span][]string{}
	if len(t.Spans) == 0 {
		return roles
	}
	v.load(t)
	for i, s := range t.Spans {
		for r := range c.program.roles {
			if v.roles[i]&(1<<r) != 0 {
				roles[s] = append(roles[s], c.program.roles[r].name)
			}
		}
	}
	return roles
}

// Requests returns the names of the kinds of requests.
func (c *Contract) Requests() []string { return sorted(c.spec.Requests) }
