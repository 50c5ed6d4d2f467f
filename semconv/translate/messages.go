package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// message is a message of gen_ai.input.messages or gen_ai.output.messages, as
// far as a flattened one can say the same. A list that says more is kept as it
// was.
type message struct {
	Role         string        `json:"role"`
	Parts        []messagePart `json:"parts"`
	Name         string        `json:"name,omitempty"`
	FinishReason string        `json:"finish_reason,omitempty"`
}

// messagePart is a text, a call of a tool or its response.
type messagePart struct {
	Type      string          `json:"type"`
	Content   *string         `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  json.RawMessage `json:"response,omitempty"`
}

const (
	partText     = "text"
	partCall     = "tool_call"
	partResponse = "tool_call_response"
)

// form is how a vocabulary writes a list of messages: as one attribute, or
// flattened into one for each field.
type form struct {
	key  attribute.Key // of the one attribute
	flat *messageRow   // nil for the one attribute
}

func (f form) String() string {
	if f.flat != nil {
		return f.flat.prefix + "*"
	}
	return string(f.key)
}

// messageList leads from one form to another, of which one at least is flat.
type messageList struct{ from, to form }

// finishReasonsKey is where Standard says what each message of the output said
// in older conventions.
const finishReasonsKey = "gen_ai.response.finish_reasons"

// compileMessages joins the lists of messages of the two vocabularies.
func (t *Translator) compileMessages() {
	plain := func(v *table, ours string) (form, bool) {
		if rows := v.ours[ours]; len(rows) > 0 {
			return form{key: attribute.Key(rows[0].Theirs)}, true
		}
		return form{}, false
	}
	for i := range t.from.Messages {
		src := &t.from.Messages[i]
		to, ok := plain(t.to, src.Ours)
		if at := slices.IndexFunc(t.to.Messages, func(dst messageRow) bool { return dst.Ours == src.Ours }); at >= 0 {
			to, ok = form{flat: &t.to.Messages[at]}, true
		}
		t.prefixes = slices.Insert(t.prefixes, 0, prefix{src.prefix, src.prefix + "*", ok, true})
		if ok && (to.flat == nil || to.flat.prefix != src.prefix) {
			t.lists = append(t.lists, messageList{form{flat: src}, to})
		}
	}
	for i := range t.to.Messages {
		dst := &t.to.Messages[i]
		t.prefixes = append(t.prefixes, prefix{dst.prefix, dst.prefix + "*", true, true})
		from, ok := plain(t.from, dst.Ours)
		again := slices.ContainsFunc(t.lists, func(l messageList) bool { return l.from == from })
		if ok && !again {
			t.lists = append(t.lists, messageList{from, form{flat: dst}})
			// Else the key would be reported as one without a target.
			t.rules[from.key] = []rule{{target: from.key, same: true, slot: t.slot(from.key)}}
		}
	}
}

// messages translates the lists of messages among attributes whose other keys
// are translated already. The attributes before that tell the finish reasons.
func (t *Translator) messages(before, attrs []attribute.KeyValue) []attribute.KeyValue {
	for _, l := range t.lists {
		list, ok := l.from.read(attrs)
		if len(list.at) == 0 {
			continue
		}
		var written []attribute.KeyValue
		if ok {
			written, ok = l.to.write(list.messages, t.finishReasons(before))
		}
		if !ok {
			t.report.add(l.from.String(), NotExact)
			continue
		}
		if there, known := l.to.read(attrs); len(there.at) > 0 {
			if !known || !reflect.DeepEqual(there.messages, list.messages) {
				t.report.add(l.from.String(), Conflict)
				continue
			}
			t.report.add(l.from.String(), Duplicate)
			written = nil
		}
		out := make([]attribute.KeyValue, 0, len(attrs)-len(list.at)+len(written))
		for i, a := range attrs {
			if i == list.at[0] {
				out = append(out, written...)
			}
			if !slices.Contains(list.at, i) {
				out = append(out, a)
			}
		}
		attrs = out
	}
	return attrs
}

func (t *Translator) finishReasons(attrs []attribute.KeyValue) []string {
	for _, r := range t.from.ours[finishReasonsKey] {
		for _, a := range attrs {
			if list, ok := toStrings(a.Value); ok && string(a.Key) == r.Theirs {
				return list.AsStringSlice()
			}
		}
	}
	return nil
}

// found is a list of messages and where its attributes stand.
type found struct {
	messages []message
	at       []int
}

// read finds a list of messages, and reports whether it understands all of it.
func (f form) read(attrs []attribute.KeyValue) (list found, ok bool) {
	if f.flat != nil {
		return f.flat.fold(attrs)
	}
	at := slices.IndexFunc(attrs, func(a attribute.KeyValue) bool { return a.Key == f.key })
	if at < 0 {
		return found{}, false
	}
	list.at = []int{at}
	list.messages, ok = decodeMessages(attrs[at].Value)
	return list, ok
}

// write makes the attributes, and reports whether they say the same.
func (f form) write(list []message, reasons []string) (attrs []attribute.KeyValue, ok bool) {
	if f.flat != nil {
		return f.flat.unfold(list, reasons)
	}
	text, err := encodeMessages(list)
	return []attribute.KeyValue{f.key.String(text)}, err == nil
}

func encodeMessages(list []message) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(list)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// decodeMessages reads a list that is a JSON string or a structured value, and
// reports whether that says no more than the list.
func decodeMessages(v attribute.Value) (list []message, ok bool) {
	if v.Type() != attribute.STRING && v.Type() != attribute.SLICE {
		return nil, false
	}
	text := v.String()
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) == 0 {
		return nil, false
	}
	for _, m := range list {
		for i := range m.Parts {
			m.Parts[i].Arguments = canonical(m.Parts[i].Arguments)
			m.Parts[i].Response = canonical(m.Parts[i].Response)
		}
	}
	back, err := encodeMessages(list)
	return list, err == nil && sameJSON(text, back)
}

// sameJSON reports whether two texts of JSON say the same.
func sameJSON(a, b string) bool {
	var values [2]any
	for i, text := range []string{a, b} {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&values[i]); err != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func compact(text json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(text) == 0 || json.Compact(&b, text) != nil {
		return nil
	}
	return b.Bytes()
}

// canonical is a JSON value without spaces, and a string as structure writes it.
func canonical(value json.RawMessage) json.RawMessage {
	value = compact(value)
	if !bytes.HasPrefix(value, []byte(`"`)) {
		return value
	}
	same, err := json.Marshal(text(value))
	if err != nil {
		return nil
	}
	return same
}

