package wire

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// seed adds the recorded streams to the corpus of testdata/fuzz.
func seed(f *testing.F, add func(stream []byte)) {
	f.Helper()
	for _, file := range fixtureFiles(f) {
		stream, err := os.ReadFile(file)
		require.NoError(f, err)
		if len(stream) < 4<<10 {
			add(stream)
		}
	}
}

func fixtureFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "fixtures", "*.*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// FuzzSSE holds the parser to the slow one, however the stream is cut.
func FuzzSSE(f *testing.F) {
	seed(f, func(stream []byte) { f.Add(stream, uint64(1)) })
	f.Fuzz(func(t *testing.T, stream []byte, cuts uint64) {
		if len(stream) >= MaxEvent {
			t.Skip("may hold an event that is too long")
		}
		var s sse
		events, rest := frame(&s, cut(rand.New(rand.NewPCG(cuts, 0)), stream)...)
		wantEvents, wantRest := frameSlowly(string(stream))
		require.Equal(t, wantEvents, events)
		require.Equal(t, wantRest, rest)
		require.Zero(t, s.dropped)
	})
}

var framings = []framing{serverSent, jsonLines, jsonValues, awsMessages}

// FuzzFraming: no parser depends on how a stream is cut, and what it hands on is
// a part of the stream.
func FuzzFraming(f *testing.F) {
	seed(f, func(stream []byte) {
		for i := range framings {
			f.Add(stream, uint8(i), uint64(1))
		}
	})
	f.Fuzz(func(t *testing.T, stream []byte, kind uint8, cuts uint64) {
		of := framings[int(kind)%len(framings)]
		want, wantRest, wantUnread := split(newFramer(of), stream)
		got, gotRest, gotUnread := split(newFramer(of), cut(rand.New(rand.NewPCG(cuts, 0)), stream)...)
		require.Equal(t, want, got)
		require.Equal(t, wantRest, gotRest)
		require.Equal(t, wantUnread, gotUnread)
		total := 0
		for _, e := range want {
			total += len(e.data)
		}
		require.LessOrEqual(t, total, len(stream))
	})
}

type splitEvent struct {
	name, data   string
	failed, bare bool
}

func split(fr framer, pieces ...[]byte) (events []splitEvent, rest string, unread int) {
	dispatch := func(e Event) {
		events = append(events, splitEvent{string(e.Name), string(e.Data), e.failed, e.bare})
	}
	for _, p := range pieces {
		fr.push(p, dispatch)
	}
	if e, ok := fr.finish(dispatch); ok {
		rest = string(e.Data)
	}
	return events, rest, fr.unread()
}

// FuzzEvents lets one event teach its shape and has each dialect read the next
// with and without it.
func FuzzEvents(f *testing.F) {
	seed(f, func(stream []byte) {
		events, _, _ := split(newFramer(serverSent), stream)
		documents, _, _ := split(newFramer(jsonLines), stream)
		messages, _, _ := split(newFramer(awsMessages), stream)
		for _, all := range [][]splitEvent{events, documents, messages} {
			for i := 1; i < len(all); i++ {
				f.Add([]byte(all[i-1].data), []byte(all[i].data))
			}
		}
	})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, d := range dialects {
			fast, slow := newAnswer(d), newAnswer(d)
			fast.read(Event{Data: first})
			slow.read(Event{Data: first})
			slow.shape = shape{}
			kind, ok := fast.read(Event{Data: second})
			slowKind, slowOK := slow.read(Event{Data: second})
			require.Equal(t, slowKind, kind)
			require.Equal(t, slowOK, ok)
			require.Equal(t, told(slow), told(fast))
			require.LessOrEqual(t, len(fast.finish), maxChoices)
			require.LessOrEqual(t, len(fast.id)+len(fast.model)+len(fast.errType), 3*3*maxText)
		}
	})
}

