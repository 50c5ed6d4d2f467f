package main

import (
	"bytes"
	"fmt"
	"go/doc/comment"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The marks between which the reference stands in the document.
const (
	markBegin = "<!-- reference: generated, do not edit -->"
	markEnd   = "<!-- end -->"
)

// PutReference returns the document with the reference of types between its marks.
// An empty document becomes a heading and the marks.
func PutReference(document []byte, types []Type) ([]byte, error) {
	if len(document) == 0 {
		document = []byte("# Contract\n\n" + markBegin + "\n" + markEnd + "\n")
	}
	before, rest, ok := bytes.Cut(document, []byte(markBegin))
	if !ok {
		return nil, fmt.Errorf("the document holds no line %q for the reference to follow", markBegin)
	}
	_, after, ok := bytes.Cut(rest, []byte(markEnd))
	if !ok {
		return nil, fmt.Errorf("no line %q follows the line %q", markEnd, markBegin)
	}
	return bytes.Join([][]byte{before, []byte(markBegin), []byte("\n\n"), renderReference(types), []byte("\n"), []byte(markEnd), after}, nil), nil
}

func renderReference(types []Type) []byte {
	known := map[string]bool{}
	for _, t := range types {
		known[t.Name] = true
	}
	var out bytes.Buffer
	for i, t := range types {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "### Type %s\n\n%s\n", t.Name, paragraphs(&t, known))
		out.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
		for j := range t.Fields {
			f := &t.Fields[j]
			preset := code(f.Default)
			if f.Required {
				preset = "required"
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", f.Key, kindOf(f.of, f.Words), preset, strings.ReplaceAll(meaning(&t, f), "|", `\|`))
		}
	}
	return out.Bytes()
}

// paragraphs returns the doc comment of a type as Markdown.
func paragraphs(t *Type, known map[string]bool) []byte {
	p := comment.Parser{LookupSym: func(recv, name string) bool { return recv == "" && known[name] }}
	m := comment.Printer{DocLinkURL: func(link *comment.DocLink) string { return anchor(link.Name) }}
	text := bytes.Split(m.Markdown(p.Parse(t.Doc)), []byte("\n"))
	for i, line := range text {
		if !bytes.HasPrefix(line, []byte("\t")) { // no code
			text[i] = []byte(keysIn(string(line), t))
		}
	}
	return bytes.Join(text, []byte("\n"))
}

func anchor(name string) string { return "#type-" + strings.ToLower(name) }

// kindOf says what stands behind a key.
func kindOf(t reflect.Type, words []string) string {
	one := "text"
	if words != nil {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = code(w)
		}
		one = strings.Join(quoted, ", ")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem(), words)
	case reflect.Struct:
		return "[" + t.Name() + "](" + anchor(t.Name()) + ")"
	case reflect.Map:
		return "by name: " + kindOf(t.Elem(), words)
	case reflect.Slice:
		switch {
		case t.Elem().Kind() == reflect.Float64:
			return "list of numbers"
		case !decodesItself(t):
			return "list of " + kindOf(t.Elem(), words)
		case t.Elem().Kind() == reflect.Interface:
			return "text, number, true or false, or a list"
		default:
			return one + ", or a list"
		}
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	default:
		return one
	}
}

// meaning is the doc comment of a key without the key itself: "Kind is the span
// kind" becomes "The span kind".
func meaning(t *Type, f *Field) string {
	doc := oneLine(f.Doc)
	if rest, ok := strings.CutPrefix(doc, f.Name+" "); ok {
		doc = rest
		for _, verb := range []string{"is ", "are "} {
			doc = strings.TrimPrefix(doc, verb)
		}
	}
	doc = keysIn(doc, t)
	first, size := utf8.DecodeRuneInString(doc)
	return string(unicode.ToUpper(first)) + doc[size:]
}

// keysIn writes the names of fields, which a doc comment uses, as the keys that
// they stand for. A word that begins a sentence may be any word.
func keysIn(text string, t *Type) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		name := strings.TrimRight(w, ".,;:")
		begins := i > 0 && strings.HasSuffix(words[i-1], ".") || i == 0 && name == w
		for _, f := range t.Fields {
			if f.Name == name && !begins {
				words[i] = code(f.Key) + w[len(name):]
			}
		}
	}
	return strings.Join(words, " ")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
