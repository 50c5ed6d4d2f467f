package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/semconv"
)

// queries writes PromQL about metrics of the registry, and collects what it does not
// have.
type queries struct{ errs []error }

func (q *queries) err() error { return errors.Join(q.errs...) }

func (q *queries) failf(format string, args ...any) {
	q.errs = append(q.errs, fmt.Errorf(format, args...))
}

// window is over what rates are taken in a dashboard; Grafana puts the number in.
const window = "$__rate_interval"

// unitSuffix holds the ends that Prometheus gives to the names of metrics, by their
// unit. Units in braces leave none.
var unitSuffix = map[string]string{"s": "_seconds", "By": "_bytes", "{token}/s": "_per_second"}

// prometheusName is the name that a metric has in Prometheus, as the OpenTelemetry
// specification of that translation has it, without the suffix of a series such as
// _bucket.
func prometheusName(m semconv.Metric) string {
	name := label(m.Name) + unitSuffix[m.Unit]
	if m.Instrument == "counter" {
		name += "_total"
	}
	return name
}

// label is the name that an attribute has in Prometheus.
func label(key string) string { return strings.ReplaceAll(key, ".", "_") }

// A selection is the labels that a query wants or groups by, as keys of the registry.
type selection struct {
	by    []string
	where map[string]string
}

func by(keys ...string) selection { return selection{by: keys} }

func (s selection) with(key, value string) selection {
	s.where = map[string]string{key: value}
	return s
}

// metric looks up what the query is about, and checks the labels against it.
func (q *queries) metric(name, instrument string, s selection) string {
	m, ok := semconv.LookupMetric(name)
	switch {
	case !ok:
		q.failf("%s is no metric of the registry", name)
		return name
	case m.Deprecated != "" || m.AliasOf != "":
		q.failf("%s is an older name", name)
	case m.Instrument != instrument:
		q.failf("%s is a %s, not a %s", name, m.Instrument, instrument)
	}
	keys := slices.Clone(s.by)
	for key := range s.where {
		keys = append(keys, key)
	}
	for _, key := range keys {
		if !slices.ContainsFunc(m.Attributes, func(r semconv.Requirement) bool { return string(r.Key) == key }) {
			q.failf("%s has no attribute %s", name, key)
		}
	}
	return prometheusName(m)
}

// matchers are those of a query; in a dashboard the variables of its head choose too.
func matchers(s selection, variables bool) string {
	var all []string
	if variables {
		all = append(all, `job=~"$job"`)
	}
	for key, value := range s.where {
		all = append(all, fmt.Sprintf("%s=%q", label(key), value))
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

func grouping(s selection, more ...string) string {
	labels := slices.Clone(more)
	for _, key := range s.by {
		labels = append(labels, label(key))
	}
	return "(" + strings.Join(labels, ", ") + ")"
}

// A source says where a query is asked: in the dashboard or in a rule.
type source struct {
	window    string
	variables bool
	labels    []string // kept besides those of the selection
}

var (
	dashboard = source{window: window, variables: true}
	rule      = source{window: "5m", labels: []string{"job"}}
)

// quantile is a quantile of a histogram.
func (q *queries) quantile(in source, share float64, name string, s selection) string {
	series := q.metric(name, "histogram", s)
	return fmt.Sprintf("histogram_quantile(%v, sum by %s (rate(%s_bucket%s[%s])))",
		share, grouping(s, append([]string{"le"}, in.labels...)...), series, matchers(s, in.variables), in.window)
}

// buckets is the histogram itself, for a heat map.
func (q *queries) buckets(in source, name string, s selection) string {
	series := q.metric(name, "histogram", s)
	return fmt.Sprintf("sum by (le) (increase(%s_bucket%s[%s]))", series, matchers(s, in.variables), in.window)
}

// rate is how many a second a histogram counted.
func (q *queries) rate(in source, name string, s selection) string {
	series := q.metric(name, "histogram", s)
	return fmt.Sprintf("sum by %s (rate(%s_count%s[%s]))", grouping(s, in.labels...), series, matchers(s, in.variables), in.window)
}

// mean is the mean of a histogram's values.
func (q *queries) mean(in source, name string, s selection) string {
	series := q.metric(name, "histogram", s)
	group, match := grouping(s, in.labels...), matchers(s, in.variables)
	return fmt.Sprintf("sum by %s (rate(%s_sum%s[%s])) / sum by %s (rate(%s_count%s[%s]))",
		group, series, match, in.window, group, series, match, in.window)
}

// failures is how many a second of those that a histogram counted have an error.type.
func (q *queries) failures(in source, name string, s selection) string {
	keys := selection{by: append([]string{"error.type"}, s.by...), where: s.where}
	series := q.metric(name, "histogram", keys)
	match := strings.TrimSuffix(matchers(s, in.variables), "}")
	if match == "" {
		match = "{"
	} else {
		match += ", "
	}
	return fmt.Sprintf("sum by %s (rate(%s_count%serror_type!=\"\"}[%s]))", grouping(s, in.labels...), series, match, in.window)
}

// errorRatio is the share of what a histogram counted that has an error.type. It is 0
// where none has: a ratio that vanishes when all goes well alerts of nothing.
func (q *queries) errorRatio(in source, name string, s selection) string {
	all := q.rate(in, name, s)
	return "(" + q.failures(in, name, s) + " or 0 * " + all + ") / " + all
}

// increase is how many a second a counter counted.
func (q *queries) increase(in source, name string, s selection) string {
	series := q.metric(name, "counter", s)
	return fmt.Sprintf("sum by %s (rate(%s%s[%s]))", grouping(s, in.labels...), series, matchers(s, in.variables), in.window)
}

// current is the sum of an up-down counter.
func (q *queries) current(in source, name string, s selection) string {
	series := q.metric(name, "updowncounter", s)
	return fmt.Sprintf("sum by %s (%s%s)", grouping(s, in.labels...), series, matchers(s, in.variables))
}
