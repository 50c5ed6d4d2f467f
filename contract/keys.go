package contract

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
)

// keyID numbers the facts that a contract names. All spellings of a key are one
// fact: ai.tokens.input, gen_ai.usage.input_tokens, llm.prompt.tokens.
type keyID int16

const noKey keyID = -1

// maxKeys bounds the facts of a contract: each takes room beside every span of a
// trace.
const maxKeys = 4096

// keys knows what each attribute key means to one contract.
type keys struct {
	ids       map[attribute.Key]keyID    // by canonical key
	canonical []attribute.Key            // by id
	spellings map[attribute.Key]spelling // further ones that the contract names
	own       map[attribute.Key]bool     // those that the contract brings with it
	units     map[keyID]string           // of those
	rules     forbidKeys
}

// spelling is another name of a fact.
type spelling struct {
	id     keyID
	factor float64
}

// forbidKeys is what the section forbid says of keys.
type forbidKeys struct {
	content    bool
	attributes globs
	except     globs
}

func newKeys(f *spec.Forbid) *keys {
	return &keys{
		ids:       map[attribute.Key]keyID{},
		spellings: map[attribute.Key]spelling{},
		own:       map[attribute.Key]bool{},
		units:     map[keyID]string{},
		rules:     forbidKeys{f.Content, newGlobs(f.Attributes), newGlobs(f.Except)},
	}
}

// canonicalKey follows a spelling to the key that the vocabulary prefers, and
// returns what its numbers are multiplied with on the way.
func canonicalKey(key attribute.Key) (attribute.Key, float64) {
	factor := 1.0
	for range 4 { // the chains of the registry are shorter
		a, ok := semconv.Lookup(key)
		if !ok {
			break
		}
		target, ok := a.Target()
		if !ok || a.Factor == 0 || bare(a) {
			break
		}
		factor *= a.Factor
		key = target
	}
	return key, factor
}

// bare reports whether a is a spelling that anything else may have too, such as
// value or phase.
func bare(a semconv.Attribute) bool {
	return a.Origin == semconv.OriginAlias && !strings.Contains(string(a.Key), ".")
}

// id returns the number of a key that the contract names.
func (k *keys) id(name string) keyID {
	if s, ok := k.spellings[attribute.Key(name)]; ok {
		return s.id
	}
	key, _ := canonicalKey(attribute.Key(name))
	id, ok := k.ids[key]
	if !ok {
		id = keyID(len(k.canonical))
		k.ids[key] = id
		k.canonical = append(k.canonical, key)
	}
	return id
}

// key returns the number of a key to which a part of the contract refers. In the
// namespaces of the vocabulary it must be a word of it, else a slip of the pen makes
// a rule that never applies.
func (p *compiler) key(at spec.Position, name string) keyID {
	key := attribute.Key(name)
	if _, known := semconv.Lookup(key); !known && inOurs(key) && !p.keys.own[key] {
		if near := semconv.Suggest(name); len(near) > 0 {
			p.failf(at, "the vocabulary has no attribute %s, did you mean %s? One of your own needs its type in attributes", name, near[0])
		}
		p.failf(at, "the vocabulary has no attribute %s; one of your own needs its type in attributes", name)
	}
	if name == "" {
		p.failf(at, "a key is empty")
	}
	return p.keys.id(name)
}

// declare notes the keys that rules for attributes bring with them, before anything
// refers to one.
func (p *compiler) declare() {
	all := func(attributes map[string]spec.Attribute) {
		for _, key := range sorted(attributes) {
			p.declareKey(key, attributes[key])
		}
	}
	for _, role := range sorted(p.spec.Spans) {
		s := p.spec.Spans[role]
		all(s.Attributes)
		if s.Events != nil {
			for _, event := range sorted(s.Events.Attributes) {
				all(s.Events.Attributes[event])
			}
		}
	}
	for _, name := range sorted(p.spec.Metrics) {
		all(p.spec.Metrics[name].Attributes)
	}
	for _, name := range sorted(p.spec.Logs) {
		all(p.spec.Logs[name].Attributes)
	}
}

// fewKeys checks that the facts have room.
func (p *compiler) fewKeys() bool {
	if len(p.keys.canonical) > maxKeys {
		p.failf(spec.Position{File: p.files[len(p.files)-1].At().File}, "the contract names more than %d attributes", maxKeys)
	}
	return p.err == nil
}

func (p *compiler) declareKey(key string, a spec.Attribute) {
	_, known := semconv.Lookup(attribute.Key(key))
	info := p.keys.info(attribute.Key(key))
	if a.Type != "" {
		p.keys.own[attribute.Key(key)] = true
	}
	id := p.keys.id(key)
	if a.Unit != "" && !known {
		if other, ok := p.keys.units[id]; ok && other != a.Unit {
			p.failf(a.Position, "%s has the unit %q here and %q elsewhere", key, a.Unit, other)
		}
		p.keys.units[id] = a.Unit
	}
	for _, name := range a.Spellings {
		other := attribute.Key(name)
		if s, ok := p.keys.spellings[other]; ok && s.id != id {
			p.failf(a.Position, "%s: %s is another spelling of %s already", key, name, p.keys.canonical[s.id])
		}
		p.keys.spellings[other] = spelling{id, info.factor}
		p.keys.own[other] = true
	}
}

// knownKeys are facts that the checker itself asks for, older spellings apart where
// the vocabulary does not take them for the same.
type knownKeys struct {
	operation, role, mcpMethod, errorType, terminal keyID
	httpMethod, httpStatus                          [2]keyID
	rpcStatus                                       [2]keyID
}

