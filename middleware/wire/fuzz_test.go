package wire

import (
	"bytes"
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
	files, err := filepath.Glob(filepath.Join("testdata", "fixtures", "*.sse"))
	require.NoError(f, err)
	for _, file := range files {
		stream, err := os.ReadFile(file)
		require.NoError(f, err)
		add(stream)
	}
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

// FuzzChatEvent lets one event teach its shape and reads the next with and
// without it.
func FuzzChatEvent(f *testing.F) {
	seed(f, func(stream []byte) {
		events := bytes.Split(bytes.ReplaceAll(stream, []byte("data: "), nil), []byte("\n\n"))
		for i := range events[1:] {
			f.Add(events[i], events[i+1])
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
		}
	})
}

// FuzzReadRequest: no body is too odd, and no fact is longer than the body.
func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[],"model":"m","stream":true,"max_tokens":5,"temperature":0.5,"top_p":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := ReadRequest("/v1/chat/completions", body)
		require.LessOrEqual(t, len(r.Model), 3*len(body)) // U+FFFD for a byte
		require.GreaterOrEqual(t, r.MaxTokens, 0)
		for _, v := range []*float64{r.Temperature, r.TopP} {
			if v != nil {
				require.False(t, math.IsNaN(*v) || math.IsInf(*v, 0))
			}
		}
	})
}

// FuzzReadBody: no answer is too odd.
func FuzzReadBody(f *testing.F) {
	f.Add([]byte(`{"id":"c","model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`), 200)
	f.Add([]byte(`{"error":{"message":"x","type":"requests","code":"rate_limit_exceeded"}}`), 429)
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
