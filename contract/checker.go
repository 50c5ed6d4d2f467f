package contract

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/semconv"
)

// Checker checks a contract against telemetry that comes piece by piece. It must
// not be used concurrently.
type Checker struct {
	contract *Contract
	config   config
	view     view

	open     map[trace.TraceID]*list.Element // of openTrace, the longest quiet first
	quiet    *list.List
	bytes    int
	newest   time.Time
	closed   map[trace.TraceID]struct{}
	forget   []trace.TraceID // closed, the oldest first
	spans    int
	traces   int
	late     int
	evicted  int
	dropped  int
	requests []int

	tested []int // by rule
	found  map[findingKey]*Finding
	order  []findingKey

	clean      map[string]struct{} // short texts that were searched and hold nothing
	names      map[string]bool     // names of spans, and whether the vocabulary has them
	indexed    int                 // how much of seen is in the index
	seenRoles  roleSet
	seen       []spanTrace                // spans, as far as they are remembered
	index      map[trace.SpanID]spanTrace // the same, as far as it was asked for
	orphans    []orphanSpan
	hopEnds    []hopEnd
	values     map[int]map[string]struct{} // by rule
	samples    [][]float64                 // by objective
	metrics    []*capture.Metric
	measured   []measurements // beside program.measured
	logs       int
	logSpans   []logSpan
	seenLogs   map[string]bool
	suggested  map[attribute.Key]attribute.Key
	recognized map[spanType]*semconv.Span
}

// findingKey is what makes two findings the same.
type findingKey struct {
	rule    int
	on, key string
}

type openTrace struct {
	id    trace.TraceID
	spans []*capture.Span
	bytes int
	seen  time.Time // the newest time in the data when its last span came
}

const (
	defaultMaxOpenBytes = 256 << 20
	maxRemembered       = 1 << 20 // spans whose trace is known, traces that are closed
)

// NewChecker returns a checker that has seen nothing.
func (c *Contract) NewChecker(opts ...Option) *Checker {
	cfg := config{maxOpenBytes: defaultMaxOpenBytes}
	for _, o := range opts {
		o.apply(&cfg)
	}
	if cfg.now.IsZero() {
		cfg.now = time.Now()
	}
	k := &Checker{
		contract: c, config: cfg,
		open: map[trace.TraceID]*list.Element{}, quiet: list.New(), closed: map[trace.TraceID]struct{}{},
		requests: make([]int, len(c.program.requests)), tested: make([]int, len(c.program.rules)),
		found:  map[findingKey]*Finding{},
		index:  map[trace.SpanID]spanTrace{},
		values: map[int]map[string]struct{}{}, samples: make([][]float64, len(c.program.slos)),
		measured: make([]measurements, len(c.program.measured)), clean: map[string]struct{}{}, names: map[string]bool{}, seenLogs: map[string]bool{}, suggested: map[attribute.Key]attribute.Key{}, recognized: map[spanType]*semconv.Span{},
	}
	k.view = view{program: c.program, cache: &infoCache{c.program.keys, map[attribute.Key]*keyInfo{}}}
	return k
}

// Add gives more telemetry to the checker, which keeps it. Metrics are taken as
// they are: of a cumulative series give the last point only.
func (k *Checker) Add(got *capture.Capture) {
	k.dropped += got.Dropped
	k.metrics = append(k.metrics, got.Metrics...)
	for _, l := range got.Logs {
		k.logs++
		k.checkLog(l)
	}
	for _, s := range got.Spans {
		k.addSpan(s)
	}
	k.closeQuiet()
}

func (k *Checker) addSpan(s *capture.Span) {
	k.spans++
	if _, closed := k.closed[s.TraceID]; closed {
		k.late++
		return
	}
	if s.End.After(k.newest) {
		k.newest = s.End
	}
	e, ok := k.open[s.TraceID]
	if !ok {
		e = k.quiet.PushBack(&openTrace{id: s.TraceID})
		k.open[s.TraceID] = e
	}
	t := e.Value.(*openTrace)
	t.spans = append(t.spans, s)
	if k.config.quiet == 0 {
		return
	}
	n := size(s) + spanOverhead
	t.bytes += n
	k.bytes += n
	t.seen = k.newest
	k.quiet.MoveToBack(e)
}

