package content_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/internal/secret"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// secrets are one of each sort.
var secrets = map[string]string{
	"email":       "jane.doe+x@mail.example.co.uk",
	"after text":  "jane@example.com然后请尽快回复我们谢谢大家",
	"full stop":   "jane@example.com。",
	"idn":         "jane@例子.测试",
	"escaped":     `jane\u0040example.com`,
	"escaped key": `\u0073k-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy`,
	"address":     "jane.doe%40example.com",
	"openai":      "sk-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy",
	"aws":         "AKIAIOSFODNN7EXAMPLE",
	"bearer":      "Bearer q1W2e3R4t5Y6u7I8o9P0aSdFgHjKlZxC",
	"jwt":         "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	"card":        "4111 1111 1111 1111",
	"card digits": "4111111111111111",
	"pem":         "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\n-----END RSA PRIVATE KEY-----",
	"random":      "f8Kq2ZtR7wXb1NvM4cLp9HsJ6dGy3TaE5uQoW0iB",
	"hex":         "9f2c41d07be3a6859f2c41d07be3a68512345678",
}

func hasher(t testing.TB) *content.Hasher {
	t.Helper()
	h, err := content.NewHasher([]byte("0123456789abcdef0123456789abcdef"))
	require.NoError(t, err)
	return h
}

func user(text string) []genaiconv.Message {
	return []genaiconv.Message{{Role: genaiconv.RoleUser, Parts: genaiconv.Parts{genaiconv.TextPart{Content: text}}}}
}

func TestEachLevelWritesWhatItSays(t *testing.T) {
	s := content.Sanitizer{Hasher: hasher(t)}
	messages := []genaiconv.Message{
		{Role: genaiconv.RoleSystem, Parts: genaiconv.Parts{genaiconv.TextPart{Content: "Be brief."}}},
		{Role: "oracle", Name: "jane", Parts: genaiconv.Parts{
			genaiconv.TextPart{Content: "Write to jane@example.com"},
			genaiconv.BlobPart{Modality: genaiconv.ModalityImage, MIMEType: "image/png", Content: []byte{1, 2, 3}},
		}},
		{Role: genaiconv.RoleAssistant, Parts: genaiconv.Parts{
			genaiconv.ToolCallPart{ID: "call_1", Name: "pay", Arguments: `{"card":4111111111111111,"to":"jane\u0040example.com","ok":true,"n":[1,2.5,null]}`},
		}},
		{Role: genaiconv.RoleTool, Parts: genaiconv.Parts{genaiconv.ToolCallResponsePart{ID: "call_1", Response: "paid"}, genaiconv.GenericPart{GenericType: "x", Fields: map[string]any{"a": "b"}}}},
	}
	for level, want := range map[content.Level]string{
		content.Off:        "",
		content.Level(200): "",
		content.Full: `[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},` +
			`{"role":"oracle","parts":[{"type":"text","content":"Write to jane@example.com"},{"type":"blob","modality":"image","mime_type":"image/png","content":"AQID"}],"name":"jane"},` +
			`{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"pay","arguments":{"card":4111111111111111,"n":[1,2.5,null],"ok":true,"to":"jane@example.com"}}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","response":"paid"},{"a":"b","generic_type":"x","type":"generic"}]}]`,
		content.Redacted: `[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},` +
			`{"role":"oracle","parts":[{"type":"text","content":"Write to [REDACTED:email]"},{"type":"blob","modality":"image","mime_type":"image/png","content":"[REDACTED:bytes]"}],"name":"jane"},` +
			`{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"pay","arguments":{"card":"[REDACTED:card]","n":[1,2.5,null],"ok":true,"to":"[REDACTED:email]"}}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","response":"paid"},{"a":"b","generic_type":"x","type":"generic"}]}]`,
	} {
		v, err := s.Messages(level, messages)
		require.NoError(t, err, level)
		assert.Equal(t, want, v.JSON(), level)
		assert.Equal(t, want != "", v.Present(), level)
		assert.False(t, v.Truncated, level)
	}

	v, err := s.Messages(content.Hash, messages)
	require.NoError(t, err)
	got := v.JSON()
	assert.Contains(t, got, `{"role":"system","parts":[{"type":"text","content":"hmac-sha256:`+hasher(t).Text("Be brief.")+`"}]}`)
	assert.Contains(t, got, `{"type":"tool_call","id":"call_1","name":"pay","arguments":"hmac-sha256:`)
	for _, hidden := range []string{"brief", "jane", "oracle", "4111", "paid", "AQID", `"a"`} {
		assert.NotContains(t, got, hidden)
	}

	none := content.Sanitizer{}
	v, err = none.Messages(content.Hash, messages)
	require.NoError(t, err)
	assert.False(t, v.Present(), "no key, no hash")
}