// structure is the JSON value of a text: itself if it is an object or a list,
// and otherwise a string.
func structure(text string) json.RawMessage {
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		if value := compact(json.RawMessage(text)); value != nil {
			return value
		}
	}
	value, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return value
}

// text undoes structure.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// field is a field of a flattened message; those that repeat have a number.
type field struct {
	name string
	n    int
}

// fold reads the messages that are flattened among attrs.
func (r *messageRow) fold(attrs []attribute.KeyValue) (list found, ok bool) {
	ok = true
	var messages map[int]map[field]string
	for i, a := range attrs {
		rest, in := strings.CutPrefix(string(a.Key), r.prefix)
		if !in {
			continue
		}
		number, rest, _ := strings.Cut(rest, ".")
		n, numbered := index(number)
		if !numbered {
			continue // another key that begins so, such as gen_ai.prompt.name
		}
		list.at = append(list.at, i)
		f, known := r.field(rest)
		_, twice := messages[n][f]
		if !known || twice || a.Value.Type() != attribute.STRING || !utf8.ValidString(a.Value.AsString()) {
			ok = false
			continue
		}
		if messages == nil {
			messages = make(map[int]map[field]string)
		}
		if messages[n] == nil {
			messages[n] = make(map[field]string)
		}
		messages[n][f] = a.Value.AsString()
	}
	if !ok || len(list.at) == 0 {
		return list, false
	}
	for n := range len(messages) {
		m, whole := foldMessage(messages[n])
		if !whole {
			return list, false
		}
		list.messages = append(list.messages, m)
	}
	return list, true
}

