package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A fixture is an answer as a server sends it, with the plan of its writes and
// what an observer must report of it.
type fixture struct {
	Name     string            `json:"name"`
	Dialect  string            `json:"dialect"`
	Protocol string            `json:"protocol"`
	File     string            `json:"file"`
	Status   int               `json:"status"`
	Headers  map[string]string `json:"headers"`
	Writes   []struct {
		AtMs int `json:"at_ms"`
		End  int `json:"end"`
	} `json:"writes"`
	Expect expectation `json:"expect"`

	body []byte
}

type expectation struct {
	ID              *string  `json:"id"`
	Model           *string  `json:"model"`
	FirstChunkMs    *float64 `json:"first_chunk_ms"`
	FirstTokenMs    *float64 `json:"first_token_ms"`
	FirstVisibleMs  *float64 `json:"first_visible_ms"`
	LastTokenMs     *float64 `json:"last_token_ms"`
	DataEvents      int64    `json:"data_events"`
	TokenEvents     int64    `json:"token_events"`
	Text            string   `json:"text"`
	Reasoning       string   `json:"reasoning"`
	Tools           []tool   `json:"tools"`
	InputTokens     *int64   `json:"input_tokens"`
	OutputTokens    *int64   `json:"output_tokens"`
	CachedTokens    *int64   `json:"cached_tokens"`
	ReasoningTokens *int64   `json:"reasoning_tokens"`
	Finish          []string `json:"finish"`
	Terminal        string   `json:"terminal"`
	ErrorType       *string  `json:"error_type"`
	Engine          *engine  `json:"engine"`
}

type tool struct {
	Name string `json:"name"`
	Args string `json:"args"`
}

type engine struct {
	Source       string   `json:"source"`
	QueueMs      *float64 `json:"queue_ms"`
	LoadMs       *float64 `json:"load_ms"`
	PrefillMs    *float64 `json:"prefill_ms"`
	DecodeMs     *float64 `json:"decode_ms"`
	TTFTMs       *float64 `json:"ttft_ms"`
	TotalMs      *float64 `json:"total_ms"`
	ValidationMs *float64 `json:"validation_ms"`
	InferenceMs  *float64 `json:"inference_ms"`
	PerTokenMs   *float64 `json:"time_per_token_ms"`
}

func loadFixtures(t testing.TB) []fixture {
	t.Helper()
	dir := filepath.Join("testdata", "fixtures")
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	var all []fixture
	require.NoError(t, json.Unmarshal(text, &all))
	for i := range all {
		all[i].body, err = os.ReadFile(filepath.Join(dir, all[i].File))
		require.NoError(t, err)
		all[i].decode(t)
	}
	return all
}

// decode does what an HTTP transport does before it hands on a body.
func (f *fixture) decode(t testing.TB) {
	t.Helper()
	if f.Headers["Content-Encoding"] != "gzip" {
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(f.body))
	require.NoError(t, err)
	f.body, err = io.ReadAll(r)
	require.NoError(t, err)
	delete(f.Headers, "Content-Encoding")
	f.Writes[0].End = len(f.body)
}

// exchange is what the other side of the wire knows of the fixture: its headers.
func (f *fixture) exchange() wire.Exchange {
	h := make(http.Header)
	for name, value := range f.Headers {
		h.Set(name, value)
	}
	return wire.Exchange{Response: h, Status: f.Status}
}

// replay shows the fixture to a call by its plan, as a transport does.
func (f *fixture) replay(call *genaitrace.Call) wire.EngineTimes {
	x, start, from := f.exchange(), time.Now(), 0
	s := wire.NewStream(call, x)
	for _, w := range f.Writes {
		time.Sleep(time.Until(start.Add(time.Duration(w.AtMs) * time.Millisecond)))
		s.Push(f.body[from:w.End])
		from = w.End
	}
	s.End(f.ending())
	return s.EngineTimes()
}

// ending is how the body of the fixture ends.
func (f *fixture) ending() error {
	if f.Expect.Terminal == "truncated" {
		return errors.New("connection reset")
	}
	return io.EOF
}

// Each fixture, replayed by its plan, gives exactly what it expects, found out
// from its headers and its first event alone.
func TestEachFixtureGivesWhatItExpects(t *testing.T) {
	for _, f := range loadFixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var times wire.EngineTimes
				o := newObserver()
				span := o.call(func(call *genaitrace.Call) { times = f.replay(call) })
				f.Expect.check(t, span)
				f.Expect.Engine.check(t, times)
				f.Expect.Engine.checkSpans(t, o.ended)
			})
		})
	}
}

