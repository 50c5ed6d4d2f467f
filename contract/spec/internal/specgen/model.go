package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Type is one mapping of the file.
type Type struct {
	Name   string
	Doc    string
	Fields []Field

	of reflect.Type
}

// Field is one key of a mapping.
type Field struct {
	Key      string
	Name     string // in Go
	Doc      string
	Default  string   // empty where there is none
	Words    []string // the closed set of its values, if there is one
	Required bool

	of reflect.Type
}

// source is what the Go files say beside the types.
type source struct {
	types  map[string]*typeSource
	words  map[string][]string // constants, by the name of their type
	places int
}

type typeSource struct {
	doc    string
	fields map[string]string // doc comments, by the name of the field
	place  int               // in the order of the files
}

// Model returns every mapping that root reaches, in the order in which the Go
// files in dir declare them.
func Model(root reflect.Type, dir string) ([]Type, error) {
	src, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	var types []Type
	for _, t := range reached(root) {
		known, ok := src.types[t.Name()]
		if !ok {
			return nil, fmt.Errorf("%s holds no type %s", dir, t.Name())
		}
		if known.doc == "" {
			return nil, fmt.Errorf("the type %s has no doc comment", t.Name())
		}
		out := Type{Name: t.Name(), Doc: known.doc, of: t}
		for i := range t.NumField() {
			f := t.Field(i)
			key := f.Tag.Get("yaml")
			if key == "" || key == "-" {
				continue
			}
			doc := known.fields[f.Name]
			if doc == "" {
				return nil, fmt.Errorf("%s.%s has no doc comment", t.Name(), f.Name)
			}
			out.Fields = append(out.Fields, Field{
				Key: key, Name: f.Name, Doc: doc, Default: defaultIn(doc), Words: src.wordsOf(f.Type, doc),
				Required: f.Tag.Get("required") != "", of: f.Type,
			})
		}
		types = append(types, out)
	}
	slices.SortFunc(types, func(a, b Type) int { return cmp.Compare(src.types[a.Name].place, src.types[b.Name].place) })
	return types, nil
}

// reached returns the structs that root is made of, itself included.
func reached(root reflect.Type) []reflect.Type {
	var found []reflect.Type
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if slices.Contains(found, t) {
				return
			}
			found = append(found, t)
			for i := range t.NumField() {
				if key := t.Field(i).Tag.Get("yaml"); key != "" && key != "-" {
					walk(t.Field(i).Type)
				}
			}
		}
	}
	walk(root)
	return found
}

// decodesItself reports whether the YAML form of t is not that of its Go type.
func decodesItself(t reflect.Type) bool {
	_, ok := reflect.PointerTo(t).MethodByName("UnmarshalYAML")
	return ok
}

func readSource(dir string) (*source, error) {
	tree := os.DirFS(dir)
	files, err := fs.Glob(tree, "*.go")
	if err != nil {
		return nil, err
	}
	src := &source{types: map[string]*typeSource{}, words: map[string][]string{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				src.declaration(d)
			}
		}
	}
	return src, nil
}

func (s *source) declaration(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.places++
			t := &typeSource{doc: d.Doc.Text(), fields: map[string]string{}, place: s.places}
			s.types[spec.Name.Name] = t
			if st, ok := spec.Type.(*ast.StructType); ok {
				t.readFields(st)
			}
		case *ast.ValueSpec:
			if t, ok := spec.Type.(*ast.Ident); ok && d.Tok == token.CONST {
				for _, v := range spec.Values {
					if text, ok := literal(v); ok {
						s.words[t.Name] = append(s.words[t.Name], text)
					}
				}
			}
		}
	}
}

// readFields notes the comments of fields. One comment may stand above several
// fields if it names them: "P50, P95 and Max are upper bounds".
func (t *typeSource) readFields(st *ast.StructType) {
	last := ""
	for _, f := range st.Fields.List {
		doc := f.Doc.Text()
		for _, name := range f.Names {
			if doc == "" && namesWord(last, name.Name) {
				doc = last
			}
			t.fields[name.Name] = doc
		}
		last = doc
	}
}

func namesWord(text, word string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(w string) bool { return strings.Trim(w, ",.;:") == word })
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

var (
	word      = `[a-z][a-z0-9_]*(?:\[\])?`
	listed    = word + `(?:\s\(default\))?`
	closedSet = regexp.MustCompile(`(?::|\bis)\s(` + listed + `(?:,\s` + listed + `)*(?:,|,?\sor)\s` + listed + `)\.(?:\s|$)`)
	separator = regexp.MustCompile(`(?:\s\(default\))?(?:,\sor|,|\sor)\s|\s\(default\)$`)
	marked    = regexp.MustCompile(`(` + word + `)\s\(default\)`)
	defaultIs = regexp.MustCompile(`\bDefault\s([^\s;]+?)[.;]?(?:\s|$)`)
)

// wordsOf returns the closed set of values of a field, nil where there is none.
func (s *source) wordsOf(t reflect.Type, doc string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.String {
		return nil
	}
	if words, ok := s.words[t.Name()]; ok {
		return words
	}
	list := closedSet.FindStringSubmatch(doc)
	if list == nil {
		return nil
	}
	return slices.DeleteFunc(separator.Split(list[1], -1), func(w string) bool { return w == "" })
}

func defaultIn(doc string) string {
	for _, form := range []*regexp.Regexp{marked, defaultIs} {
		if m := form.FindStringSubmatch(doc); m != nil {
			return m[1]
		}
	}
	return ""
}
