package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

const (
	roleEvent   = `data: {"id":"c1","model":"m1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	textEvent   = `data: {"id":"c1","model":"m1","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
	finishEvent = `data: {"id":"c1","model":"m1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	errorEvent  = `data: {"error":{"message":"secret","type":"server_error","code":null}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
)

func TestStreamSaysHowItEnded(t *testing.T) {
	end := func(err error) func(*wire.Stream) { return func(s *wire.Stream) { s.End(err) } }
	abandon := func(why semconv.GenAIStreamTerminalAttr) func(*wire.Stream) {
		return func(s *wire.Stream) { s.Abandon(why) }
	}
	const (
		cancelled = semconv.GenAIStreamTerminalClientCancelled
		timeout   = semconv.GenAIStreamTerminalTimeout
	)
	for _, tt := range []struct {
		name      string
		stream    string
		end       func(*wire.Stream)
		terminal  semconv.GenAIStreamTerminalAttr
		errorType string // none: not a failure
	}{
		{"complete", roleEvent + textEvent + finishEvent + doneEvent, end(io.EOF), "done", ""},
		{"complete, nil for io.EOF", textEvent + finishEvent + doneEvent, end(nil), "done", ""},
		{"broken after its end mark", textEvent + finishEvent + doneEvent, end(io.ErrUnexpectedEOF), "done", ""},
		{"left after its end mark", textEvent + finishEvent + doneEvent, abandon(cancelled), "done", ""},
		{"finish reason but no end mark", textEvent + finishEvent, end(io.EOF), "finish", ""},
		{"left after its finish reason", textEvent + finishEvent, abandon(cancelled), "finish", ""},
		{"left while another choice goes on", strings.ReplaceAll(textEvent, `"index":0`, `"index":1`) + textEvent + finishEvent, abandon(cancelled), "client_cancelled", ""},
		{"broken after its finish reason", textEvent + finishEvent, end(io.ErrUnexpectedEOF), "truncated", "stream_truncated"},
		{"polite cut", roleEvent + textEvent, end(io.EOF), "truncated", "stream_truncated"},
		{"broken", roleEvent + textEvent, end(errors.New("connection reset")), "truncated", "stream_truncated"},
		{"wrapped unexpected EOF", textEvent, end(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)), "truncated", "stream_truncated"},
		{"left by its reader", textEvent, abandon(cancelled), "client_cancelled", ""},
		{"out of time", textEvent, abandon(timeout), "timeout", "timeout"},
		{"error event", textEvent + errorEvent, end(io.EOF), "error", "server_error"},
		{"error event and end mark, as vLLM sends them", errorEvent + doneEvent, end(io.EOF), "error", "server_error"},
		{"left after its error event", errorEvent, abandon(cancelled), "error", "server_error"},
		{"nothing", "", end(io.EOF), "eof", ""},
		{"nothing, broken", "", end(io.ErrUnexpectedEOF), "truncated", "stream_truncated"},
		{"heartbeats only", ": ping\n\n: ping\n\n", end(io.EOF), "eof", ""},
		{"another dialect", "event: tick\ndata: {\"type\":\"tick\"}\n\n", end(io.EOF), "eof", ""},
		{"another dialect, left", "data: {\"type\":\"tick\"}\n\n", abandon(cancelled), "client_cancelled", ""},
		{"end mark without its blank line", textEvent + "data: [DONE]", end(io.EOF), "done", ""},
		{"last event cut in the middle", textEvent + finishEvent[:40], end(io.EOF), "truncated", "stream_truncated"},
		{"last event whole without its blank line", textEvent + strings.TrimRight(finishEvent, "\n"), end(io.EOF), "finish", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			span := newObserver().call(func(call *genaitrace.Call) {
				s := wire.NewStream(call, wire.Exchange{})
				s.Push([]byte(tt.stream))
				tt.end(s)
			})
			got := attributes(span)
			assert.EqualValues(t, tt.terminal, got[semconv.GenAIStreamTerminalKey])
			if tt.errorType == "" {
				assert.Equal(t, codes.Unset, span.Status().Code)
				assert.NotContains(t, got, "error.type")
			} else {
				assert.Equal(t, codes.Error, span.Status().Code)
				assert.Equal(t, tt.errorType, got["error.type"])
			}
			assert.NotContains(t, describe(span), "secret")
		})
	}
}