func (e *expectation) check(t *testing.T, span sdktrace.ReadOnlySpan) {
	t.Helper()
	got := attributes(span)
	optional(t, got, genaiconv.ResponseIDKey, e.ID)
	optional(t, got, genaiconv.ResponseModelKey, e.Model)
	optional(t, got, semconv.LLMTTFTMsKey, e.FirstTokenMs)
	optional(t, got, semconv.GenAIFirstVisibleMsKey, e.FirstVisibleMs)
	optional(t, got, semconv.GenAILastTokenMsKey, e.LastTokenMs)
	optional(t, got, genaiconv.UsageInputTokensKey, e.InputTokens)
	optional(t, got, genaiconv.UsageOutputTokensKey, e.OutputTokens)
	optional(t, got, genaiconv.UsageCacheReadInputTokensKey, e.CachedTokens)
	optional(t, got, genaiconv.UsageReasoningOutputTokensKey, e.ReasoningTokens)
	if len(e.Finish) > 0 {
		assert.Equal(t, e.Finish, got[genaiconv.ResponseFinishReasonsKey])
	} else {
		assert.NotContains(t, got, genaiconv.ResponseFinishReasonsKey)
	}
	if e.FirstChunkMs != nil {
		assert.Equal(t, *e.FirstChunkMs/1000, got[genaiconv.ResponseTimeToFirstChunkKey])
		assert.Equal(t, e.DataEvents, got[semconv.GenAIChunkCountKey], "data events")
		assert.Equal(t, e.TokenEvents, got[semconv.GenAIChunkOutputCountKey], "token events")
	} else {
		assert.NotContains(t, got, genaiconv.ResponseTimeToFirstChunkKey)
		assert.NotContains(t, got, semconv.GenAIChunkCountKey)
	}
	e.checkEnd(t, span)
}

// checkEnd checks how the span says that the answer ended. One that was not
// streamed and went well says nothing: genai.stream.terminal is about streams.
func (e *expectation) checkEnd(t *testing.T, span sdktrace.ReadOnlySpan) {
	t.Helper()
	got := attributes(span)
	if e.FirstChunkMs == nil && e.Terminal == "done" {
		assert.NotContains(t, got, semconv.GenAIStreamTerminalKey)
	} else {
		assert.Equal(t, e.Terminal, got[semconv.GenAIStreamTerminalKey])
	}
	switch e.Terminal {
	case "error", "http_error":
		assert.Equal(t, codes.Error, span.Status().Code)
		optional(t, got, "error.type", e.ErrorType)
	case "truncated":
		assert.Equal(t, codes.Error, span.Status().Code)
		assert.Equal(t, "stream_truncated", got["error.type"])
	default:
		assert.Equal(t, codes.Unset, span.Status().Code)
		assert.NotContains(t, got, attribute.Key("error.type"))
	}
}

// optional checks that a key has the value, or is absent where it is nil.
func optional[T comparable](t *testing.T, got map[attribute.Key]any, key attribute.Key, want *T) {
	t.Helper()
	if want == nil {
		assert.NotContains(t, got, key)
		return
	}
	assert.Equal(t, any(*want), got[key], string(key))
}

// check compares engine times to a nanosecond; what is not expected must be
// absent.
func (e *engine) check(t *testing.T, got wire.EngineTimes) {
	t.Helper()
	if e == nil {
		got.Processing, got.Source = nil, "" // openai-processing-ms is not among the expected
		assert.Equal(t, wire.EngineTimes{}, got)
		return
	}
	assert.EqualValues(t, e.Source, got.Source)
	for name, field := range map[string]struct {
		want *float64
		got  *time.Duration
	}{
		"queue": {e.QueueMs, got.Queue}, "load": {e.LoadMs, got.Load}, "tokenize": {nil, got.Tokenize},
		"prefill": {e.PrefillMs, got.Prefill}, "decode": {e.DecodeMs, got.Decode},
		"first token": {e.TTFTMs, got.FirstToken}, "total": {e.TotalMs, got.Total},
		"validation": {e.ValidationMs, got.Validation}, "inference": {e.InferenceMs, got.Inference},
		"per token": {e.PerTokenMs, got.PerToken}, "processing": {nil, got.Processing},
	} {
		if field.want == nil {
			assert.Nil(t, field.got, name)
			continue
		}
		if assert.NotNil(t, field.got, name) {
			assert.Equal(t, time.Duration(*field.want*1e6+0.5), *field.got, name)
		}
	}
}