// FuzzStream: what is told of a stream does not depend on how it is cut, whether
// its dialect is known or found out.
func FuzzStream(f *testing.F) {
	seed(f, func(stream []byte) {
		for i := range len(dialects) + 1 {
			f.Add(stream, uint8(i), uint8(i), uint64(1))
		}
	})
	f.Fuzz(func(t *testing.T, body []byte, dialect, kind uint8, cuts uint64) {
		run := func(pieces ...[]byte) (tale, int, bool) {
			s := NewStream(nil, Exchange{})
			if n := int(kind) % (len(framings) + 1); n < len(framings) {
				s.framer = newFramer(framings[n])
			}
			if n := int(dialect) % (len(dialects) + 1); n < len(dialects) {
				s.answer.dialect, s.answer.sure = dialects[n], true
			}
			for _, p := range pieces {
				s.Push(p)
			}
			s.End(io.EOF)
			return told(&s.answer), s.answer.guesses, s.answer.begun
		}
		want, wantGuesses, wantBegun := run(body)
		got, gotGuesses, gotBegun := run(cut(rand.New(rand.NewPCG(cuts, 0)), body)...)
		require.Equal(t, want, got)
		require.Equal(t, wantGuesses, gotGuesses)
		require.Equal(t, wantBegun, gotBegun)
	})
}

// FuzzReadRequest: no body is too odd, no fact is longer than the body, and it
// does not matter how it is cut.
func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[],"model":"m","stream":true,"max_tokens":5,"temperature":0.5,"top_p":1}`), uint64(1))
	f.Add([]byte(`{"options":{"num_predict":5,"x":{"y":[]}},"tools":[{},[],{}],"stream":false}`), uint64(2))
	f.Fuzz(func(t *testing.T, body []byte, cuts uint64) {
		r := ReadRequest("/api/chat", body)
		require.LessOrEqual(t, len(r.Model), 3*len(body)) // U+FFFD for a byte
		require.GreaterOrEqual(t, r.MaxTokens, 0)
		for _, v := range []*float64{r.Temperature, r.TopP} {
			if v != nil {
				require.False(t, math.IsNaN(*v) || math.IsInf(*v, 0))
			}
		}
		whole, pieces := NewRequestReader("/api/chat"), NewRequestReader("/api/chat")
		_, _ = whole.Write(body)
		for _, p := range cut(rand.New(rand.NewPCG(cuts, 0)), body) {
			_, _ = pieces.Write(p)
		}
		require.Equal(t, whole.facts, pieces.facts)
	})
}

// FuzzReadBody: no answer is too odd.
func FuzzReadBody(f *testing.F) {
	f.Add([]byte(`{"id":"c","model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`), 200)
	f.Add([]byte(`{"error":{"message":"x","type":"requests","code":"rate_limit_exceeded"}}`), 429)
	seed(f, func(stream []byte) { f.Add(stream, 200) })
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		for _, d := range dialects {
			a := newAnswer(d)
			a.readDocument(body)
			require.LessOrEqual(t, len(a.finish), maxChoices)
			require.LessOrEqual(t, len(a.id)+len(a.model)+len(a.errType), 3*len(body))
		}
		ReadBody(nil, Exchange{Status: status}, body)
	})
}

// FuzzDuration holds the reader of decimal numbers to what a float64 can tell.
func FuzzDuration(f *testing.F) {
	for _, number := range []string{"0", "1767000000.058", "-0.0001", "6e-4", "1E+3", "00012.50", "1e999", "9223372036.9", ".5", "1.", "1.2.3", "-"} {
		f.Add([]byte(number))
	}
	f.Fuzz(func(t *testing.T, number []byte) {
		got := duration(number, seconds)
		var want float64
		if got == nil || len(number) > 30 || json.Unmarshal(number, &want) != nil {
			return
		}
		require.InDelta(t, want*1e9, float64(*got), 1+math.Abs(want)) // a float64 has 53 bits
	})
}

// FuzzDocument: a document that is shortened tells the same.
func FuzzDocument(f *testing.F) {
	seed(f, func(stream []byte) { f.Add(stream, uint64(1)) })
	f.Add([]byte(`{"data":[{"embedding":[0.1,-2e-3, 4]}],"model":"m","usage":{"prompt_tokens":8}}`), uint64(1))
	f.Add([]byte(`{"choices":[null,{"index":0,"finish_reason":"stop"},true,"x",{"index":1,"finish_reason":"length"}]}`), uint64(1))
	f.Fuzz(func(t *testing.T, body []byte, cuts uint64) {
		if !json.Valid(body) {
			t.Skip("what is told of what is broken may differ")
		}
		for _, dialect := range dialects {
			whole, short := newAnswer(dialect), newAnswer(dialect)
			whole.readDocument(body)
			d := document{long: true}
			for _, p := range cut(rand.New(rand.NewPCG(cuts, 0)), body) {
				d.push(p, nil)
			}
			short.readDocument(d.kept)
			require.Equal(t, told(whole), told(short))
			require.True(t, d.complete())
		}
	})
}