func (p *compiler) knownKeys() knownKeys {
	id := p.keys.id
	return knownKeys{
		operation: id("gen_ai.operation.name"), role: id("genai.span.role"), mcpMethod: id("mcp.method.name"),
		errorType: id("error.type"), terminal: id("genai.stream.terminal"),
		httpMethod: [2]keyID{id("http.request.method"), id("http.method")},
		httpStatus: [2]keyID{id("http.response.status_code"), id("http.status_code")},
		rpcStatus:  [2]keyID{id("rpc.response.status_code"), id("rpc.grpc.status_code")},
	}
}

// keyInfo is what is known of a key that telemetry carries. It is worked out once
// for each key.
type keyInfo struct {
	canonical attribute.Key
	id        keyID   // noKey where the contract does not name it
	factor    float64 // what makes a number one of the canonical key; 0 where none can be made
	exact     bool    // it is the canonical spelling

	known   bool // the vocabulary has it
	attr    semconv.Attribute
	renamed bool // some of its values are spelled differently in the canonical key
	content bool // forbidden, because it may hold content
	banned  bool // forbidden by name
	skip    bool // its values are not searched
}

func (k *keys) info(key attribute.Key) keyInfo {
	canonical, factor := canonicalKey(key)
	info := keyInfo{canonical: canonical, id: noKey, factor: factor, exact: canonical == key}
	if s, ok := k.spellings[key]; ok {
		info.id, info.factor, info.exact = s.id, s.factor, false
	} else if id, ok := k.ids[canonical]; ok {
		info.id = id
	}
	info.attr, info.known = semconv.Lookup(key)
	if bare(info.attr) {
		info.attr, info.known = semconv.Attribute{}, false
	}
	for _, m := range info.attr.Members {
		info.renamed = info.renamed || m.Now != ""
	}
	info.content = k.rules.content && info.attr.Content
	info.banned = k.rules.attributes.match(string(key))
	info.skip = k.rules.except.match(string(key))
	return info
}

// ours are the namespaces of the vocabulary: a key of one that it does not know is
// a slip of the pen or somebody's own.
var ours = []string{"gen_ai.", "genai.", "ai.", "llm.", "mcp.", "openai."}

func inOurs(key attribute.Key) bool {
	for _, prefix := range ours {
		if strings.HasPrefix(string(key), prefix) {
			return true
		}
	}
	return false
}

// nanoseconds of the units of time that attributes have.
var timeUnits = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}

// unitOf returns the unit of a key in its canonical spelling.
func (k *keys) unitOf(id keyID) string {
	if u, ok := k.units[id]; ok {
		return u
	}
	a, _ := semconv.Lookup(k.canonical[id])
	return a.Unit
}

// number returns the value as a number of the canonical key.
func number(v attribute.Value, factor float64) (float64, bool) {
	switch v.Type() {
	case attribute.INT64:
		return float64(v.AsInt64()) * factor, factor != 0
	case attribute.FLOAT64:
		return v.AsFloat64() * factor, factor != 0
	default:
		return 0, false
	}
}

// text returns a text value as the canonical key spells it.
func (i *keyInfo) text(s string) string {
	if !i.renamed {
		return s
	}
	for _, m := range i.attr.Members {
		if m.Value == s && m.Now != "" {
			return m.Now
		}
	}
	return s
}

// holds reports whether v has the type t.
func holds(v attribute.Value, t semconv.Type) bool {
	switch t {
	case semconv.TypeString, semconv.TypeEnum, semconv.TypeTemplate:
		return v.Type() == attribute.STRING
	case semconv.TypeInt:
		return v.Type() == attribute.INT64
	case semconv.TypeDouble:
		return v.Type() == attribute.FLOAT64
	case semconv.TypeBoolean:
		return v.Type() == attribute.BOOL
	case semconv.TypeStrings:
		return v.Type() == attribute.STRINGSLICE || emptyList(v)
	case semconv.TypeInts:
		return v.Type() == attribute.INT64SLICE || emptyList(v)
	case typeDoubles:
		return v.Type() == attribute.FLOAT64SLICE || emptyList(v)
	default:
		return true
	}
}

// typeDoubles is a type that no key of the vocabulary has, but a contract may name.
const typeDoubles semconv.Type = "double[]"

// emptyList reports whether v is a list without items, which has lost their type
// on the wire.
func emptyList(v attribute.Value) bool {
	switch v.Type() {
	case attribute.SLICE:
		return len(v.AsSlice()) == 0
	case attribute.STRINGSLICE:
		return len(v.AsStringSlice()) == 0
	case attribute.INT64SLICE:
		return len(v.AsInt64Slice()) == 0
	case attribute.FLOAT64SLICE:
		return len(v.AsFloat64Slice()) == 0
	case attribute.BOOLSLICE:
		return len(v.AsBoolSlice()) == 0
	default:
		return false
	}
}

// typeOf names the type of a value as the vocabulary does.
func typeOf(v attribute.Value) string {
	switch v.Type() {
	case attribute.STRING:
		return string(semconv.TypeString)
	case attribute.INT64:
		return string(semconv.TypeInt)
	case attribute.FLOAT64:
		return string(semconv.TypeDouble)
	case attribute.BOOL:
		return string(semconv.TypeBoolean)
	case attribute.STRINGSLICE:
		return string(semconv.TypeStrings)
	case attribute.INT64SLICE:
		return string(semconv.TypeInts)
	case attribute.FLOAT64SLICE:
		return string(typeDoubles)
	case attribute.BOOLSLICE:
		return "boolean[]"
	case attribute.BYTESLICE:
		return "bytes"
	case attribute.SLICE:
		return "list"
	case attribute.MAP:
		return "map"
	default:
		return "nothing"
	}
}
