package spec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxSize bounds a contract file, in bytes.
const MaxSize = 1 << 20

// Position is a place in a contract file.
type Position struct {
	File         string
	Line, Column int // from 1
}

// String returns file:line:column, and nothing for an unknown place.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Error is what is wrong with a contract file.
type Error struct {
	Position Position
	Message  string
}

func (e *Error) Error() string { return e.Position.String() + ": " + e.Message }

// File is a decoded contract file and the places of its parts.
type File struct {
	Contract Contract
	name     string
	root     ast.Node
	keys     map[*ast.MappingNode]map[string]int // the places of keys in large mappings
}

// Decode reads one contract file. Its name appears in errors, which are of type
// [*Error] and name the line and the column. Unknown keys are errors. What the
// parts mean together is checked when the contract is compiled, not here.
func Decode(name string, data []byte) (*File, error) {
	fail := func(line, column int, format string, args ...any) (*File, error) {
		return nil, &Error{Position{name, line, column}, fmt.Sprintf(format, args...)}
	}
	if len(data) > MaxSize {
		return fail(0, 0, "is too large for a contract, which has at most %d bytes", MaxSize)
	}
	if line := tooDeep(data); line > 0 {
		return fail(line, 1, "is nested deeper than %d levels", maxDepth)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		line := 1 + bytes.Count(data[:i], []byte("\n"))
		return fail(line, i-bytes.LastIndexByte(data[:i], '\n'), "holds a NUL byte; a contract is text in UTF-8")
	}
	parsed, err := parse(data)
	if err != nil {
		return nil, explain(name, err)
	}
	docs := slices.DeleteFunc(parsed.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch {
	case len(docs) == 0:
		return fail(1, 1, "is empty, want \"contract: %s\"", Version)
	case len(docs) > 1:
		line, column := place(docs[1].Body)
		return fail(line, column, "a second document starts here; a contract file is one document")
	}
	f := &File{name: name, root: docs[0].Body}
	if _, ok := f.root.(*ast.MappingNode); !ok {
		line, column := place(f.root)
		return fail(line, column, "want a mapping that starts with \"contract: %s\"", Version)
	}
	if err := resolve(f.root); err != nil {
		return nil, explain(name, err)
	}
	// The version first: in a file of another format every key is unknown.
	if _, at := f.step(f.root, "contract"); at == nil {
		return fail(1, 1, "the key contract is missing, want \"contract: %s\"", Version)
	} else if v, ok := at.(*ast.StringNode); !ok || v.Value != Version {
		line, column := place(at)
		return fail(line, column, "contract is %q, this version reads %s", at.String(), Version)
	}
	if err := decode(f.root, &f.Contract); err != nil {
		return nil, explain(name, err)
	}
	if err := f.visit(reflect.ValueOf(&f.Contract).Elem(), nil); err != nil {
		return nil, err
	}
	return f, nil
}

// parse keeps a parser's panic over damaged text from its caller.
func parse(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("cannot be read as YAML: %v", r)
		}
	}()
	return parser.ParseBytes(data, 0)
}

// maxDepth bounds how deep a file is nested: the parser calls itself at each level,
// and a stack that overflows cannot be recovered.
const maxDepth = 100

// tooDeep returns the line in which data is nested too deep by brackets or by dashes,
// 0 for none. Nesting by indentation takes more text than a file has.
func tooDeep(data []byte) int {
	line, depth, dashes := 1, 0, 0
	var quote byte // the one that is open
	before := byte('\n')
	for i, c := range data {
		starts := strings.IndexByte(" \t\n[{,:-?", before) >= 0
		switch {
		case quote != 0:
			if c == quote && before != '\\' {
				quote = 0
			}
		case c == '#' && strings.IndexByte(" \t\n", before) >= 0:
			quote = '\n' // a comment ends with its line
		case starts && (c == '"' || c == '\''):
			quote = c
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}') && depth > 0:
			depth--
		case starts && (c == '-' || c == '?') && i+1 < len(data) && data[i+1] == ' ':
			dashes++
		}
		if depth > maxDepth || dashes > maxDepth {
			return line
		}
		if c == '\n' {
			line, dashes = line+1, 0
		}
		before = c
	}
	return 0
}

func decode(root ast.Node, into *Contract) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read as a contract: %v", r)
		}
	}()
	return yaml.NodeToValue(root, into, yaml.Strict())
}

// Has reports whether the file says something at a place, such as
// Has("forbid", "content"), be it false, 0 or nothing.
func (f *File) Has(path ...string) bool {
	if f == nil || f.root == nil {
		return false
	}
	_, n := f.follow(path)
	return n == len(path)
}

// At returns the place of a part, such as At("spans", "gateway", "attributes"):
// the nearest that the file has. Items of lists are named by their number.
func (f *File) At(path ...string) Position {
	if f == nil || f.root == nil {
		return Position{}
	}
	said, _ := f.follow(path)
	line, column := place(said)
	return Position{f.name, line, column}
}

