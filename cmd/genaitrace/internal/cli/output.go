package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/internal/format"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// The formats of a report.
var formats = []string{"text", "json", "junit", "github"}

// verdict is how a report is written and judged: the flags that check and serve
// share.
type verdict struct {
	contract string
	formats  []string
	failOn   string
	outputs  []output
}

// output is one format on its way to a file or to stdout.
type output struct {
	format string
	path   string // empty: stdout
	file   *os.File
}

const contractUsage = "contract `FILE`, or builtin:NAME for a profile (genaitrace profiles lists them)"

func (v *verdict) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&v.contract, "contract", "", contractUsage)
	f.StringArrayVar(&v.formats, "format", []string{"text"}, "`FORMAT` of the report, "+strings.Join(formats, ", ")+", to stdout, or to a file as in\njunit=report.xml; may be repeated")
	f.StringVar(&v.failOn, "fail-on", string(contract.Error), "least `SEVERITY` that fails the check: error or warn")
}

// load reads the contract.
func load(path string) (*contract.Contract, error) {
	if path == "" {
		return nil, fail(exitUsage, "--contract is missing: give a contract file, or builtin:NAME")
	}
	var c *contract.Contract
	var err error
	if name, ok := strings.CutPrefix(path, "builtin:"); ok {
		c, err = contract.Builtin(name)
	} else {
		c, err = contract.Load(path)
	}
	if err != nil {
		return nil, &failure{exitUsage, err}
	}
	return c, nil
}

// open checks the flags and creates the files, so that a mistake is seen before a
// long run. The caller closes them.
func (v *verdict) open() error {
	if v.failOn != string(contract.Error) && v.failOn != string(contract.Warn) {
		return fail(exitUsage, "--fail-on is %q, want error or warn", v.failOn)
	}
	used := make(map[string]bool)
	for _, f := range v.formats {
		name, path, toFile := strings.Cut(f, "=")
		target := name + " to stdout"
		if toFile {
			target = path
			if path != "" {
				target = filepath.Clean(path)
			}
		}
		switch {
		case !slices.Contains(formats, name):
			near := ""
			if n := spec.Nearest(name, formats); n != "" {
				near = fmt.Sprintf(", did you mean %q?", n)
			}
			return fail(exitUsage, "--format is %q, want one of %s%s", name, strings.Join(formats, ", "), near)
		case target == "":
			return fail(exitUsage, "--format %s= names no file", name)
		case used[target]:
			return fail(exitUsage, "--format writes %s twice", target)
		}
		used[target] = true
		v.outputs = append(v.outputs, output{format: name, path: path})
	}
	for i := range v.outputs {
		out := &v.outputs[i]
		if out.path == "" {
			continue
		}
		file, err := os.Create(out.path)
		if err != nil {
			return fail(exitUsage, "--format %s: %w", out.format, err)
		}
		out.file = file
	}
	return nil
}

// close closes the files that are still open.
func (v *verdict) close() {
	for _, out := range v.outputs {
		if out.file != nil {
			_ = out.file.Close() // write has reported what went wrong
		}
	}
}

// write writes the report in each format.
func (v *verdict) write(a *app, r *contract.Report) error {
	var errs []error
	for i := range v.outputs {
		out := &v.outputs[i]
		var text bytes.Buffer
		err := v.render(a, &text, out.format, r)
		switch {
		case err != nil:
		case out.path == "":
			_, err = a.stdout.Write(text.Bytes())
		default:
			_, err = out.file.Write(text.Bytes())
			err = errors.Join(err, out.file.Close())
			out.file = nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--format %s: %w", out.format, err))
		}
	}
	if len(errs) > 0 {
		return &failure{exitUsage, errors.Join(errs...)}
	}
	return nil
}

func (v *verdict) render(a *app, w io.Writer, name string, r *contract.Report) error {
	switch name {
	case "json":
		return format.JSON(w, r)
	case "junit":
		return format.JUnit(w, r, v.warningsFail())
	case "github":
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		if path := a.getenv("GITHUB_STEP_SUMMARY"); path != "" {
			if err := appendSummary(path, r); err != nil {
				return err
			}
		}
		return format.GitHub(w, r, cmp.Or(a.getenv("GITHUB_WORKSPACE"), dir), dir)
	default:
		return r.WriteText(w)
	}
}

func appendSummary(path string, r *contract.Report) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the runner of GitHub names the file
	if err != nil {
		return err
	}
	return errors.Join(format.Summary(file, r), file.Close())
}

func (v *verdict) warningsFail() bool { return v.failOn == string(contract.Warn) }

// judge returns what the report means for the exit code.
func (v *verdict) judge(r *contract.Report, hint string) error {
	switch {
	case r.Empty():
		return fail(exitNothing, "nothing to check: %s", hint)
	case !exercised(r):
		return fail(exitNothing, "the contract %s was not exercised: none of its rules met a span, a metric or a log record it speaks about", r.Contract)
	case r.Failed(v.warningsFail()):
		return fail(exitFindings, "the contract %s does not hold: %s", r.Contract, format.Count(r))
	default:
		return nil
	}
}

// exercised reports whether the contract met something that it names, such as a
// role, or, where it only has rules about everything, anything. That a metric or a
// log event is missing can be told without.
func exercised(r *contract.Report) bool {
	named, tested, testedNamed := false, false, false
	for _, c := range r.Rules {
		if c.Rule == "metric.missing" || c.Rule == "log.missing" {
			continue
		}
		named = named || c.On != ""
		tested = tested || c.Tested > 0
		testedNamed = testedNamed || c.On != "" && c.Tested > 0
	}
	return testedNamed || !named && tested
}