// The value on an event is the one on a span.
func TestStructureAndJSONAreTheSame(t *testing.T) {
	var s content.Sanitizer
	v, err := s.Any(content.Full, map[string]any{"a": []any{1, "x", true, nil, 2.5}, "b": map[string]any{"c": "d"}})
	require.NoError(t, err)
	want, err := genaiconv.StructuredValue(json.RawMessage(v.JSON()))
	require.NoError(t, err)
	assert.Equal(t, attribute.KeyValue{Key: "k", Value: want}, attribute.KeyValue{Key: "k", Value: v.Structured()})
	assert.Equal(t, attribute.Value{}, content.Value{}.Structured())
}

func TestWhatIsRedactedPassesTheContract(t *testing.T) {
	for name, text := range secrets {
		for _, around := range []string{"%s", "a %s b", `{"k":"%s"}`, "<%s>", "x=%s, and then", "%[1]s %[1]s", "first line\n%s\nlast"} {
			got := content.Redact(fmt.Sprintf(around, text))
			assert.NotContains(t, got, text, name)
			assert.Contains(t, got, "[REDACTED:", name)
			for _, kind := range secret.All() {
				assert.Equal(t, -1, kind.Find(got), "%s: %s in %q", name, kind.Name, got)
			}
			assert.Equal(t, got, content.Redact(got), name)
		}
	}
	for _, text := range []string{
		"", "What is the capital of France?", "see TestDetectorsFindWhatMustNotBeRecorded2", "123e4567-e89b-12d3-a456-426614174000",
		"/usr/local/lib/python3.12/dist-packages/vllm/engine/async_llm_engine.py", "2026-11-29T22:15:36Z", "qwen2.5-7b-instruct", "call_mszuSIzqtI65i1wAUOE8w5H4",
		strings.Repeat("=", 80), strings.Repeat("ab", 100), "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
	} {
		assert.Equal(t, text, content.Redact(text))
	}
}

// A secret is found wherever the limit or the window cuts through the text.
func TestNoCutLeavesPartOfASecret(t *testing.T) {
	s := content.Sanitizer{Limit: content.MinLimit}
	for name, text := range secrets {
		head := text[:min(len(text), 12)] // enough to tell by
		for _, border := range []int{content.MinLimit, content.MinLimit + 4096} {
			for at := border - len(text) - 40; at < border+5; at++ {
				for _, filler := range []string{"word ", "x"} {
					long := strings.Repeat(filler, at)[:at-1] + " " + text + " " + strings.Repeat("more ", 2000)
					v, err := s.Messages(content.Redacted, user(long))
					require.NoError(t, err)
					assert.NotContains(t, v.JSON(), head, "%s at %d", name, at)
					assert.True(t, v.Truncated)
					assert.LessOrEqual(t, len(v.JSON()), content.MinLimit)
				}
			}
		}
	}
}

