package format

import (
	"encoding/json"
	"io"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// JSONVersion names the shape that JSON writes. Keys may be added to it; none
// changes its meaning.
const JSONVersion = "genaitrace.report/v1"

type report struct {
	Format   string `json:"format"`
	Contract string `json:"contract"`

	Errors   int     `json:"errors"`
	Warnings int     `json:"warnings"`
	Checked  checked `json:"checked"`

	Findings []finding `json:"findings"`
	Accepted []finding `json:"accepted"`
	Rules    []rule    `json:"rules"`

	Late    int `json:"late"`
	Evicted int `json:"evicted"`
	Dropped int `json:"dropped"`
	Omitted int `json:"omitted"`
}

type checked struct {
	Spans    int            `json:"spans"`
	Traces   int            `json:"traces"`
	Metrics  int            `json:"metrics"`
	Logs     int            `json:"logs"`
	Requests map[string]int `json:"requests"`
}

type finding struct {
	contract.Finding
	TraceID  string    `json:"trace_id,omitempty"`
	SpanID   string    `json:"span_id,omitempty"`
	Source   *source   `json:"source,omitempty"`
	Contract *position `json:"contract,omitempty"`
}

type rule struct {
	contract.Coverage
	Contract *position `json:"contract,omitempty"`
}

type source struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
}

type position struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// JSON writes everything that r holds as one object. Identifiers are hexadecimal,
// and what is not known is left out; findings, accepted and rules are always
// lists, checked.requests always an object.
func JSON(w io.Writer, r *contract.Report) error {
	out := report{
		Format:   JSONVersion,
		Contract: r.Contract,
		Errors:   r.Count(contract.Error),
		Warnings: r.Count(contract.Warn),
		Checked:  checked{r.Spans, r.Traces, r.Metrics, r.Logs, r.Requests},
		Findings: findings(r.Findings),
		Accepted: findings(r.Accepted),
		Rules:    make([]rule, len(r.Rules)),
		Late:     r.Late,
		Evicted:  r.Evicted,
		Dropped:  r.Dropped,
		Omitted:  r.Omitted,
	}
	if out.Checked.Requests == nil {
		out.Checked.Requests = map[string]int{}
	}
	for i, c := range r.Rules {
		out.Rules[i] = rule{c, place(c.Contract)}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func findings(all []contract.Finding) []finding {
	out := make([]finding, len(all))
	for i, f := range all {
		out[i] = finding{Finding: f, Source: line(f.Source), Contract: place(f.Contract)}
		if f.TraceID.IsValid() {
			out[i].TraceID = f.TraceID.String()
		}
		if f.SpanID.IsValid() {
			out[i].SpanID = f.SpanID.String()
		}
	}
	return out
}

func line(s capture.Source) *source {
	if !s.Known() {
		return nil
	}
	return &source{s.File, s.Line, s.Function}
}

func place(p spec.Position) *position {
	if p == (spec.Position{}) {
		return nil
	}
	return &position{p.File, p.Line, p.Column}
}
