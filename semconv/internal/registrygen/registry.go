package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// File is one YAML file of the registry and the Go package made from it.
type File struct {
	Package    string      `yaml:"package"`
	Strip      string      `yaml:"strip"`
	Owns       []string    `yaml:"owns"`
	Attributes []Attribute `yaml:"attributes"`
	Aliases    []Alias     `yaml:"aliases"`
	Metrics    []Metric    `yaml:"metrics"`
	Events     []Event     `yaml:"events"`
	Entities   []Entity    `yaml:"entities"`
	Spans      []Span      `yaml:"spans"`
	Headers    []Header    `yaml:"headers"`
	Settled    []Settled   `yaml:"settled"`
	Conflicts  []Conflict  `yaml:"conflicts"`

	name string    // base name of the file
	tree *ast.File // the parsed text, to find line numbers
}

// Attribute is one key and what its value means.
type Attribute struct {
	Key         string   `yaml:"key"`
	Type        string   `yaml:"type"`
	Brief       string   `yaml:"brief"`
	Note        string   `yaml:"note"`
	Unit        string   `yaml:"unit"`
	Examples    []any    `yaml:"examples"`
	Stability   string   `yaml:"stability"`
	Official    string   `yaml:"official"`
	Sampling    bool     `yaml:"sampling"`
	Content     bool     `yaml:"content"`
	Deprecated  string   `yaml:"deprecated"`
	Replacement string   `yaml:"replacement"`
	Go          string   `yaml:"go"`
	Members     []Member `yaml:"members"`
}

// Member is one known value of an enum.
type Member struct {
	Value      string `yaml:"value"`
	Brief      string `yaml:"brief"`
	Deprecated string `yaml:"deprecated"`
	Now        string `yaml:"now"`
	Go         string `yaml:"go"`
}

// Alias is another spelling of a key, a span, an event or a metric.
type Alias struct {
	Name   string            `yaml:"name"`
	Of     string            `yaml:"of"`
	Kind   string            `yaml:"kind"`
	Type   string            `yaml:"type"`
	Unit   string            `yaml:"unit"`
	Factor float64           `yaml:"factor"`
	Values map[string]string `yaml:"values"`
	Keep   bool              `yaml:"keep"`
	Note   string            `yaml:"note"`
}

// Ref says that a span, a metric or an event carries an attribute.
type Ref struct {
	Key      string `yaml:"key"`
	Level    string `yaml:"level"`
	If       string `yaml:"if"`
	When     string `yaml:"when"`
	Sampling bool   `yaml:"sampling"`
}

// Metric is one instrument.
type Metric struct {
	Name        string    `yaml:"name"`
	Instrument  string    `yaml:"instrument"`
	Type        string    `yaml:"type"`
	Unit        string    `yaml:"unit"`
	Brief       string    `yaml:"brief"`
	Buckets     []float64 `yaml:"buckets"`
	Attributes  []Ref     `yaml:"attributes"`
	Streaming   bool      `yaml:"streaming"`
	Stability   string    `yaml:"stability"`
	Unseen      []string  `yaml:"unseen"`
	Deprecated  string    `yaml:"deprecated"`
	Replacement string    `yaml:"replacement"`
	Go          string    `yaml:"go"`
}

// Event is the name of a span event or, with Log, of a log record.
type Event struct {
	Name        string   `yaml:"name"`
	Brief       string   `yaml:"brief"`
	Log         bool     `yaml:"log"`
	Level       string   `yaml:"level"`
	Severity    int      `yaml:"severity"`
	Like        string   `yaml:"like"`
	Attributes  []Ref    `yaml:"attributes"`
	Stability   string   `yaml:"stability"`
	Unseen      []string `yaml:"unseen"`
	Deprecated  string   `yaml:"deprecated"`
	Replacement string   `yaml:"replacement"`
}

// Entity is something that telemetry is about.
type Entity struct {
	Type        string   `yaml:"type"`
	Brief       string   `yaml:"brief"`
	Stability   string   `yaml:"stability"`
	Identity    []string `yaml:"identity"`
	Description []string `yaml:"description"`
}

// Span is a type of span. The type of a house span is its fixed name.
type Span struct {
	Type        string   `yaml:"type"`
	Kind        string   `yaml:"kind"`
	InProcess   bool     `yaml:"in_process"`
	Names       []string `yaml:"names"`
	Operations  []string `yaml:"operations"`
	Role        string   `yaml:"role"`
	Entities    []string `yaml:"entities"`
	Refines     string   `yaml:"refines"`
	Brief       string   `yaml:"brief"`
	Attributes  []Ref    `yaml:"attributes"`
	Stability   string   `yaml:"stability"`
	Unseen      []string `yaml:"unseen"`
	Deprecated  string   `yaml:"deprecated"`
	Replacement string   `yaml:"replacement"`
}

// Header is a name under which context travels between processes.
type Header struct {
	Name  string `yaml:"name"`
	Of    string `yaml:"of"`
	Brief string `yaml:"brief"`
	Go    string `yaml:"go"`
}

// Settled is a word that somebody uses and that is no name here, with what
// stands for it.
type Settled struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"`
	As   string `yaml:"as"`
}

// Conflict is a fact that had several spellings or meanings, and how the
// registry settles it.
type Conflict struct {
	Fact  string   `yaml:"fact"`
	Names []string `yaml:"names"`
	As    string   `yaml:"as"`
}

// Load reads and checks every YAML file at the top of fsys, in order of name.
func Load(fsys fs.FS) ([]*File, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("the registry holds no *.yaml file")
	}
	var files []*File
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		file, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if err := validate(files); err != nil {
		return nil, err
	}
	return files, nil
}

func parse(name string, text []byte) (*File, error) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, located(name, err)
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: want one YAML document that is not empty", name)
	}
	file := &File{name: name, tree: tree}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(file); err != nil {
		return nil, located(name, err)
	}
	return file, nil
}

// located puts a YAML error on one line, with file, line and column in front.
func located(name string, err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	pos := at.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %s", name, pos.Line, pos.Column, at.GetMessage())
}

// line finds the line of a path such as attributes[2].key. A field that is not
// there has the line of what should hold it.
func (f *File) line(path string) int {
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if node, err := p.FilterFile(f.tree); err == nil && node != nil {
				return node.GetToken().Position.Line
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}