// A redacted key frees room, so the end of the window would show if it could.
func TestTheEndOfTheWindowIsNotShown(t *testing.T) {
	s := content.Sanitizer{Limit: content.MinLimit}
	const window = content.MinLimit + 4096
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA75", 220) + "\n-----END RSA PRIVATE KEY-----"
	for cutIn := range len(secrets["openai"]) {
		pad := window - len(key) - 2 - cutIn
		text := key + " " + strings.Repeat("x ", pad)[:pad] + " " + secrets["openai"]
		v, err := s.Messages(content.Redacted, user(text))
		require.NoError(t, err)
		assert.NotContains(t, v.JSON(), "sk-")
	}
}

func TestAValueIsCutAsJSON(t *testing.T) {
	s := content.Sanitizer{Limit: 1000, Hasher: hasher(t)}
	var many []genaiconv.Message
	for i := range 3000 {
		many = append(many, user(fmt.Sprintf("question %d %s", i, strings.Repeat("\"é\n", 50)))...)
	}
	deep := any("x")
	for range 100 {
		deep = []any{deep}
	}
	wide := map[string]any{}
	for i := range 5000 {
		wide[fmt.Sprintf("%s%d", strings.Repeat("k", 200), i)] = i
	}
	for _, level := range []content.Level{content.Hash, content.Redacted, content.Full} {
		for name, sanitize := range map[string]func() (content.Value, error){
			"many messages": func() (content.Value, error) { return s.Messages(level, many) },
			"long message":  func() (content.Value, error) { return s.Messages(level, user(strings.Repeat("\x00\"é", 1<<20))) },
			"blob": func() (content.Value, error) {
				return s.Instructions(level, genaiconv.Parts{genaiconv.BlobPart{Content: make([]byte, 1<<20)}, genaiconv.TextPart{Content: "x"}})
			},
			"deep":      func() (content.Value, error) { return s.Any(level, deep) },
			"wide":      func() (content.Value, error) { return s.Any(level, wide) },
			"long list": func() (content.Value, error) { return s.Any(level, make([]any, 100_000)) },
			"tools": func() (content.Value, error) {
				return s.Tools(level, slices.Repeat([]genaiconv.ToolDefinition{{Name: "f", Description: "d", Parameters: wide}}, 5000))
			},
		} {
			v, err := sanitize()
			require.NoError(t, err, name)
			got := v.JSON()
			assert.LessOrEqual(t, len(got), 1000, name)
			assert.True(t, json.Valid([]byte(got)), name)
			assert.True(t, utf8.ValidString(got), name)
			assert.True(t, v.Present(), name)
		}
	}
	v, err := s.Messages(content.Full, many)
	require.NoError(t, err)
	assert.Contains(t, v.JSON(), "question 2999", "the newest stay")
	assert.Greater(t, len(v.JSON()), 700, "the room is used")
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("secret") }

func TestWhatFailsIsDropped(t *testing.T) {
	const text = "my secret"
	for name, c := range map[string]struct {
		s     content.Sanitizer
		value any
	}{
		"an error": {s: content.Sanitizer{Redactors: []content.Redactor{{Name: "broken", Redact: func(s string) (string, error) { return s, errors.New(s) }}}}, value: text},
		"a panic":  {s: content.Sanitizer{Redactors: []content.Redactor{{Name: "broken", Redact: func(s string) (string, error) { panic(s) }}}}, value: text},
		"channel":  {value: make(chan int)},
		"marshal":  {value: panics{}},
		"raw":      {value: json.RawMessage(`{"a":`)},
	} {
		v, err := c.s.Any(content.Redacted, c.value)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "secret", name)
		assert.False(t, v.Present(), name)
		assert.Empty(t, v.JSON(), name)
	}
}

func TestOwnRedactorsComeFirst(t *testing.T) {
	s := content.Sanitizer{Redactors: []content.Redactor{
		content.Pattern("case", regexp.MustCompile(`CASE-\d+`)),
		{Name: "nothing"},
		{Name: "breaks", Redact: func(s string) (string, error) { return s + " \xff" + strings.Repeat("y", 1<<20), nil }},
	}}
	text, err := s.Text(content.Redacted, "CASE-12 of jane@example.com")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(text, "[REDACTED:case] of [REDACTED:email]"), text)
	assert.True(t, utf8.ValidString(text))
	assert.Less(t, len(text), 1000, "a redactor cannot blow a text up")

	long, err := (&content.Sanitizer{Redactors: s.Redactors[:1], Limit: 256}).Text(content.Redacted, strings.Repeat("CASE-1 ", 5000))
	require.NoError(t, err)
	assert.NotContains(t, long, "CASE-")
	assert.LessOrEqual(t, len(long), 256)
}