// spanOverhead is roughly what a span takes in memory beside its text.
const spanOverhead = 400

// closeQuiet checks the traces that are complete, and the oldest where the open
// ones hold too much.
func (k *Checker) closeQuiet() {
	if k.config.quiet == 0 {
		return
	}
	for e := k.quiet.Front(); e != nil; e = k.quiet.Front() {
		t := e.Value.(*openTrace)
		switch {
		case k.newest.Sub(t.seen) > k.config.quiet:
		case k.bytes > k.config.maxOpenBytes:
			k.evicted++
		default:
			return
		}
		k.close(e)
		if len(k.forget) >= maxRemembered {
			delete(k.closed, k.forget[0])
			k.forget = k.forget[1:]
		}
		k.closed[t.id] = struct{}{}
		k.forget = append(k.forget, t.id)
	}
}

// close checks one trace.
func (k *Checker) close(e *list.Element) {
	t := e.Value.(*openTrace)
	k.quiet.Remove(e)
	delete(k.open, t.id)
	k.bytes -= t.bytes
	k.checkTrace(capture.NewTrace(t.spans))
}

func (k *Checker) checkTrace(t *capture.Trace) {
	k.traces++
	v, p := &k.view, k.contract.program
	v.load(t)
	for i, s := range v.spans {
		k.remember(i, s)
	}
	for i, s := range v.spans {
		if v.outside[i] {
			continue
		}
		k.seenRoles |= v.roles[i]
		k.checkSpan(i, s)
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

// remember notes what later traces may ask of a span.
func (k *Checker) remember(i int, s *capture.Span) {
	if len(k.seen) < maxRemembered {
		k.seen = append(k.seen, spanTrace{s.SpanID, s.TraceID, k.view.roles[i]})
	}
}

// spanTrace is a span that was seen.
type spanTrace struct {
	span  trace.SpanID
	trace trace.TraceID
	roles roleSet
}

// lookUp finds a span that was seen. Most captures never ask, so the index is made
// when one does.
func (k *Checker) lookUp(id trace.SpanID) (spanTrace, bool) {
	for ; k.indexed < len(k.seen); k.indexed++ {
		k.index[k.seen[k.indexed].span] = k.seen[k.indexed]
	}
	found, ok := k.index[id]
	return found, ok
}

// traceOf returns the trace in which a span was seen.
func (k *Checker) traceOf(id trace.SpanID) (trace.TraceID, bool) {
	found, ok := k.lookUp(id)
	return found.trace, ok
}

// rolesOf returns the roles of any span that was seen.
func (k *Checker) rolesOf(t trace.TraceID, id trace.SpanID) roleSet {
	found, ok := k.lookUp(id)
	if !ok || found.trace != t {
		return 0
	}
	return found.roles
}

// checkSpan checks one span by itself and by its roles.
func (k *Checker) checkSpan(i int, s *capture.Span) {
	v, p := &k.view, k.contract.program
	for j := range s.Attributes {
		info := v.info(i, j)
		k.checkWord(i, "", &s.Attributes[j], info)
		k.checkForbidden(i, "", &s.Attributes[j], info, false)
	}
	for e := range s.Events {
		k.checkInner(i, s.Events[e].Name, s.Events[e].Attributes)
	}
	for l := range s.Links {
		k.checkInner(i, "link", s.Links[l].Attributes)
	}
	k.checkForbiddenSpan(i, s)
	k.checkConvention(i, s)
	for r := range p.roles {
		if v.roles[i]&(1<<r) != 0 {
			k.checkRole(&p.roles[r], i)
		}
	}
	if v.roles[i] == 0 && p.scope.undeclared.severity != "" {
		k.test(p.scope.undeclared)
		k.findOn(p.scope.undeclared, i, "", s.Name, func(f *Finding) {
			f.Message = fmt.Sprintf("the span %s has no role in the contract", clip(s.Name, 80))
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
}

// checkInner checks the attributes of an event or a link.
func (k *Checker) checkInner(i int, on string, attributes capture.Attributes) {
	for j := range attributes {
		info := k.view.cache.get(attributes[j].Key)
		k.checkWord(i, on, &attributes[j], info)
		k.checkForbidden(i, on, &attributes[j], info, true)
	}
}

// checkConvention checks what the vocabulary requires of this type of span.
func (k *Checker) checkConvention(i int, s *capture.Span) {
	r := k.contract.program.words.convention
	if r.severity == "" {
		return
	}
	kind, ok := k.recognize(i, s)
	if !ok {
		return
	}
	for n := range kind.Attributes {
		a := &kind.Attributes[n]
		if a.Level != semconv.LevelRequired {
			continue
		}
		k.test(r)
		if k.hasSpelling(i, a.Key) {
			continue
		}
		k.findOn(r, i, "", string(a.Key), func(f *Finding) {
			f.Message = fmt.Sprintf("%s is a span of the type %s and has no %s", s.Name, kind.Type, a.Key)
			f.Expected, f.Found = string(a.Key), "nothing"
		})
	}
}

// excludes reports whether the contract does not speak about a span.
func (r *scopeRule) excludes(s *capture.Span) bool {
	if r.services != nil && !r.services.match(s.Resource.Service()) {
		return true
	}
	return r.ignored != nil && s.Scope != nil && r.ignored.match(s.Scope.Name)
}

// test notes that a rule was applied.
func (k *Checker) test(r *rule) { k.tested[r.n]++ }

// find notes a violation by the span i, −1 for none. A violation that was seen
// before is only counted.
func (k *Checker) find(r *rule, i int, key string, tell func(*Finding)) {
	k.findOn(r, i, "", key, tell)
}

// findOn is find for something on a span, such as an event, or for a rule that is
// about no role of its own.
func (k *Checker) findOn(r *rule, i int, on, key string, tell func(*Finding)) {
	if r.severity == "" {
		return
	}
	if r.on == "" && on == "" && i >= 0 {
		on = k.view.firstRole(i)
	}
	id := findingKey{r.n, on, key}
	if f, ok := k.found[id]; ok {
		f.Count++
		return
	}
	var at Finding
	if i >= 0 {
		k.where(&at, i)
	}
	k.findAt(r, at, on, key, tell)
}

// maxFindings bounds the distinct findings: keys and names of events are chosen by
// whoever records.
const maxFindings = 10_000

// findAt notes a violation at a place that is known already.
func (k *Checker) findAt(r *rule, at Finding, on, key string, tell func(*Finding)) {
	if r.severity == "" {
		return
	}
	id := findingKey{r.n, on, key}
	if f, ok := k.found[id]; ok {
		f.Count++
		return
	}
	if len(k.found) >= maxFindings {
		return
	}
	f := &Finding{
		Rule: r.id, Severity: r.severity, On: cmpOr(on, r.on), Key: cmpOr(key, r.key), Contract: r.at, Count: 1,
		TraceID: at.TraceID, SpanID: at.SpanID, Path: at.Path, Source: at.Source,
	}
	tell(f)
	f.Fix = cmpOr(f.Fix, ruleByID(r.id).Fix)
	k.found[id] = f
	k.order = append(k.order, id)
}

// where says where a span stands.
func (k *Checker) where(f *Finding, i int) {
	s := k.view.spans[i]
	f.TraceID, f.SpanID, f.Source = s.TraceID, s.SpanID, s.Source
	f.Path = k.view.trace.Path(s)
}

// Report checks what is still open and returns the result. The checker must not be
// used afterwards.
func (k *Checker) Report() *Report {
	for e := k.quiet.Front(); e != nil; e = k.quiet.Front() {
		k.close(e)
	}
	for i := range k.orphans {
		k.judgeOrphan(&k.orphans[i])
	}
	k.judgeHops()
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
		Late:     k.late, Evicted: k.evicted, Dropped: k.dropped,
	}
	for n := range k.requests {
		report.Requests[k.contract.program.requests[n].name] = k.requests[n]
	}
	report.Findings = k.findings(0)
	before := len(k.order)
	k.accept(report)
	report.Findings = append(report.Findings, k.findings(before)...)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(grave(b.Severity), grave(a.Severity)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.On, b.On), cmp.Compare(a.Key, b.Key))
	})
	report.Rules = k.coverage()
	return report
}

func grave(s Severity) int {
	if s == Error {
		return 1
	}
	return 0
}

// findings returns the findings from the n-th on.
func (k *Checker) findings(n int) []Finding {
	var all []Finding
	for _, id := range k.order[n:] {
		all = append(all, *k.found[id])
	}
	return all
}

// judgeExercise reports the parts of the contract that were never tested.
func (k *Checker) judgeExercise() {
	p := k.contract.program
	wanted := ^roleSet(0)
	if k.config.requests != nil {
		wanted = 0
		for _, r := range p.requests {
			if slices.Contains(k.config.requests, r.name) {
				wanted |= r.seen.needs
			}
		}
		for _, name := range k.config.requests {
			if !slices.ContainsFunc(p.requests, func(r requestRule) bool { return r.name == name }) {
				r := &rule{n: -1, id: "contract.unexercised", severity: Error}
				k.findAt(r, Finding{}, name, "", func(f *Finding) {
					f.Message = fmt.Sprintf("the contract has no requests of the kind %s", name)
				})
			}
		}
	}
	for _, r := range p.rules {
		if !r.exercise || k.tested[r.n] > 0 || r.needs&^wanted != 0 || k.config.requests != nil && r.needs == 0 {
			continue
		}
		if request := p.requestOf(r); request != "" && k.config.requests != nil && !slices.Contains(k.config.requests, request) {
			continue
		}
		unexercised := *r
		unexercised.id, unexercised.severity = "contract.unexercised", p.unexercised
		k.findAt(&unexercised, Finding{}, "", "", func(f *Finding) { f.Message = p.unseen(r) })
	}
}

// requestOf returns the kind of request that a rule stands for.
func (p *program) requestOf(r *rule) string {
	for i := range p.requests {
		if p.requests[i].seen == r {
			return p.requests[i].name
		}
	}
	return ""
}

// unseen says what a rule that was never tested would have tested.
func (p *program) unseen(r *rule) string {
	switch {
	case p.requestOf(r) != "":
		return fmt.Sprintf("no request of the kind %s was seen", r.on)
	case r.id == "contract.unexercised":
		return fmt.Sprintf("no span has the role %s", r.on)
	default:
		return fmt.Sprintf("the rule %s %s never applied", r.id, r.key)
	}
}

// coverage says how often each rule was tested.
func (k *Checker) coverage() []Coverage {
	counts := map[int]int{}
	for _, id := range k.order {
		counts[id.rule]++
	}
	var all []Coverage
	for _, r := range k.contract.program.rules {
		if r.severity == "" || r.id == "accept.expired" || r.id == "accept.stale" {
			continue
		}
		all = append(all, Coverage{Rule: r.id, On: r.on, Key: r.key, Tested: k.tested[r.n], Findings: counts[r.n], Contract: r.at})
	}
	return all
}

// Roles returns the roles that each span of a trace has, in order of their names.
func (c *Contract) Roles(t *capture.Trace) map[*capture.Span][]string {
	v := view{program: c.program, cache: &infoCache{c.program.keys, map[attribute.Key]*keyInfo{}}}
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
