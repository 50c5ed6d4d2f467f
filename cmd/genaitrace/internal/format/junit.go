package format

import (
	"cmp"
	"encoding/xml"
	"io"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

type testsuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []*testsuite `xml:"testsuite"`
}

type testsuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"` // some readers want the zero
	Skipped  int         `xml:"skipped,attr"`
	Cases    []*testcase `xml:"testcase"`
}

type testcase struct {
	Classname string    `xml:"classname,attr"`
	Name      string    `xml:"name,attr"`
	File      string    `xml:"file,attr,omitempty"`
	Line      int       `xml:"line,attr,omitempty"`
	Failures  []outcome `xml:"failure"`
	Skipped   *skipped  `xml:"skipped"`
	Out       string    `xml:"system-out,omitempty"`
}

type outcome struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

// ruleKey is what a rule of a contract and a finding of it share.
type ruleKey struct{ rule, on, key string }

// JUnit writes r as JUnit XML: a suite for each section of rules (attribute,
// timing …), and in it a case for each rule of the contract, so that those that
// hold are seen too. A rule that nothing tested and one whose findings are all
// accepted are skipped. Warnings fail a case if warningsFail says so, else they
// are its output.
func JUnit(w io.Writer, r *contract.Report, warningsFail bool) error {
	root := &testsuites{Name: cmp.Or(r.Contract, "contract")}
	suites := make(map[string]*testsuite)
	for _, c := range cases(r, warningsFail) {
		section, _, _ := strings.Cut(c.Name, ".")
		suite := suites[section]
		if suite == nil {
			suite = &testsuite{Name: section}
			suites[section] = suite
			root.Suites = append(root.Suites, suite)
		}
		suite.Cases = append(suite.Cases, c)
		suite.Tests++
		root.Tests++
		switch {
		case len(c.Failures) > 0:
			suite.Failures++
			root.Failures++
		case c.Skipped != nil:
			suite.Skipped++
			root.Skipped++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(root); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// cases returns a case a rule, in the order of the sections and the contract.
func cases(r *contract.Report, warningsFail bool) []*testcase {
	var all []*testcase
	byRule := make(map[ruleKey]*testcase)
	add := func(k ruleKey, at spec.Position) *testcase {
		c := &testcase{Classname: cmp.Or(k.on, r.Contract, "contract"), Name: strings.TrimSpace(k.rule + " " + k.key), File: at.File, Line: at.Line}
		byRule[k] = c
		all = append(all, c)
		return c
	}
	tested := make(map[*testcase]bool)
	for _, rule := range r.Rules {
		k := ruleKey{rule.Rule, rule.On, rule.Key}
		c := byRule[k]
		if c == nil {
			c = add(k, rule.Contract)
		}
		tested[c] = tested[c] || rule.Tested > 0
	}
	for _, f := range slices.Concat(r.Findings, r.Accepted) {
		c := caseOf(byRule, &f)
		if c == nil {
			c = add(ruleKey{f.Rule, f.On, f.Key}, f.Contract)
		}
		tested[c] = true
		c.add(&f, warningsFail)
	}
	for _, c := range all {
		switch {
		case len(c.Failures) > 0:
			c.Skipped = nil // a case has one outcome
		case !tested[c]:
			c.Skipped = &skipped{Message: "nothing in the capture tested this rule"}
		}
	}
	slices.SortStableFunc(all, func(a, b *testcase) int {
		sectionA, _, _ := strings.Cut(a.Name, ".")
		sectionB, _, _ := strings.Cut(b.Name, ".")
		return cmp.Compare(sectionA, sectionB)
	})
	return all
}

// caseOf returns the case of the rule that made a finding. A rule about everything
// names no role and no key of its own, but its findings do.
func caseOf(byRule map[ruleKey]*testcase, f *contract.Finding) *testcase {
	for _, k := range []ruleKey{{f.Rule, f.On, f.Key}, {f.Rule, f.On, ""}, {f.Rule, "", f.Key}, {f.Rule, "", ""}} {
		if c := byRule[k]; c != nil {
			return c
		}
	}
	return nil
}

func (c *testcase) add(f *contract.Finding, warningsFail bool) {
	switch {
	case f.Reason != "":
		if c.Skipped == nil {
			c.Skipped = &skipped{Message: "accepted: " + f.Reason}
		}
		c.Out += f.Text()
	case f.Severity == contract.Error || warningsFail:
		c.Failures = append(c.Failures, outcome{Type: string(f.Severity), Message: f.Message, Text: f.Text()})
	default:
		c.Out += f.Text()
	}
}