// The algorithm is written down, so that other services can make the same hashes.
func TestHashesAreWhatIsDocumented(t *testing.T) {
	h := hasher(t)
	sum := func(text string) string {
		mac := hmac.New(sha256.New, []byte("0123456789abcdef0123456789abcdef"))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))[:16]
	}
	assert.Equal(t, sum("hello"), h.Text("hello"))
	long := strings.Repeat("x", 1<<20+5)
	assert.Equal(t, sum("1048581:"+long[:1<<20]), h.Text(long))
	assert.NotEqual(t, h.Text(long), h.Text(long+"x"))

	const response = `{"type":"tool_call_response","id":"1","response":2}`
	assert.Equal(t, sum("4:user1:24:text5:hello4:blob3:abc4:tool1:14:json"+fmt.Sprint(len(response))+":"+response),
		h.Messages([]genaiconv.Message{
			{Role: "user", Parts: genaiconv.Parts{genaiconv.TextPart{Content: "hello"}, genaiconv.BlobPart{Content: []byte("abc")}}},
			{Role: "tool", Parts: genaiconv.Parts{genaiconv.ToolCallResponsePart{ID: "1", Response: 2}}},
		}))
	assert.NotEqual(t, h.Messages(user("ab")), h.Messages(append(user("a"), user("b")...)))
	assert.Empty(t, h.Messages([]genaiconv.Message{{Role: "user", Parts: genaiconv.Parts{genaiconv.ToolCallPart{Arguments: panics{}}}}}))

	var none *content.Hasher
	assert.Empty(t, none.Text("x"))
	assert.Empty(t, none.Messages(user("x")))
	_, err := content.NewHasher([]byte("short"))
	require.ErrorContains(t, err, "5 bytes, want at least 16")
}

func TestTheVariableHasTheConventionsValues(t *testing.T) {
	for value, want := range map[string]struct {
		level content.Level
		place content.Place
	}{
		"": {content.Off, content.OnEvents}, "NO_CONTENT": {content.Off, content.OnEvents}, "false": {content.Off, content.OnEvents},
		"SPAN_ONLY": {content.Redacted, content.OnSpans}, "span_only": {content.Redacted, content.OnSpans},
		"EVENT_ONLY": {content.Redacted, content.OnEvents}, "true": {content.Redacted, content.OnEvents}, "True": {content.Redacted, content.OnEvents},
		"SPAN_AND_EVENT": {content.Redacted, content.OnEventsAndSpans},
	} {
		level, place, err := content.ParseVariable(value)
		require.NoError(t, err, value)
		assert.Equal(t, want.level, level, value)
		assert.Equal(t, want.place, place, value)
	}
	level, _, err := content.ParseVariable("everything")
	require.ErrorContains(t, err, "SPAN_AND_EVENT")
	assert.Equal(t, content.Off, level)
}

func TestLevelsAndPlacesHaveNames(t *testing.T) {
	assert.Equal(t, "off hash redacted full Level(9)", fmt.Sprint(content.Off, " ", content.Hash, " ", content.Redacted, " ", content.Full, " ", content.Level(9)))
	assert.Equal(t, "events, spans, events and spans, Place(0)", fmt.Sprintf("%v, %v, %v, %v", content.OnEvents, content.OnSpans, content.OnEventsAndSpans, content.Place(0)))
	assert.False(t, content.Place(0).Valid())
	assert.False(t, content.Place(4).Valid())
	assert.False(t, content.Level(4).Valid())
}
