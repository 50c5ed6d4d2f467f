package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"path"
	"text/template"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").
	Funcs(template.FuncMap{"comment": comment}).
	ParseFS(templateFiles, "templates/*.tmpl"))

// Render makes the Go files of a checked registry. The result maps a slash
// separated path below the output folder to the text of the file.
func Render(files []*File) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, f := range files {
		if f.Package == "" {
			continue
		}
		view := newView(f, files)
		var parts []string
		if len(f.Attributes) > 0 {
			parts = append(parts, "attributes")
		}
		if len(f.Metrics) > 0 {
			parts = append(parts, "metrics")
		}
		if len(view.Names) > 0 {
			parts = append(parts, "names")
		}
		for _, part := range parts {
			text, err := execute(part+".tmpl", view)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			out[path.Join(folder(f.Package), part+"_gen.go")] = text
		}
	}
	text, err := tables(files)
	if err != nil {
		return nil, err
	}
	out["registry_gen.go"] = text
	return out, nil
}

// folder is where a package lives below the output folder.
func folder(pkg string) string {
	if pkg == "semconv" {
		return "."
	}
	return pkg
}

func execute(name string, view fileView) ([]byte, error) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, view); err != nil {
		return nil, err
	}
	text, err := format.Source(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s does not render to Go: %w", name, err)
	}
	return text, nil
}
