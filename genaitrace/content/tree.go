package content

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// nodeKind is the kind of a JSON value.
type nodeKind uint8

const (
	nullNode nodeKind = iota
	wordNode          // true, false, or a number
	textNode
	listNode
	objectNode
)

// A node is a value on its way into telemetry.
type node struct {
	kind  nodeKind
	text  string // of a word, as JSON has it; of a text
	items []node
	names []string // of the items of an object
	// fixed is a word of the convention, which no policy touches.
	fixed bool
	// opaque stands for a value of the application: its hash is one.
	opaque bool
	// binary is base64, which no redactor can look into.
	binary bool
	// identifier joins a call to its result: it is no content, but redactors see it.
	identifier bool
	// windowed is a text that goes on beyond what was looked at.
	windowed bool
	// newest is a list whose first items go where it is too long.
	newest bool
}

const (
	// maxNodes and maxDepth bound what one value is made of.
	maxNodes = 4096
	maxDepth = 32
	// margin is how far beyond the limit a text is searched for secrets, so that one
	// that the cut goes through is still known for what it is.
	margin = 4096
)

// A builder makes nodes of at most so many bytes of text.
type builder struct {
	left   int // bytes
	nodes  int
	window int // longest text
	cut    bool
	whole  bool // for hashes, which need every text in full
}

func (b *builder) spent() bool { return b.left <= 0 || b.nodes >= maxNodes }

func (b *builder) word(s string) node {
	b.nodes++
	return node{kind: wordNode, text: s}
}

// fixed is a word of the convention, or a text where it is none.
func fixed(s string) node { return node{kind: textNode, text: s, fixed: true} }

func (b *builder) text(s string) node {
	b.nodes++
	if b.whole {
		b.left -= len(s)
		return node{kind: textNode, text: s}
	}
	kept := bound.String(s, min(len(s)*3, b.window))
	b.left -= len(kept)
	b.cut = b.cut || len(s) > b.window
	return node{kind: textNode, text: kept, windowed: len(s) > b.window}
}

func (n *node) add(name string, item node) {
	n.names, n.items = append(n.names, name), append(n.items, item)
}

// messages keeps the newest where there are too many.
func (b *builder) messages(messages []genaiconv.Message) (node, error) {
	list := node{kind: listNode, newest: true}
	for i := range slices.Backward(messages) {
		if len(list.items) > 0 && b.spent() {
			b.cut = true
			break
		}
		m, err := b.message(&messages[i])
		if err != nil {
			return node{}, err
		}
		list.items = append(list.items, m)
	}
	slices.Reverse(list.items)
	return list, nil
}

func (b *builder) message(m *genaiconv.Message) (node, error) {
	n := node{kind: objectNode}
	n.add("role", b.role(m.Role))
	parts, err := b.parts(m.Parts)
	if err != nil {
		return node{}, err
	}
	n.add("parts", parts)
	if m.Name != "" {
		n.add("name", b.text(m.Name))
	}
	if m.FinishReason != "" { //nolint:staticcheck // some give it, and it is theirs to give
		n.add("finish_reason", b.text(string(m.FinishReason))) //nolint:staticcheck // as above
	}
	return n, nil
}

func (b *builder) role(r genaiconv.Role) node {
	switch r {
	case genaiconv.RoleSystem, genaiconv.RoleUser, genaiconv.RoleAssistant, genaiconv.RoleTool, "developer", "model":
		return fixed(string(r))
	}
	return b.text(string(r))
}

func (b *builder) parts(parts []genaiconv.Part) (node, error) {
	list := node{kind: listNode}
	for _, p := range parts {
		if b.spent() {
			b.cut = true
			break
		}
		n, err := b.part(p)
		if err != nil {
			return node{}, err
		}
		list.items = append(list.items, n)
	}
	return list, nil
}

func (b *builder) part(part genaiconv.Part) (node, error) {
	n := node{kind: objectNode}
	named := func(kind, id, name string) {
		n.add("type", fixed(kind))
		if id != "" {
			n.add("id", b.identifier(id))
		}
		if name != "" {
			n.add("name", b.identifier(name))
		}
	}
	var err error
	value := func(name string, v any) {
		var item node
		if item, err = b.any(v, 0); err == nil {
			item.opaque = true
			n.add(name, item)
		}
	}
	switch p := part.(type) {
	case genaiconv.TextPart:
		named("text", "", "")
		n.add("content", b.text(p.Content))
	case genaiconv.ReasoningPart:
		named("reasoning", "", "")
		n.add("content", b.text(p.Content))
	case genaiconv.ToolCallPart:
		named("tool_call", p.ID, p.Name)
		if p.Arguments != nil {
			value("arguments", p.Arguments)
		}
	case genaiconv.ToolCallResponsePart:
		named("tool_call_response", p.ID, "")
		value("response", p.Response)
	case genaiconv.BlobPart:
		named("blob", "", "")
		n.add("modality", b.text(string(p.Modality)))
		if p.MIMEType != "" {
			n.add("mime_type", b.text(p.MIMEType))
		}
		n.add("content", b.bytes(p.Content))
	default:
		n, err = b.any(part, 0) // rare ones
		n.opaque = true
	}
	return n, err
}