// index reads the number of an element, which has one spelling only.
func index(text string) (n int, ok bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// field finds the field that the rest of a key stands for.
func (r *messageRow) field(rest string) (f field, ok bool) {
	parts := strings.Split(rest, ".")
	for i, p := range parts {
		if n, ok := index(p); ok {
			f.n, parts[i] = n, "*"
			break
		}
	}
	f.name, ok = r.names[strings.Join(parts, ".")]
	return f, ok
}

// foldMessage makes a message of its fields. It reports false where one is
// missing, or is there and has no place.
func foldMessage(fields map[field]string) (m message, ok bool) {
	left := len(fields)
	take := func(name string, n int) (value string, ok bool) {
		if value, ok = fields[field{name, n}]; ok {
			left--
		}
		return value, ok
	}
	if m.Role, _ = take("role", 0); m.Role == "" {
		return m, false
	}
	m.Name, _ = take("name", 0)
	m.FinishReason, _ = take("finish_reason", 0)
	m.Parts = []messagePart{}
	content, hasContent := take("content", 0)
	id, isResponse := take("response.id", 0)
	switch {
	case hasContent && isResponse:
		m.Parts = append(m.Parts, messagePart{Type: partResponse, ID: id, Response: structure(content)})
	case isResponse:
		return m, false
	case hasContent:
		m.Parts = append(m.Parts, messagePart{Type: partText, Content: &content})
	}
	for n := 0; ; n++ {
		content, ok := take("part.text", n)
		if kind, _ := take("part.type", n); !ok || kind != partText {
			break
		}
		m.Parts = append(m.Parts, messagePart{Type: partText, Content: &content})
	}
	for n := 0; ; n++ {
		name, ok := take("call.name", n)
		if !ok {
			break
		}
		call := messagePart{Type: partCall, Name: name}
		call.ID, _ = take("call.id", n)
		if arguments, ok := take("call.arguments", n); ok {
			call.Arguments = structure(arguments)
		}
		m.Parts = append(m.Parts, call)
	}
	return m, left == 0
}

// unfold flattens messages. It reports false where folding the result would not
// give them back.
func (r *messageRow) unfold(list []message, reasons []string) (attrs []attribute.KeyValue, ok bool) {
	list = slices.Clone(list)
	for n := range list {
		if r.Fields["finish_reason"] == "" && n < len(reasons) && reasons[n] == list[n].FinishReason {
			list[n].FinishReason = "" // another attribute says it
		}
		attrs = r.unfoldMessage(attrs, n, &list[n])
	}
	back, ok := r.fold(attrs)
	return attrs, ok && reflect.DeepEqual(back.messages, list)
}

func (r *messageRow) unfoldMessage(attrs []attribute.KeyValue, n int, m *message) []attribute.KeyValue {
	put := func(name string, number int, value string) {
		rest := r.Fields[name]
		if rest == "" {
			return
		}
		key := fmt.Sprintf("%s%d.%s", r.prefix, n, strings.Replace(rest, "*", strconv.Itoa(number), 1))
		attrs = append(attrs, attribute.String(key, value))
	}
	put("role", 0, m.Role)
	if m.Name != "" {
		put("name", 0, m.Name)
	}
	texts, calls := 0, 0
	several := len(m.Parts) > 1 && m.Parts[1].Type == partText
	for _, p := range m.Parts {
		switch {
		case p.Type == partText && p.Content != nil && several:
			put("part.type", texts, partText)
			put("part.text", texts, *p.Content)
			texts++
		case p.Type == partText && p.Content != nil:
			put("content", 0, *p.Content)
		case p.Type == partResponse:
			put("response.id", 0, p.ID)
			put("content", 0, text(p.Response))
		case p.Type == partCall:
			if p.ID != "" {
				put("call.id", calls, p.ID)
			}
			put("call.name", calls, p.Name)
			if p.Arguments != nil {
				put("call.arguments", calls, text(p.Arguments))
			}
			calls++
		}
	}
	if m.FinishReason != "" {
		put("finish_reason", 0, m.FinishReason)
	}
	return attrs
}
