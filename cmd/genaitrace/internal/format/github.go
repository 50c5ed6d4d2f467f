package format

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/genaitrace/otelgenai/contract"
)

// maxAnnotations is how many of one severity GitHub shows of a step.
const maxAnnotations = 10

// GitHub writes the findings as workflow commands, which GitHub Actions turns into
// annotations: at the line that started the span where that is known, else at the
// line of the contract. GitHub shows ten of each severity, so the rest is counted
// in one more.
//
// Root is the absolute path of the repository, and dir that of the working
// directory, to which relative paths belong. A file outside root gets no
// annotation of its own; the text names it.
func GitHub(w io.Writer, r *contract.Report, root, dir string) error {
	var out strings.Builder
	written := make(map[contract.Severity]int)
	for i := range r.Findings {
		f := &r.Findings[i]
		if written[f.Severity]++; written[f.Severity] <= maxAnnotations {
			out.WriteString(annotation(f, root, dir))
		}
	}
	var rest []string
	if n := written[contract.Error] - maxAnnotations; n > 0 {
		rest = append(rest, count(n, "more error"))
	}
	if n := written[contract.Warn] - maxAnnotations; n > 0 {
		rest = append(rest, count(n, "more warning"))
	}
	if len(rest) > 0 {
		fmt.Fprintf(&out, "::notice title=%s::%s\n", property("contract "+r.Contract), data("and "+strings.Join(rest, " and ")))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

var indent = regexp.MustCompile(`\n +`)

func annotation(f *contract.Finding, root, dir string) string {
	var place string
	if file, ok := within(root, dir, f.Source.File); ok && f.Source.Known() {
		place = "file=" + property(file) + ",line=" + strconv.Itoa(f.Source.Line) + ","
	} else if file, ok := within(root, dir, f.Contract.File); ok {
		place = "file=" + property(file) + ",line=" + strconv.Itoa(max(f.Contract.Line, 1)) + ","
	}
	command := "warning"
	if f.Severity == contract.Error {
		command = "error"
	}
	// The title has what the first line says before the message.
	text := strings.TrimPrefix(f.Text(), fmt.Sprintf("%-5s  %s  ", f.Severity, f.Rule))
	text = indent.ReplaceAllLiteralString(text, "\n")
	return "::" + command + " " + place + "title=" + property(f.Rule) + "::" + data(strings.TrimSpace(text)) + "\n"
}

// within returns file relative to root with slashes, as GitHub wants it. A
// built-in profile is no file.
func within(root, dir, file string) (string, bool) {
	if file == "" || strings.HasPrefix(file, "builtin:") {
		return "", false
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	relative, err := filepath.Rel(cmp.Or(root, dir), file)
	if err != nil || !filepath.IsLocal(relative) {
		return "", false
	}
	return filepath.ToSlash(relative), true
}

var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func data(text string) string     { return dataEscapes.Replace(text) }
func property(text string) string { return propertyEscapes.Replace(text) }