// maxIdentifier is the length of the longest name, in bytes.
const maxIdentifier = 256

func (b *builder) identifier(s string) node {
	b.cut = b.cut || len(s) > maxIdentifier
	b.nodes++
	return node{kind: textNode, text: bound.String(s, maxIdentifier), identifier: true}
}

// bytes are base64, of as much as can be kept.
func (b *builder) bytes(data []byte) node {
	if most := b.window / 4 * 3; !b.whole && len(data) > most {
		data, b.cut = data[:most], true
	}
	n := b.text(base64.StdEncoding.EncodeToString(data))
	n.binary = true
	return n
}

func (b *builder) definitions(tools []genaiconv.ToolDefinition) (node, error) {
	list := node{kind: listNode}
	for i := range tools {
		if b.spent() {
			b.cut = true
			break
		}
		t, n := &tools[i], node{kind: objectNode}
		kind := fixed("function")
		if t.Type != "" && t.Type != "function" {
			kind = b.text(t.Type)
		}
		n.add("type", kind)
		n.add("name", b.identifier(t.Name))
		if t.Description != "" {
			n.add("description", b.text(t.Description))
		}
		if t.Parameters != nil {
			parameters, err := b.any(t.Parameters, 0)
			if err != nil {
				return node{}, err
			}
			parameters.opaque = true
			n.add("parameters", parameters)
		}
		list.items = append(list.items, n)
	}
	return list, nil
}

// any is a value that JSON has a form for. A text that holds an object or a list in
// JSON is read as one: so its secrets show whatever escapes hide them.
func (b *builder) any(v any, depth int) (node, error) {
	if depth >= maxDepth {
		b.cut = true
		return node{}, nil
	}
	switch v := v.(type) {
	case nil:
		b.nodes++
		return node{}, nil
	case string:
		if n, ok := b.embedded(v, depth); ok {
			return n, nil
		}
		return b.text(v), nil
	case bool:
		return b.word(strconv.FormatBool(v)), nil
	case json.Number:
		return b.number(string(v)), nil
	case json.RawMessage:
		return b.raw(v, depth)
	case []byte:
		return b.bytes(v), nil
	case []any:
		return b.list(v, depth)
	case map[string]any:
		return b.object(v, depth)
	case []genaiconv.Message:
		return b.messages(v)
	case genaiconv.Parts:
		return b.parts(v)
	case []genaiconv.ToolDefinition:
		return b.definitions(v)
	}
	if s, ok := asText(v); ok {
		return b.any(s, depth)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return node{}, fmt.Errorf("content: value of type %T: %w", v, errNoJSON)
	}
	return b.raw(text, depth)
}

// asText is a value whose type is made of string and that has no JSON of its own.
func asText(v any) (string, bool) {
	if _, ok := v.(json.Marshaler); ok {
		return "", false
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return r.String(), true
	}
	return "", false
}

func (b *builder) list(v []any, depth int) (node, error) {
	b.nodes++
	list := node{kind: listNode}
	for _, item := range v {
		if b.spent() {
			b.cut = true
			break
		}
		n, err := b.any(item, depth+1)
		if err != nil {
			return node{}, err
		}
		list.items = append(list.items, n)
	}
	return list, nil
}

func (b *builder) object(v map[string]any, depth int) (node, error) {
	b.nodes++
	object := node{kind: objectNode}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if b.spent() {
			b.cut = true
			break
		}
		n, err := b.any(v[name], depth+1)
		if err != nil {
			return node{}, err
		}
		object.add(b.text(name).text, n)
	}
	return object, nil
}

// maxEmbedded is the longest text that is tried as JSON.
const maxEmbedded = 1 << 20

func (b *builder) embedded(s string, depth int) (node, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 2 || len(s) > maxEmbedded || s[0] != '{' && s[0] != '[' {
		return node{}, false
	}
	before := *b
	n, err := b.raw([]byte(s), depth)
	if err != nil {
		*b = before
		return node{}, false
	}
	return n, true
}

// raw is JSON. What a text embeds counts as deeper, so that it ends.
func (b *builder) raw(text []byte, depth int) (node, error) {
	if !json.Valid(text) {
		return node{}, errNoJSON
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return node{}, errNoJSON
	}
	return b.any(tree, depth+1)
}

func (b *builder) number(s string) node {
	if len(s) == 0 || len(s) > 64 || !json.Valid([]byte(s)) {
		return b.text(s)
	}
	return b.word(s)
}
