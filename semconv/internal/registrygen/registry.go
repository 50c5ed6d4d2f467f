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
	External   []string    `yaml:"external"`
	Attributes []Attribute `yaml:"attributes"`
	Metrics    []Metric    `yaml:"metrics"`
	Events     []Event     `yaml:"events"`
	Spans      []Span      `yaml:"spans"`

	name string    // base name of the file
	tree *ast.File // the parsed text, to find line numbers
}

// Attribute is one key and what its value means.
type Attribute struct {
	Key        string   `yaml:"key"`
	Type       string   `yaml:"type"`
	Brief      string   `yaml:"brief"`
	Unit       string   `yaml:"unit"`
	Examples   []any    `yaml:"examples"`
	Stability  string   `yaml:"stability"`
	Official   string   `yaml:"official"`
	Sampling   bool     `yaml:"sampling"`
	Deprecated string   `yaml:"deprecated"`
	Go         string   `yaml:"go"`
	Members    []Member `yaml:"members"`
}

// Member is one known value of an enum.
type Member struct {
	Value      string `yaml:"value"`
	Brief      string `yaml:"brief"`
	Deprecated string `yaml:"deprecated"`
	Go         string `yaml:"go"`
}

// Metric is one instrument.
type Metric struct {
	Name       string    `yaml:"name"`
	Instrument string    `yaml:"instrument"`
	Type       string    `yaml:"type"`
	Unit       string    `yaml:"unit"`
	Brief      string    `yaml:"brief"`
	Buckets    []float64 `yaml:"buckets"`
	Attributes []string  `yaml:"attributes"`
	Stability  string    `yaml:"stability"`
	Deprecated string    `yaml:"deprecated"`
	Go         string    `yaml:"go"`
}

// Event is the name of a span event.
type Event struct {
	Name  string `yaml:"name"`
	Brief string `yaml:"brief"`
}

// Span is the fixed name of a span and the role it plays.
type Span struct {
	Name  string `yaml:"name"`
	Role  string `yaml:"role"`
	Brief string `yaml:"brief"`
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
