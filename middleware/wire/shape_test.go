package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// A chatWriter writes random chunks as servers do: long runs of one shape, with
// everything in between that a shape must not swallow.
type chatWriter struct {
	rng          *rand.Rand
	colon, comma string
	id, model    string
	extra        string // members that come with each chunk
}

func newChatWriter(rng *rand.Rand) *chatWriter {
	w := &chatWriter{rng: rng}
	w.reshape()
	return w
}

// reshape is a server that changes its mind in the middle of a stream.
func (w *chatWriter) reshape() {
	pick := func(s ...string) string { return s[w.rng.IntN(len(s))] }
	w.colon, w.comma = pick(":", ": "), pick(",", ", ")
	w.id, w.model = pick("c1", "c2", ""), pick("m1", "m\u00e9", "")
	w.extra = pick(``, `"usage":null`, `"error":null`, `"object":"chat.completion.chunk"`, `"x":"\"usage\":{\"prompt_tokens\":1}"`, `"usage":{"prompt_tokens":3,"completion_tokens":1}`)
}

func (w *chatWriter) chunk() string {
	if w.rng.IntN(12) == 0 {
		w.reshape()
	}
	switch w.rng.IntN(60) {
	case 0:
		return w.object(`"created":1767000000`, w.choices(w.choice(0, w.content(), `null`)), `"obfuscation":`+w.text())
	case 1:
		return w.object(`"choices":[]`, w.usage())
	case 2:
		return w.object(w.choices(w.choice(0, `{}`, `"stop"`)))
	case 3:
		return w.object(w.choices(w.choice(w.rng.IntN(20), w.content(), `"length"`)))
	case 4:
		return w.object(w.choices(w.choice(0, w.content(), `null`), w.choice(1, w.content(), `null`)))
	case 5:
		return w.object(w.choices(w.choice(0, `{"role":"assistant","content":""}`, `null`)))
	case 6:
		return w.object(w.choices(w.choice(0, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}`, `null`)))
	case 7:
		return w.object(w.choices(w.choice(0, `{"tool_calls":[{"index":0,"function":{"arguments":`+w.text()+`}}]}`, `null`)))
	case 8:
		return w.object(w.choices(w.choice(0, `{"content":null,"reasoning_content":`+w.text()+`}`, `null`)))
	case 9:
		return w.object(w.choices(w.choice(0, `{"content":`+w.text()+`,"reasoning":`+w.text()+`}`, `null`)))
	case 10:
		return w.object(`"error":{"type":"server_error","code":null}`)
	case 11:
		return `{"choices":[{"index":0,"delta":{"content":"cut`
	case 12:
		return w.object(w.choices(`{"index":0,"text":` + w.text() + `}`))
	case 13:
		return w.object(w.choices(w.choice(0, `{"refusal":`+w.text()+`}`, `null`)))
	}
	return w.object(w.choices(w.choice(0, w.content(), `null`)))
}

func (w *chatWriter) object(members ...string) string {
	all := []string{`"id":` + strconv.Quote(w.id), `"model":` + strconv.Quote(w.model)}
	all = append(all, members...)
	if key, _, _ := strings.Cut(w.extra, ":"); w.extra != "" && !strings.Contains(strings.Join(members, ""), key+":") {
		all = append(all, w.extra)
	}
	return "{" + strings.ReplaceAll(strings.Join(all, w.comma), `":`, `"`+w.colon) + "}"
}

func (w *chatWriter) choices(c ...string) string {
	return `"choices":[` + strings.Join(c, w.comma) + `]`
}

func (w *chatWriter) choice(index int, delta, finish string) string {
	return fmt.Sprintf(`{"index":%d,"delta":%s,"finish_reason":%s}`, index, delta, finish)
}

func (w *chatWriter) content() string { return `{"content":` + w.text() + `}` }

func (w *chatWriter) usage() string {
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`,
		w.rng.IntN(3), w.rng.IntN(3), w.rng.IntN(2))
}

// text is a JSON string that may look like the end of one.
func (w *chatWriter) text() string {
	parts := []string{"Hel", "lo", " ", "é", "漢", "\\n", `\\`, `\"`, `\"usage\":`, `\u00e9`, "}", "]}", "{", "null", `\\\\`}
	var s strings.Builder
	for range w.rng.IntN(4) {
		s.WriteString(parts[w.rng.IntN(len(parts))])
	}
	return `"` + s.String() + `"`
}

// The fast path never changes what is read of a stream: a chat that learns
// shapes, one that parses every chunk, and a reader on encoding/json agree
// after each chunk.
func TestShapesNeverChangeWhatIsRead(t *testing.T) {
	matched := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := newChatWriter(rng)
		fast, slow := newAnswer(OpenAI), newAnswer(OpenAI)
		var ref reference
		for i := range 60 {
			event := w.chunk()
			if _, ok := fast.shape.fits(nil, []byte(event)); ok {
				matched++
			}
			kind, ok := fast.read(Event{Data: []byte(event)})
			slow.shape = shape{}
			slowKind, slowOK := slow.read(Event{Data: []byte(event)})
			refKind, refOK := ref.event(event)
			require.Equal(t, slowKind, kind, "seed %d, chunk %d: %s", seed, i, event)
			require.Equal(t, slowOK, ok, "seed %d, chunk %d: %s", seed, i, event)
			require.Equal(t, refKind, kind, "seed %d, chunk %d: %s", seed, i, event)
			require.Equal(t, refOK, ok, "seed %d, chunk %d: %s", seed, i, event)
			require.Equal(t, told(slow), told(fast), "seed %d, chunk %d: %s", seed, i, event)
			require.Equal(t, ref.told, told(fast), "seed %d, chunk %d: %s", seed, i, event)
		}
	}
	assert.Greater(t, matched, 100*60/5, "chunks on the fast path")
}

func newAnswer(d Dialect) *Answer { return &Answer{dialect: d, sure: true} }

// A tale is everything that an answer keeps of a stream.
type tale struct {
	id, model, errType            string
	usage, implied                tokens
	times                         EngineTimes
	finish                        [maxChoices]string
	known, done, finished, failed bool
}

func told(a *Answer) tale {
	r := tale{
		id: a.id, model: a.model, known: a.known, done: a.done, finished: a.finished, failed: a.failed, errType: a.errType,
		usage: a.usage, implied: a.implied, times: a.times,
	}
	copy(r.finish[:], a.finish)
	return r
}

// A reference reads chunks with encoding/json.
type reference struct{ told tale }

func (r *reference) event(event string) (kind genaitrace.ChunkKind, chunk bool) {
	var doc struct {
		ID, Model string
		Choices   *[]struct {
			Index        int
			Delta        delta
			Text         string
			FinishReason string `json:"finish_reason"`
		}
		Usage *struct {
			In      *int `json:"prompt_tokens"`
			Out     *int `json:"completion_tokens"`
			Details *struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
		Error *struct{ Type string }
	}
	if json.Unmarshal([]byte(event), &doc) != nil {
		return genaitrace.NoOutput, true // counts as a chunk, tells nothing
	}
	if r.told.id == "" {
		r.told.id = doc.ID
	}
	if r.told.model == "" {
		r.told.model = doc.Model
	}
	if doc.Choices != nil {
		r.told.known = true
		for _, c := range *doc.Choices {
			kind = max(kind, c.Delta.kind(), visible(c.Text))
			if c.FinishReason != "" && c.Index < maxChoices {
				r.told.finished = true
				r.told.finish[c.Index] = c.FinishReason
			}
		}
	}
	if u := doc.Usage; u != nil {
		r.told.known = true
		later(&r.told.usage.input, u.In)
		later(&r.told.usage.output, u.Out)
		if u.Details != nil && u.Details.Cached > 0 {
			later(&r.told.usage.cached, &u.Details.Cached)
		}
	}
	if doc.Error != nil {
		r.told.known = true
	}
	if doc.Error != nil && !r.told.failed {
		r.told.failed, r.told.errType = true, doc.Error.Type
	}
	return kind, true
}

// later is a count that comes after another.
func later(have *count, told *int) {
	if told != nil && (*told != 0 || !have.known) {
		*have = count{*told, true}
	}
}

type delta struct {
	Content, Refusal, Reasoning string
	ReasoningContent            string `json:"reasoning_content"`
	ToolCalls                   []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (d delta) kind() genaitrace.ChunkKind {
	output := d.Reasoning != "" || d.ReasoningContent != ""
	for _, call := range d.ToolCalls {
		output = output || call.Function.Name != "" || call.Function.Arguments != ""
	}
	switch {
	case d.Content != "" || d.Refusal != "":
		return genaitrace.Visible
	case output:
		return genaitrace.Output
	}
	return genaitrace.NoOutput
}

func visible(text string) genaitrace.ChunkKind {
	if text != "" {
		return genaitrace.Visible
	}
	return genaitrace.NoOutput
}

func TestAShapeMatchesOnlyChunksOfItsKind(t *testing.T) {
	chunk := func(content string) string {
		return `{"choices":[{"index":0,"delta":{"content":"` + content + `"},"finish_reason":null}]}`
	}
	a := newAnswer(OpenAI)
	_, ok := a.read(Event{Data: []byte(chunk("one"))})
	require.True(t, ok)
	for name, tt := range map[string]struct {
		event string
		match bool
	}{
		"text":                        {chunk("two"), true},
		"escapes":                     {chunk(`\n\u00e9`), true},
		"a backslash inside":          {chunk(`\\ x`), true},
		"a backslash at the end":      {chunk(`x\\`), false}, // is it an escaped quote?
		"quotes":                      {chunk(`\"usage\":{}`), false},
		"nothing":                     {chunk(``), false},
		"a member more":               {chunk(`x","role":"assistant`), false},
		"a finish reason":             {strings.Replace(chunk("x"), "null", `"stop"`, 1), false},
		"another choice":              {strings.Replace(chunk("x"), `"index":0`, `"index":1`, 1), false},
		"shorter than the two halves": {chunk("x")[:60], false},
		"space before":                {" " + chunk("x"), false},
	} {
		_, ok := a.shape.fits(nil, []byte(tt.event))
		assert.Equal(t, tt.match, ok, name)
	}
}

func TestLongChunksAreNotLearned(t *testing.T) {
	a := newAnswer(OpenAI)
	a.read(Event{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", maxShape) + `"}}]}`)})
	assert.Empty(t, a.shape.parts)
}

// The same for each dialect, with the events of the recorded streams, changed a
// little: a hole never hides what an event tells.
func TestShapesOfEveryDialectNeverChangeWhatIsRead(t *testing.T) {
	var pool []splitEvent
	for _, file := range fixtureFiles(t) {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		if len(body) > 10_000 {
			continue
		}
		for _, of := range framings {
			events, _, _ := split(newFramer(of), body)
			pool = append(pool, events...)
		}
	}
	matched := 0
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 3))
		e := pool[rng.IntN(len(pool))]
		d := recognise([]byte(e.data))
		if d == nil || rng.IntN(4) == 0 {
			d = dialects[rng.IntN(len(dialects))]
		}
		fast, slow := newAnswer(d), newAnswer(d)
		for i := range 40 {
			if rng.IntN(8) == 0 {
				e = pool[rng.IntN(len(pool))]
			}
			event := Event{Name: []byte(e.name), Data: change(rng, e.data), failed: e.failed}
			if _, ok := fast.shape.fits(event.Name, event.Data); ok {
				matched++
			}
			kind, ok := fast.read(event)
			slow.shape = shape{}
			slowKind, slowOK := slow.read(event)
			require.Equal(t, slowKind, kind, "%T, seed %d, event %d: %s", d, seed, i, event.Data)
			require.Equal(t, slowOK, ok, "%T, seed %d, event %d: %s", d, seed, i, event.Data)
			require.Equal(t, told(slow), told(fast), "%T, seed %d, event %d: %s", d, seed, i, event.Data)
			if fast.done {
				break
			}
		}
	}
	assert.Greater(t, matched, 250, "events that were not parsed")
}

var (
	someString   = regexp.MustCompile(`"[^"\\]*"`)
	outputString = regexp.MustCompile(`"(text|content|delta|text_output|response|p)":"[^"\\]*"`)
	someNumber   = regexp.MustCompile(`\d+`)
)

// change gives one string or number of a document another value.
func change(rng *rand.Rand, document string) []byte {
	texts := []string{`""`, `"x"`, `"\\"`, `"\""`, `"\n"`, `"é"`, `" two words"`, `null`, `7`, `"a","usage":{"prompt_tokens":5}`}
	text := texts[rng.IntN(len(texts))]
	switch rng.IntN(5) {
	case 0:
		return []byte(document)
	case 1:
		return replaceOne(rng, document, someNumber, strconv.Itoa(rng.IntN(1000)))
	case 2:
		return replaceOne(rng, document, someString, text)
	}
	return outputString.ReplaceAllFunc([]byte(document), func(member []byte) []byte {
		key, _, _ := bytes.Cut(member, []byte(":"))
		return append(append(bytes.Clone(key), ':'), text...)
	})
}

func replaceOne(rng *rand.Rand, document string, what *regexp.Regexp, with string) []byte {
	all := what.FindAllStringIndex(document, -1)
	if len(all) == 0 {
		return []byte(document)
	}
	at := all[rng.IntN(len(all))]
	return []byte(document[:at[0]] + with + document[at[1]:])
}
