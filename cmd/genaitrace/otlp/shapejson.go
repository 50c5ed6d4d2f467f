package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// diagnoseJSON looks for what is wrong with a document that pdata refused, because
// pdata does not tell the place. It returns nil where it finds nothing.
func diagnoseJSON(doc []byte) *damage {
	w := jsonWalk{doc: doc, dec: json.NewDecoder(bytes.NewReader(doc))}
	w.dec.UseNumber()
	return w.object(func(key string) (field, bool) {
		for s := range signal(signals) {
			if f := s.envelope().field(1); f.named(key) {
				return f, true
			}
		}
		return field{}, false
	})
}

// jsonWalk goes through a JSON document and compares it with its shape.
type jsonWalk struct {
	doc []byte
	dec *json.Decoder
	at  int // where the last token begins
}

// next returns the next token.
func (w *jsonWalk) next() (json.Token, *damage) {
	w.at = int(w.dec.InputOffset())
	w.at += len(w.doc[w.at:]) - len(bytes.TrimLeft(w.doc[w.at:], " \t\r\n,:"))
	token, err := w.dec.Token()
	return token, w.syntax(err)
}

func (w *jsonWalk) syntax(err error) *damage {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &damage{offset: len(w.doc), text: "the document is cut off here"}
	}
	return &damage{offset: w.at, text: "no valid JSON: " + err.Error()}
}

// object checks an object whose keys have the fields that lookup returns.
func (w *jsonWalk) object(lookup func(key string) (field, bool)) *damage {
	open, d := w.next()
	if d != nil || open == nil {
		return d
	}
	if open != json.Delim('{') {
		return w.unexpected(open, "an object")
	}
	for w.dec.More() {
		token, d := w.next()
		if d != nil {
			return d
		}
		key, _ := token.(string)
		f, known := lookup(key)
		if !known {
			if d := w.skip(); d != nil {
				return d
			}
			continue
		}
		if d := w.value(f); d != nil {
			return d
		}
	}
	_, d = w.next()
	return d
}

// skip moves over a value, whatever it is.
func (w *jsonWalk) skip() *damage {
	for depth := 0; ; {
		token, d := w.next()
		if d != nil {
			return d
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// value checks the value of a field.
func (w *jsonWalk) value(f field) *damage {
	if element, ok := f.element(); ok {
		return w.list(f.name, element)
	}
	if d := w.single(f); d != nil {
		return d.within(f.name)
	}
	return nil
}

// element returns what a list holds.
func (f field) element() (field, bool) {
	lists := map[kind]kind{many: one, texts: text, integers: fixed64, fixed64s: fixed64, doubles: double}
	k, ok := lists[f.kind]
	return field{f.name, k, f.of}, ok
}

func (w *jsonWalk) list(name string, element field) *damage {
	open, d := w.next()
	if d != nil || open == nil {
		return d
	}
	if open != json.Delim('[') {
		return w.unexpected(open, "a list").within(name)
	}
	for i := 0; w.dec.More(); i++ {
		if d := w.single(element); d != nil {
			return d.within(name + "[" + strconv.Itoa(i) + "]")
		}
	}
	_, d = w.next()
	return d
}

// single checks a value that is no list.
func (w *jsonWalk) single(f field) *damage {
	if f.kind == one {
		return w.object(func(key string) (field, bool) {
			for _, inner := range messages[f.of] {
				if inner.named(key) {
					return inner, true
				}
			}
			return field{}, false
		})
	}
	token, d := w.next()
	if d != nil || token == nil && f.kind == text {
		return d
	}
	if want := f.refuses(token); want != "" {
		return w.unexpected(token, want)
	}
	return nil
}

// refuses returns what the field wants to have instead of the token, and nothing
// where that is right.
func (f field) refuses(token json.Token) string {
	s, isText := token.(string)
	number, isNumber := token.(json.Number)
	if isNumber {
		s = number.String()
	}
	switch f.kind {
	case text:
		return unless(isText, "a text")
	case traceID, spanID:
		size := map[kind]int{traceID: 16, spanID: 8}[f.kind]
		id, err := hex.DecodeString(s)
		return unless(isText && err == nil && (len(id) == size || s == ""), fmt.Sprintf("%d hexadecimal digits", 2*size))
	case blob:
		_, err := base64.StdEncoding.DecodeString(s)
		return unless(isText && err == nil, "base64")
	case boolean:
		_, ok := token.(bool)
		return unless(ok, "true or false")
	case enum:
		_, err := strconv.ParseInt(s, 10, 32)
		names := enumNames[f.name]
		return unless(isNumber && err == nil || isText && slices.Contains(names, s), "a whole number or a name such as "+names[len(names)-1])
	case integer:
		_, err := strconv.ParseInt(s, 10, 64)
		return unless((isText || isNumber) && err == nil, "a whole number of 64 bits")
	case fixed32:
		_, err := strconv.ParseUint(s, 10, 32)
		return unless((isText || isNumber) && err == nil, "a whole number of 32 bits")
	case fixed64:
		_, signed := strconv.ParseInt(s, 10, 64)
		_, unsigned := strconv.ParseUint(s, 10, 64)
		return unless((isText || isNumber) && (signed == nil || unsigned == nil), "a whole number")
	case double:
		_, err := strconv.ParseFloat(s, 64)
		return unless((isText || isNumber) && err == nil, "a number")
	}
	return ""
}

// enumNames holds the names that pdata knows for the numbers of a field.
var enumNames = map[string][]string{
	"kind":                   {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER", "SPAN_KIND_SERVER"},
	"code":                   {"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"},
	"aggregationTemporality": {"AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_CUMULATIVE", "AGGREGATION_TEMPORALITY_DELTA"},
	"severityNumber":         severityNames(),
}

func severityNames() []string {
	names := []string{"SEVERITY_NUMBER_UNSPECIFIED"}
	for _, level := range []string{"TRACE", "DEBUG", "WARN", "ERROR", "FATAL", "INFO"} {
		for _, step := range []string{"4", "3", "2", ""} {
			if level+step != "TRACE" { // pdata has it with a blank at its end
				names = append(names, "SEVERITY_NUMBER_"+level+step)
			}
		}
	}
	return names
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

// unexpected says what stands where something else should.
func (w *jsonWalk) unexpected(token json.Token, want string) *damage {
	const longest = 40
	var found string
	switch t := token.(type) {
	case nil:
		found, want = "null", want+", or nothing"
	case json.Delim:
		found = map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case string:
		found = fmt.Sprintf("the text %q", t[:min(len(t), longest)])
		if len(t) > longest {
			found += fmt.Sprintf("… of %d characters", len(t))
		}
		found = strings.ToValidUTF8(found, "")
	default:
		found = fmt.Sprint(t)
	}
	return &damage{offset: w.at, text: fmt.Sprintf("found %s; expected %s", found, want)}
}