func TestOnlyTheFirstEndOfAStreamCounts(t *testing.T) {
	span := newObserver().call(func(call *genaitrace.Call) {
		s := wire.NewStream(call, wire.Exchange{})
		s.Push([]byte(textEvent + doneEvent))
		assert.True(t, s.Done())
		s.End(io.EOF)
		s.End(io.ErrUnexpectedEOF)
		s.Abandon(semconv.GenAIStreamTerminalTimeout)
		s.Push([]byte(textEvent + errorEvent))
	})
	got := attributes(span)
	assert.Equal(t, "done", got[semconv.GenAIStreamTerminalKey])
	assert.EqualValues(t, 1, got[semconv.GenAIChunkCountKey])
}

func TestAStreamWithoutACallIsHarmless(t *testing.T) {
	s := wire.NewStream(nil, wire.Exchange{})
	s.Push([]byte(textEvent + errorEvent + doneEvent))
	s.End(nil)
	wire.ReadBody(nil, wire.Exchange{Status: 500}, []byte(`{"choices":[]}`))
}

// Events beyond the bound are dropped and counted, and the next one is read.
func TestEventsThatAreTooLongAreCountedAndTheNextIsRead(t *testing.T) {
	long := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", wire.MaxEvent) + `"}}]}` + "\n\n"
	lines := strings.Repeat("data: "+strings.Repeat("y", 1000)+"\n", wire.MaxEvent/1000+1) + "\n"
	comment := ":" + strings.Repeat("z", wire.MaxEvent) + "\n\n"
	for name, tt := range map[string]struct {
		stream  string
		dropped int64
	}{
		"one long line":         {roleEvent + long + textEvent + finishEvent + doneEvent, 1},
		"many lines":            {roleEvent + lines + textEvent + finishEvent + doneEvent, 1},
		"two in a row":          {roleEvent + long + lines + textEvent + finishEvent + doneEvent, 2},
		"a comment":             {roleEvent + comment + textEvent + finishEvent + doneEvent, 1},
		"the last, cut":         {roleEvent + textEvent + finishEvent + doneEvent + strings.TrimSpace(long), 1},
		"the last, many lines":  {roleEvent + textEvent + finishEvent + doneEvent + strings.TrimSpace(lines), 1},
		"just short enough one": {roleEvent + textEvent + finishEvent + doneEvent + ":" + comment[2:], 0},
	} {
		for _, piece := range []int{len(tt.stream), 4096, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes a push", name, piece), func(t *testing.T) {
				reader := sdkmetric.NewManualReader()
				o := newObserverWithMeter(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
				reported := handled(t)
				got := attributes(o.call(func(call *genaitrace.Call) {
					s := wire.NewStream(call, wire.Exchange{})
					for rest := []byte(tt.stream); len(rest) > 0; {
						n := min(piece, len(rest))
						s.Push(rest[:n])
						rest = rest[n:]
					}
					s.End(io.EOF)
				}))
				assert.EqualValues(t, 3, got[semconv.GenAIChunkCountKey])
				assert.Equal(t, "done", got[semconv.GenAIStreamTerminalKey])
				assert.Equal(t, min(tt.dropped, 1), faults(t, reader), "one fault a stream")
				assert.Len(t, reported(), int(min(tt.dropped, 1)))
			})
		}
	}
}

// faults returns how many faults were counted.
func faults(t *testing.T, reader *sdkmetric.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == semconv.GenAITelemetryFaultsName {
				for _, p := range sum.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}

// handled collects what reaches otel.Handle while the test runs.
func handled(t *testing.T) func() []error {
	t.Helper()
	var errs []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { errs = append(errs, err) }))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return func() []error { return errs }
}

// A million events leave no more behind than a thousand.
func TestALongStreamTakesBoundedMemory(t *testing.T) {
	events := []byte(strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", 100))
	const pushes = 10_000
	var before, after runtime.MemStats
	span := newObserver().call(func(call *genaitrace.Call) {
		s := wire.NewStream(call, wire.Exchange{})
		runtime.ReadMemStats(&before)
		for range pushes {
			s.Push(events[:777]) // in the middle of an event
			s.Push(events[777:])
		}
		runtime.ReadMemStats(&after)
		s.End(io.EOF)
	})
	assert.EqualValues(t, 100*pushes, attributes(span)[semconv.GenAIChunkCountKey])
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<10), "bytes allocated by a million events")
}

// The common path allocates nothing: each event in a push of its own, of the
// shape of the one before.
func TestOneMoreChunkAllocatesNothing(t *testing.T) {
	newObserver().call(func(call *genaitrace.Call) {
		s := wire.NewStream(call, wire.Exchange{})
		event := []byte(textEvent)
		for range 3000 { // the timeline has reached its size
			s.Push(event)
		}
		assert.Zero(t, testing.AllocsPerRun(1000, func() { s.Push(event) }))
		s.End(io.EOF)
	})
}

func TestReadBodyReadsAWholeAnswer(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":9,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":7}}`
	for _, tt := range []struct {
		name   string
		body   string
		status int
		want   map[string]any // "" stands for absent
	}{
		{
			"answer", `{"id":"c1","model":"m1","choices":[{"index":0,"message":{"content":"secret"},"finish_reason":"length"}],` + usage + `}`, 200,
			map[string]any{
				"gen_ai.response.id": "c1", "gen_ai.response.model": "m1", "gen_ai.response.finish_reasons": []string{"length"},
				"gen_ai.usage.input_tokens": int64(9), "gen_ai.usage.output_tokens": int64(12),
				"gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.usage.reasoning.output_tokens": int64(7), "error.type": "",
			},
		},
		{"spread over lines", "{\n  \"id\" : \"c1\" ,\n  \"usage\" : { \"prompt_tokens\" : 3 }\n}\n", 200, map[string]any{"gen_ai.response.id": "c1", "gen_ai.usage.input_tokens": int64(3)}},
		{"cut", `{"id":"c1","model":"m1","usage":{"prompt_tokens":12`, 200, map[string]any{"gen_ai.response.id": "c1", "gen_ai.usage.input_tokens": ""}},
		{"two choices out of order", `{"choices":[{"index":1,"finish_reason":"length"},{"index":0,"finish_reason":"stop"}]}`, 200, map[string]any{"gen_ai.response.finish_reasons": []string{"stop", "length"}}},
		{"choice of an absurd index", `{"choices":[{"index":1000000000,"finish_reason":"stop"},{"index":-1,"finish_reason":"stop"}]}`, 200, map[string]any{"gen_ai.response.finish_reasons": ""}},
		{"negative usage", `{"usage":{"prompt_tokens":-5,"completion_tokens":2}}`, 200, map[string]any{"gen_ai.usage.input_tokens": "", "gen_ai.usage.output_tokens": int64(2)}},
		{"fractions and words for counts", `{"usage":{"prompt_tokens":1.5,"completion_tokens":"12"}}`, 200, map[string]any{"gen_ai.usage.input_tokens": "", "gen_ai.usage.output_tokens": ""}},
		{"error with a code", `{"error":{"message":"secret","type":"requests","code":"rate_limit_exceeded"}}`, 429, map[string]any{"error.type": "rate_limit_exceeded", "genai.stream.terminal": "http_error"}},
		{"error with a number for a code", `{"error":{"type":"BadRequestError","code":400}}`, 400, map[string]any{"error.type": "BadRequestError", "genai.stream.terminal": "http_error"}},
		{"error that is a sentence", `{"error":"secret of the server"}`, 200, map[string]any{"error.type": "stream_error", "genai.stream.terminal": "error"}},
		{"null error", `{"error":null,"choices":[]}`, 200, map[string]any{"error.type": ""}},
		{"an array", `[{"id":"c1"}]`, 200, map[string]any{"gen_ai.response.id": ""}},
		{"not JSON", `<html>secret</html>`, 502, map[string]any{"genai.stream.terminal": "http_error"}},
		{"nothing", ``, 200, map[string]any{"error.type": "", "genai.stream.terminal": ""}},
		{"invalid UTF-8", "{\"id\":\"c\xff1\",\"model\":\"m\xc3\"}", 200, map[string]any{"gen_ai.response.id": "c\uFFFD1", "gen_ai.response.model": "m\uFFFD"}},
		{"escaped", `{"id":"c\u00e9\n\"","model":"\ud83d\ude00"}`, 200, map[string]any{"gen_ai.response.id": "cé\n\"", "gen_ai.response.model": "😀"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			handled(t) // bad counts are reported
			span := newObserver().call(func(call *genaitrace.Call) { wire.ReadBody(call, wire.Exchange{Status: tt.status}, []byte(tt.body)) })
			got := map[string]any{}
			for key, value := range attributes(span) {
				got[string(key)] = value
			}
			for key, want := range tt.want {
				if want == "" {
					assert.NotContains(t, got, key)
				} else {
					assert.Equal(t, want, got[key], key)
				}
			}
			assert.NotContains(t, describe(span), "secret")
			assert.NotContains(t, got, string(semconv.LLMTTFTMsKey), "a whole answer has no first token")
		})
	}
}

