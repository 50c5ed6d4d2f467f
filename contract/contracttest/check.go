package contracttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

const (
	maxFindings = 20  // shown in one failure
	maxLines    = 120 // of the tree in one failure
)

const ruleNeverEnded = "topology.never_ended"

// check holds what was recorded against the contract, and asks that requests of
// these kinds have happened, or all that the contract speaks of.
func (o *Observer) check(t TB, kinds []string, all bool) {
	t.Helper()
	got := o.Capture(t)
	if got.Dropped > 0 {
		t.Errorf("contracttest: %d spans or log records were not kept, so the contract cannot be judged; raise capture.WithMax", got.Dropped)
		return
	}
	if len(got.Spans)+len(got.Metrics)+len(got.Logs) == 0 {
		t.Errorf("contracttest: nothing was recorded; give the code under test the providers of the Observer")
		return
	}
	if open := o.open(got); len(open) > 0 { // what they lack may yet come
		o.fail(t, got, "spans have not ended, and nothing else is checked before they do", open)
		return
	}
	opts := o.options()
	if !all {
		opts = append(opts, contract.WithRequests(kinds...))
	}
	report := o.contract.Check(got, opts...)
	o.fail(t, got, "the contract "+o.name()+" does not hold", report.Findings)
}

func (o *Observer) options() []contract.Option {
	var opts []contract.Option
	if o.bubble {
		opts = append(opts, contract.WithExactTimes(), contract.WithNow(o.now))
	}
	return opts
}

// open returns a finding for each span that has not ended where the contract takes
// that for an error. A report has one for all, and the line of each is wanted here.
func (o *Observer) open(got *capture.Capture) []contract.Finding {
	var open []contract.Finding
	for _, tr := range got.Traces() {
		for _, s := range tr.Spans {
			if s.Ended() {
				continue
			}
			report := o.contract.Check(&capture.Capture{Spans: []*capture.Span{s}}, o.options()...)
			for _, f := range report.Findings {
				if f.Rule == ruleNeverEnded && f.Severity == contract.Error {
					f.Path = tr.Path(s)
					open = append(open, f)
				}
			}
		}
	}
	return open
}

// fail reports the errors among findings that were not reported yet, and logs the
// warnings.
func (o *Observer) fail(t TB, got *capture.Capture, what string, findings []contract.Finding) {
	t.Helper()
	var errs []contract.Finding
	for _, f := range o.unreported(findings) {
		if f.Severity == contract.Error {
			errs = append(errs, f)
		} else {
			t.Logf("contracttest: %s", f.Text())
		}
	}
	if len(errs) == 0 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s):\n\n", what, count(len(errs), "error"))
	for i := range errs[:min(len(errs), maxFindings)] {
		fmt.Fprintf(&b, "%s\n", errs[i].Text())
	}
	if more := len(errs) - maxFindings; more > 0 {
		fmt.Fprintf(&b, "… and %d more\n\n", more)
	}
	b.WriteString(o.acceptance(errs))
	b.WriteString(tree(got, errs))
	t.Errorf("contracttest: %s", strings.TrimRight(b.String(), "\n"))
}

// unreported returns the findings that are new, and notes them.
func (o *Observer) unreported(findings []contract.Finding) []contract.Finding {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(findings), func(f contract.Finding) bool {
		key := f.Rule + "\x00" + f.On + "\x00" + f.Key
		if f.Rule == ruleNeverEnded {
			key += "\x00" + f.SpanID.String()
		}
		seen := o.reported[key]
		o.reported[key] = true
		return seen
	})
}

// acceptance is what to add to the contract where violations are to be lived with.
func (o *Observer) acceptance(findings []contract.Finding) string {
	var b strings.Builder
	seen := map[spec.Accept]bool{}
	for _, f := range findings {
		entry := spec.Accept{Rule: f.Rule, On: f.On, Key: f.Key}
		// What was not exercised is optional or not, and entries cannot excuse entries.
		if seen[entry] || f.Rule == "contract.unexercised" || strings.HasPrefix(f.Rule, "accept.") {
			continue
		}
		seen[entry] = true
		fmt.Fprintf(&b, "  - rule: %s\n", scalar(f.Rule))
		if f.On != "" {
			fmt.Fprintf(&b, "    on: %s\n", scalar(f.On))
		}
		if f.Key != "" {
			fmt.Fprintf(&b, "    key: %s\n", scalar(f.Key))
		}
		b.WriteString("    reason: \"\" # why; until: YYYY-MM-DD bounds it\n")
	}
	if b.Len() == 0 {
		return ""
	}
	where := "the contract"
	if o.file != "" {
		where = o.file
	}
	return "To live with a violation for now, say why in " + where + ":\n\naccept:\n" + b.String() + "\n"
}

var plainScalar = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

func scalar(s string) string {
	if plainScalar.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// tree returns the traces that findings are about, or all where they are about none.
func tree(got *capture.Capture, findings []contract.Finding) string {
	var about capture.Capture
	traces := map[trace.TraceID]bool{}
	for _, f := range findings {
		traces[f.TraceID] = true
	}
	about.Spans = got.Select(func(s *capture.Span) bool { return traces[s.TraceID] })
	if len(about.Spans) == 0 {
		about.Spans = got.Spans
	}
	if len(about.Spans) == 0 {
		return "No span was recorded.\n"
	}
	lines := strings.SplitAfter(about.String(), "\n")
	if more := len(lines) - maxLines; more > 0 {
		lines = append(lines[:maxLines:maxLines], fmt.Sprintf("… and %d more lines\n", more))
	}
	return "The spans:\n\n" + strings.Join(lines, "")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// choice says what there is to choose from, and what was likely meant.
func choice(word string, from []string, verb string) string {
	if len(from) == 0 {
		return verb + " none"
	}
	text := verb + " " + strings.Join(from, ", ")
	if near := spec.Nearest(word, from); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text
}