// follow goes along a path as far as the file has it. It returns where the last part
// is said, which is its key where it has one, and how many parts there were.
func (f *File) follow(path []string) (said ast.Node, n int) {
	said = f.root
	at := f.root
	for _, key := range path {
		keyNode, value := f.step(at, key)
		if value == nil {
			break
		}
		said, at = keyNode, value
		n++
	}
	return said, n
}

// step returns a key of a mapping and its value, or an item of a list twice.
func (f *File) step(node ast.Node, key string) (said, value ast.Node) {
	switch n := node.(type) {
	case *ast.MappingNode:
		if i := f.find(n, key); i >= 0 {
			return n.Values[i].Key, n.Values[i].Value
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Values) {
			return n.Values[i], n.Values[i]
		}
	case *ast.AnchorNode:
		return f.step(n.Value, key)
	}
	return nil, nil
}

// find returns the place of a key in a mapping, −1 for none.
func (f *File) find(n *ast.MappingNode, key string) int {
	if len(n.Values) <= 16 {
		return slices.IndexFunc(n.Values, func(v *ast.MappingValueNode) bool { return keyText(v.Key) == key })
	}
	places, ok := f.keys[n]
	if !ok {
		places = make(map[string]int, len(n.Values))
		for i, v := range n.Values {
			places[keyText(v.Key)] = i
		}
		if f.keys == nil {
			f.keys = map[*ast.MappingNode]map[string]int{}
		}
		f.keys[n] = places
	}
	if i, ok := places[key]; ok {
		return i
	}
	return -1
}

func keyText(key ast.Node) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return key.String()
}

func place(node ast.Node) (line, column int) {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if t := node.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 1, 1
}

// placed is an error of this package at a node.
type placed struct {
	node    ast.Node
	message string
}

func (p *placed) Error() string { return p.message }

func at(node ast.Node, message string) error { return &placed{node, message} }

// explain turns an error of the YAML library into one of ours.
func explain(name string, err error) error {
	var own *placed
	if errors.As(err, &own) {
		line, column := place(own.node)
		return &Error{Position{name, line, column}, own.message}
	}
	var theirs yaml.Error
	if !errors.As(err, &theirs) {
		return &Error{Position{File: name}, err.Error()}
	}
	position := Position{File: name}
	if t := theirs.GetToken(); t != nil && t.Position != nil {
		position.Line, position.Column = t.Position.Line, t.Position.Column
	}
	message := inOurWords(theirs.GetMessage())
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && unknown.Token != nil {
		key := unknown.Token.Value
		message = fmt.Sprintf("unknown key %q", key)
		if near := Nearest(key, allKeys()); near != "" {
			message += fmt.Sprintf(", did you mean %q?", near)
		}
	}
	var mistyped *yaml.TypeError
	if errors.As(err, &mistyped) {
		message = fmt.Sprintf("want %s, found %s", typeName(mistyped.DstType), typeName(mistyped.SrcType))
		if t := mistyped.Token; t != nil && strings.HasSuffix(t.Value, "%") {
			message += "; a percentage is a number, such as 10"
		}
	}
	return &Error{position, message}
}

// inOurWords says the way out of what is often mistaken.
func inOurWords(message string) string {
	switch {
	case strings.Contains(message, "'\t'"):
		return "a tab stands here; YAML is indented with spaces"
	case message == "value is not allowed in this context":
		return "this does not belong here: compare how this line and those before it are indented"
	case message == "sequence was used where mapping is expected":
		return "want a mapping, found a list: write key: value, without the dash or the brackets"
	case message == "mapping was used where sequence is expected":
		return "want a list, found a mapping: write a dash before each item"
	default:
		return message
	}
}

func typeName(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Pointer:
		return typeName(t.Elem())
	default:
		return t.String()
	}
}

// visit checks that the keys marked as required are there, and notes where each
// part stands.
func (f *File) visit(v reflect.Value, path []string) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return f.visit(v.Elem(), path)
		}
	case reflect.Struct:
		return f.visitStruct(v, path)
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			// The values of a map cannot be changed in place.
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(reflect.ValueOf(key)))
			if err := f.visit(value, append(slices.Clip(path), key)); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := f.visit(v.Index(i), append(slices.Clip(path), strconv.Itoa(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *File) visitStruct(v reflect.Value, path []string) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Type == reflect.TypeFor[Position]() {
			v.Field(i).Set(reflect.ValueOf(f.At(path...)))
			continue
		}
		key := field.Tag.Get("yaml")
		if field.Tag.Get("required") != "" && v.Field(i).IsZero() {
			return &Error{f.At(path...), fmt.Sprintf("%s: the key %s is missing", strings.Join(path, "."), key)}
		}
		if err := f.visit(v.Field(i), append(slices.Clip(path), key)); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}