func TestLaterUsageOfZerosTellsNothing(t *testing.T) {
	event := func(in, out int) string {
		return fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\n", in, out)
	}
	span := newObserver().call(func(call *genaitrace.Call) {
		s := wire.NewStream(call, wire.Exchange{})
		s.Push([]byte(event(0, 0) + event(7, 1) + event(7, 2) + event(0, 0) + doneEvent))
		s.End(io.EOF)
	})
	got := attributes(span)
	assert.EqualValues(t, 7, got[genaiconv.UsageInputTokensKey])
	assert.EqualValues(t, 2, got[genaiconv.UsageOutputTokensKey])
}

// The status of a failure says how the call ended, whatever its body is.
func TestAStreamOfAFailedAnswerEndsAsThat(t *testing.T) {
	checkAnswers(t, wire.Exchange{Status: 500}, eventStreamType, []answerCase{
		{"words of nobody's", sse(`{"detail":"secret"}`), "http_error error=_OTHER"},
		{"an error", sse(`{"error":{"type":"server_error"}}`), "http_error error=server_error"},
		{"nothing", "", "http_error error=_OTHER"},
	})
	checkAnswers(t, wire.Exchange{Status: 503}, jsonLinesType, []answerCase{{"a line", lines(`{"error":"secret"}`), "http_error error=_OTHER"}})
}

