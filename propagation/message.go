package propagation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
)

// Map is a carrier over a plain map: the metadata of a message, a job's
// environment, a database row. Keys are read in any letter case and written in
// lower case; values are valid UTF-8. On a nil Map reading finds nothing and Set
// does nothing. It must not be written to concurrently.
type Map map[string]string

// Meta is a carrier over the _meta object of an MCP request, notification or
// result, as encoding/json decodes it:
//
//	ctx = bridge.Extract(ctx, propagation.Meta(request.Params.Meta))
//
// Keys and values are as those of a [Map]; entries that are no strings are not
// read, and no entry of another key is touched.
type Meta map[string]any

var (
	_ propagation.TextMapCarrier = Map(nil)
	_ propagation.TextMapCarrier = Meta(nil)
)

// Get returns the value of key, or "" if there is none.
func (m Map) Get(key string) string { return getFolded(m, key) }

// Set makes value the only value of key, in any letter case. The key is left
// absent if value is empty or not valid UTF-8.
func (m Map) Set(key, value string) { setFolded(m, key, value) }

// Keys returns all keys, in no particular order.
func (m Map) Keys() []string { return keysOf(m) }

// Get returns the value of key, or "" if there is none or it is no string.
func (m Meta) Get(key string) string {
	s, _ := getFolded(m, key).(string)
	return s
}

// Set makes value the only value of key, in any letter case. The key is left
// absent if value is empty or not valid UTF-8.
func (m Meta) Set(key, value string) { setFolded[any](m, key, value) }

// Keys returns all keys, in no particular order.
func (m Meta) Keys() []string { return keysOf(m) }

func getFolded[V any](m map[string]V, key string) V {
	key = strings.ToLower(key)
	if v, ok := m[key]; ok {
		return v
	}
	var found V
	spelled := ""
	for k, v := range m { // the first in order, so that the result is the same each time
		if len(k) == len(key) && strings.EqualFold(k, key) && (spelled == "" || k < spelled) {
			spelled, found = k, v
		}
	}
	return found
}

func setFolded[V any](m map[string]V, key string, value V) {
	if m == nil {
		return
	}
	key = strings.ToLower(key)
	for k := range m {
		if strings.EqualFold(k, key) {
			delete(m, k)
		}
	}
	if s, _ := any(value).(string); s != "" && key != "" && utf8.ValidString(s) {
		m[key] = value
	}
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// envelopeKey is the member of a message that holds its metadata.
const envelopeKey = "metadata"

var errNoObject = errors.New("propagation: the message is no JSON object, so that it has no place for metadata")

// ReadEnvelope returns the metadata of a WebSocket message that is a JSON object:
// the strings in its "metadata" object. It is empty where there are none.
//
//	{"type": "response.create", "metadata": {"traceparent": "00-…"}}
func ReadEnvelope(message []byte) Map {
	m := Map{}
	at, err := findMember(message, envelopeKey)
	if err != nil || !at.found {
		return m
	}
	var metadata map[string]any
	_ = json.Unmarshal(message[at.start:at.end], &metadata) // what cannot be read is absent
	for key, value := range metadata {
		if s, ok := value.(string); ok {
			m[key] = s
		}
	}
	return m
}

// WriteEnvelope returns message, a JSON object, with the entries of m in its
// "metadata" object, which it gets if it has none. All bytes outside of that
// object stay as they are. Where m has a traceparent, what an earlier hop wrote beside
// its own (tracestate, baggage, grpc-trace-bin, x-prompt-trace) is replaced or
// removed. It fails, and returns message as it is, where message
// is no JSON object or its metadata is something else than an object.
//
//	m := propagation.Map{}
//	bridge.Inject(ctx, m)
//	message, err := propagation.WriteEnvelope(message, m)
func WriteEnvelope(message []byte, m Map) ([]byte, error) {
	at, err := findMember(message, envelopeKey)
	if err != nil || len(m) == 0 {
		return message, err
	}
	metadata := map[string]any{}
	if at.found {
		// Numbers stay as they were written.
		d := json.NewDecoder(bytes.NewReader(message[at.start:at.end]))
		d.UseNumber()
		if err := d.Decode(&metadata); err != nil || metadata == nil {
			return message, fmt.Errorf("propagation: %q of the message is no JSON object", envelopeKey)
		}
	}
	if m.Get(traceparentKey) != "" {
		for _, key := range [...]string{tracestateKey, baggageKey, traceBinKey, promptTraceKey} {
			setFolded[any](metadata, key, "")
		}
	}
	for key, value := range m {
		setFolded[any](metadata, key, value)
	}
	var object bytes.Buffer
	e := json.NewEncoder(&object)
	e.SetEscapeHTML(false)
	if err := e.Encode(metadata); err != nil {
		return message, err
	}
	encoded := bytes.TrimSuffix(object.Bytes(), []byte("\n"))
	out := make([]byte, 0, len(message)+len(encoded)+len(`"metadata":,`))
	out = append(out, message[:at.start]...)
	if !at.found {
		out = append(out, `"metadata":`...)
	}
	out = append(out, encoded...)
	if !at.found && !at.empty {
		out = append(out, ',')
	}
	return append(out, message[at.end:]...), nil
}

// A place is where a member's value is in an object or, if it is not found, where
// a new member can be written.
type place struct {
	start, end   int
	found, empty bool
}

// findMember returns the place of the last member of that name at the top of a
// JSON object, which is the one that counts for most readers.
func findMember(message []byte, name string) (place, error) {
	d := json.NewDecoder(bytes.NewReader(message))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return place{}, errNoObject
	}
	start := int(d.InputOffset())
	at := place{start: start, end: start, empty: true}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return place{}, errNoObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return place{}, errNoObject
		}
		at.empty = false
		if key == name {
			end := int(d.InputOffset())
			at = place{start: end - len(value), end: end, found: true}
		}
	}
	if _, err := d.Token(); err != nil {
		return place{}, errNoObject
	}
	if len(bytes.TrimSpace(message[d.InputOffset():])) > 0 {
		return place{}, errNoObject
	}
	return at, nil
}