// checkSpans checks that each phase is an attribute of the call's span, as it was
// reported, and a span below it.
func (e *engine) checkSpans(t *testing.T, ended []sdktrace.ReadOnlySpan) {
	t.Helper()
	if e == nil {
		e = &engine{}
	}
	call, below := ended[len(ended)-1], map[string]sdktrace.ReadOnlySpan{}
	for _, s := range ended[:len(ended)-1] {
		assert.Equal(t, call.SpanContext().SpanID(), s.Parent().SpanID(), s.Name())
		below[s.Name()] = s
	}
	got, phases := attributes(call), 0
	for name, phase := range map[string]struct {
		key  attribute.Key
		want *float64
	}{
		"queue.wait":        {semconv.LLMQueueWaitMsKey, e.QueueMs},
		"model.load":        {semconv.AILoadDurationMsKey, e.LoadMs},
		"inference.prefill": {semconv.AIPrefillDurationMsKey, e.PrefillMs},
		"inference.decode":  {semconv.AIDecodeDurationMsKey, e.DecodeMs},
	} {
		optional(t, got, phase.key, phase.want)
		if phase.want == nil {
			assert.NotContains(t, below, name)
			continue
		}
		phases++
		if assert.Contains(t, below, name) {
			assert.Equal(t, e.Source, attributes(below[name])[semconv.GenAITimingSourceKey])
		}
	}
	assert.Len(t, below, phases)
	optional(t, got, semconv.GenAIEngineTTFTMsKey, e.TTFTMs)
	optional(t, got, semconv.GenAIEngineTotalMsKey, e.TotalMs)
	if phases == 0 && e.TTFTMs == nil && e.TotalMs == nil {
		assert.NotContains(t, got, semconv.GenAITimingSourceKey)
	} else {
		assert.Equal(t, e.Source, got[semconv.GenAITimingSourceKey])
	}
}

// What is taken for output is the text, the reasoning and the tool calls of the
// fixture, and nothing else.
func TestEachPieceOfOutputIsClassified(t *testing.T) {
	for _, f := range loadFixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			var p pieces
			s := wire.NewStream(nil, f.exchange())
			wire.ObservePieces(s, p.see)
			s.Push(f.body)
			s.End(io.EOF)
			if f.Dialect == "sglang" { // whose text is cumulative
				p.content.Reset()
				p.content.WriteString(p.last)
			}
			var tools strings.Builder
			for _, call := range f.Expect.Tools {
				tools.WriteString(call.Name + call.Args)
			}
			assert.Equal(t, f.Expect.Text, p.content.String(), "text")
			assert.Equal(t, f.Expect.Reasoning, p.reasoning.String(), "reasoning")
			assert.Equal(t, tools.String(), p.tools.String(), "tools")
		})
	}
}

type pieces struct {
	content, reasoning, tools strings.Builder
	last                      string
}

func (p *pieces) see(kind wire.Kind, raw []byte) {
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // the arguments of a tool may be an object
	switch kind {
	case wire.KindContent:
		p.last = text
		p.content.WriteString(text)
	case wire.KindReasoning:
		p.reasoning.WriteString(text)
	case wire.KindTool:
		p.tools.WriteString(text)
	}
}

// Wherever a stream is cut into two, and where it comes a byte at a time, the
// span is the same as of one piece.
func TestEverySplitOfAStreamGivesTheSameSpan(t *testing.T) {
	for _, f := range loadFixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObserver()
				observe := func(pieces ...[]byte) string {
					return describe(o.call(func(call *genaitrace.Call) {
						s := wire.NewStream(call, f.exchange())
						for _, p := range pieces {
							s.Push(p)
						}
						s.End(f.ending())
					}))
				}
				want := observe(f.body)
				for i := range f.body {
					if len(f.body) > 10_000 && i > 700 && i < len(f.body)-300 && i%20011 > 0 {
						continue // in the middle of one long string
					}
					require.Equal(t, want, observe(f.body[:i], f.body[i:]), "cut at byte %d", i)
				}
				single := make([][]byte, len(f.body))
				for i := range f.body {
					single[i] = f.body[i : i+1]
				}
				require.Equal(t, want, observe(single...), "a byte at a time")
			})
		})
	}
}

// The same without a content type: the first byte tells the framing.
func TestABodyWithoutHeadersTellsWhatItIs(t *testing.T) {
	for _, f := range loadFixtures(t) {
		if !f.exchange().Streamed() {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObserver()
				observe := func(x wire.Exchange) string {
					return describe(o.call(func(call *genaitrace.Call) {
						s := wire.NewStream(call, x)
						s.Push(f.body[:1])
						s.Push(f.body[1:])
						s.End(f.ending())
					}))
				}
				require.Equal(t, observe(f.exchange()), observe(wire.Exchange{}))
			})
		})
	}
}