// What services of one's own call their events is not an API's.
func TestAStreamThatLooksLikeADialectAtFirstIsNotTakenForIt(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"heartbeats", sse(`{"type":"ping"}`, `{"type":"delta","text":"x"}`, `{"type":"ping"}`), "chunks=2/0 eof"},
		{"heartbeats before a chat", sse(`{"type":"ping"}`, delta(`"content":"hi"`), finished("stop"), "[DONE]"), "id=c model=m chunks=2/1 visible finish=stop done"},
		{"tokens that are strings", sse(`{"token":"Hel"}`, `{"token":"lo"}`), "chunks=2/0 eof"},
	})
}

// A stream that fits no dialect may be anything: what its events call "id" or "usage" is
// the service's own business, and its end is no model's.
func TestAStreamThatFitsNoDialectTellsNothing(t *testing.T) {
	own := `data: {"id":"order-4711","model":"truck","type":"update","usage":{"prompt_tokens":3},"finish":"x"}` + "\n\n"
	for name, c := range map[string]struct {
		path, body string
		told       bool
	}{
		"of a service":                    {"/events", own, false},
		"of nobody knows what":            {"", own, false},
		"at the path of a model":          {"/v1/chat/completions", own, true},
		"an answer among what is unknown": {"/events", own + textEvent, true},
	} {
		t.Run(name, func(t *testing.T) {
			span := newObserver().call(func(call *genaitrace.Call) {
				s := wire.NewStream(call, wire.Exchange{Path: c.path, Response: map[string][]string{"Content-Type": {"text/event-stream"}}})
				s.Push([]byte(c.body))
				s.End(io.EOF)
			})
			got := attributes(span)
			if c.told {
				assert.Equal(t, "order-4711", got[genaiconv.ResponseIDKey])
				assert.EqualValues(t, semconv.GenAIStreamTerminalTruncated, got[semconv.GenAIStreamTerminalKey])
				return
			}
			assert.NotContains(t, got, genaiconv.ResponseIDKey)
			assert.NotContains(t, got, genaiconv.ResponseModelKey)
			assert.NotContains(t, got, genaiconv.UsageInputTokensKey)
			assert.EqualValues(t, semconv.GenAIStreamTerminalEOF, got[semconv.GenAIStreamTerminalKey])
			assert.Equal(t, codes.Unset, span.Status().Code)
		})
	}
}
