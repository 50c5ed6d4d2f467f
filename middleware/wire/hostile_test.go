package wire_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// maxHeap is what a stream may hold on to, whatever comes: a line and an event of
// MaxEvent, with room to grow, and JSON that stands in no field.
const maxHeap = 6 * wire.MaxEvent

// Whatever comes, a stream keeps no more than a fixed bound, and the next stream
// is read.
func TestHostileStreamsStayWithinAFixedBound(t *testing.T) {
	gemini := wire.Exchange{Path: "/models/x:streamGenerateContent", Response: contentType(jsonType)}
	events, jsonl, aws := wire.Exchange{Response: contentType(eventStreamType)}, wire.Exchange{Response: contentType(jsonLinesType)}, wire.Exchange{Response: contentType(awsType)}
	const kib64, gib = 64 << 10, 1 << 30
	deep := strings.Repeat(`{"choices":[`, kib64/12)
	for _, tt := range []struct {
		name         string
		x            wire.Exchange
		prefix, unit string
		total        int
	}{
		{"a line of a gigabyte", events, `data: {"choices":[{"delta":{"content":"`, strings.Repeat("x", kib64), gib},
		{"a name of a gigabyte", events, "event: ", strings.Repeat("x", kib64), gib},
		{"a comment of a gigabyte", events, ":", strings.Repeat("x", kib64), gib},
		{"a line of a gigabyte, NDJSON", jsonl, `{"message":{"content":"`, strings.Repeat("x", kib64), gib},
		{"an AWS message of four gigabytes", aws, awsPrelude(1<<32-1, 100), strings.Repeat("x", kib64), gib},
		{"AWS messages that do not match their checksum", aws, "", strings.Repeat("\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", kib64/16), gib},
		{"an event of many lines", events, "", strings.Repeat("data: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n", kib64/70), 8 << 20},
		{"JSON in no field that does not end", events, "{\n", strings.Repeat("\"x\",", kib64/4) + "\n", 8 << 20},
		{"an object of an array that does not end", gemini, `[{"x":"`, strings.Repeat("x", kib64), 8 << 20},
		{"depth without end", gemini, "[", deep, 8 << 20},
		{"depth without end, in a line", events, "data: ", deep, 8 << 20},
		{"events of depth", events, "", "data: " + deep + "\n\n", 4 << 20},
		{"lines of depth", jsonl, "", deep + "\n", 4 << 20},
		{"a million events", events, "", strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", 1000), 46_000_000},
		{"a million empty events", events, "", strings.Repeat("data:\n\n", 10_000), 7_000_000},
		{"a million names", events, "", strings.Repeat("event: x\n", 10_000), 9_000_000},
		{"a million documents", gemini, "[", strings.Repeat("{},", 10_000), 3_000_000},
		{"a million lines", jsonl, "", strings.Repeat("{}\n", 10_000), 3_000_000},
		{"a million choices", events, "", "data: " + choices(10_000) + "\n\n", 4 << 20},
		{"names that are too long", events, "", "data: {\"id\":\"" + strings.Repeat("i", 4000) + "\",\"model\":\"" + strings.Repeat("m", 4000) + "\",\"choices\":[{\"index\":0,\"finish_reason\":\"" + strings.Repeat("r", 4000) + "\"}]}\n\n", 4 << 20},
		{"nothing that is UTF-8", events, "data: ", strings.Repeat("\xff\xfe\xc3\x28", kib64/4) + "\n\ndata: ", 8 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			handled(t)
			span := newObserver().call(func(call *genaitrace.Call) {
				before := heap()
				s := wire.NewHeldStream(call, tt.x)
				s.Push([]byte(tt.prefix))
				unit := []byte(tt.unit)
				for sent := 0; sent < tt.total; sent += len(unit) {
					s.Push(unit)
				}
				assert.LessOrEqual(t, heap()-before, int64(maxHeap), "bytes kept")
				s.End(io.EOF)
			})
			for key, value := range attributes(span) {
				assert.Less(t, len(fmt.Sprint(value)), 4<<10, key)
			}
			after := observe(events, []byte(sse(delta(`"content":"hi"`), finished("stop"), "[DONE]")))
			assert.Equal(t, "id=c model=m chunks=2/1 visible finish=stop done", after, "the next stream")
		})
	}
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// choices is a chunk with that many choices, each with a finish reason of its own.
func choices(n int) string {
	var b strings.Builder
	b.WriteString(`{"choices":[`)
	for i := range n {
		fmt.Fprintf(&b, `{"index":%d,"delta":{"content":"x"},"finish_reason":"r%d"},`, i, i)
	}
	b.WriteString(`{}]}`)
	return b.String()
}

// Whole answers and requests of any kind cost time in proportion to their length,
// and keep next to nothing.
func TestHostileDocumentsStayWithinAFixedBound(t *testing.T) {
	const size = 1 << 20
	for name, document := range map[string]string{
		"depth":           strings.Repeat("[", size),
		"depth of both":   strings.Repeat(`{"a":[`, size/6),
		"one text":        `{"model":"` + strings.Repeat("x", size) + `"}`,
		"backslashes":     `{"model":"` + strings.Repeat(`\`, size) + `"}`,
		"many members":    `{` + strings.Repeat(`"usage":{"prompt_tokens":1},`, size/28) + `"x":1}`,
		"many answers":    `[` + strings.Repeat(`{"text":"x","meta_info":{}},`, size/28) + `{}]`,
		"many settings":   `{` + strings.Repeat(`"options":{"temperature":1},`, size/28) + `"x":1}`,
		"many tools":      `{"tools":[` + strings.Repeat(`{},`, size/3) + `{}]}`,
		"a long number":   `{"max_tokens":` + strings.Repeat("1", size) + `}`,
		"a long time":     `{"choices":[],"metrics":{"queue_time_ms":` + strings.Repeat("1", size) + `}}`,
		"a long fraction": `{"choices":[],"metrics":{"queue_time_ms":0.` + strings.Repeat("0", size) + `}}`,
		"not UTF-8":       `{"model":"` + strings.Repeat("\xff", 500) + `","id":"` + strings.Repeat("\xc3", 500) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			b := []byte(document)
			before := heap()
			r := wire.NewRequestReader("/v1/chat/completions")
			_, _ = r.Write(b)
			span := newObserver().call(func(call *genaitrace.Call) { wire.ReadBody(call, wire.Exchange{}, b) })
			assert.LessOrEqual(t, heap()-before, int64(256<<10), "bytes kept")
			for key, value := range attributes(span) {
				assert.Less(t, len(fmt.Sprint(value)), 4<<10, key)
			}
			runtime.KeepAlive(r)
			runtime.KeepAlive(b)
		})
	}
}

// A long answer is mostly text and numbers that nobody reads, and is read all the
// same.
func TestLongDocumentsAreReadInPieces(t *testing.T) {
	embedding := "[" + strings.Repeat("-0.0123456789, 1e-05,\n", 30_000) + "0]"
	for name, tt := range map[string]struct{ document, want string }{
		"embeddings": {
			`{"object":"list","data":[{"index":0,"embedding":` + embedding + `},{"index":1,"embedding":` + embedding + `}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`,
			"model=m in=8",
		},
		"embeddings in base64": {
			`{"object":"list","data":[{"embedding":"` + strings.Repeat("AAAA", 400_000) + `"}],"model":"m","usage":{"prompt_tokens":8}}`,
			"model=m in=8",
		},
		"Ollama's embeddings": {`{"model":"m","embeddings":[` + embedding + `,` + embedding + `],"prompt_eval_count":8}`, "model=m in=8"},
		"a long text": {
			`{"id":"c","choices":[{"message":{"content":"` + strings.Repeat(`x\"\\`, 300_000) + `"},"finish_reason":"length"},{"index":1,"message":{"content":"y"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`,
			"id=c in=3 out=4 finish=length,stop",
		},
		"an image in parts": {
			`{"candidates":[{"content":{"parts":[{"inlineData":{"data":"` + strings.Repeat("AAAA", 400_000) + `"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":2}}`,
			"in=2 finish=STOP",
		},
		"members that stand after depth": {`{"a":` + strings.Repeat("[", 200) + strings.Repeat("1,", 100_000) + strings.Repeat("]", 200) + `,"choices":[{"index":0,"finish_reason":"stop"}],"model":"m7"}`, "model=m7 finish=stop"},
	} {
		t.Run(name, func(t *testing.T) {
			x := wire.Exchange{Response: contentType(jsonType)}
			assert.True(t, x.Document())
			for _, size := range []int{len(tt.document), 4096} {
				before := heap()
				s := wire.NewStream(nil, x)
				for rest := []byte(tt.document); len(rest) > 0; {
					n := min(size, len(rest))
					s.Push(rest[:n])
					rest = rest[n:]
				}
				if size < len(tt.document) {
					assert.LessOrEqual(t, heap()-before, int64(256<<10), "bytes kept")
				}
				runtime.KeepAlive(s)
				assert.Equal(t, tt.want, observe(x, chop([]byte(tt.document), size)...), "%d bytes a push", size)
			}
		})
	}
}

// How a whole answer ended is told where it did not end well.
func TestDocumentsSayHowTheyEnded(t *testing.T) {
	const whole = `{"id":"c","choices":[{"index":0,"finish_reason":"stop"}]}`
	long := `{"id":"c","pad":"` + strings.Repeat("x", 100<<10) + `","choices":[{"index":0,"finish_reason":"stop"}]}`
	end := func(err error) func(*wire.Stream) { return func(s *wire.Stream) { s.End(err) } }
	left := func(s *wire.Stream) { s.Abandon("client_cancelled") }
	late := func(s *wire.Stream) { s.Abandon("timeout") }
	for _, tt := range []struct {
		name, body string
		end        func(*wire.Stream)
		want       string
	}{
		{"whole", whole, end(io.EOF), "id=c finish=stop"},
		{"whole, and closed without waiting for its end", whole, left, "id=c finish=stop"},
		{"whole, and broken after", whole, end(io.ErrUnexpectedEOF), "id=c finish=stop"},
		{"long", long, left, "id=c finish=stop"},
		{"broken", whole[:20], end(io.ErrUnexpectedEOF), "id=c truncated error=stream_truncated"},
		{"long, broken", long[:80<<10], end(io.ErrUnexpectedEOF), "id=c truncated error=stream_truncated"},
		{"long, broken after a brace in a text", long[:80<<10] + "}", end(io.ErrUnexpectedEOF), "id=c truncated error=stream_truncated"},
		{"left", whole[:20], left, "id=c client_cancelled"},
		{"out of time", whole[:20], late, "id=c timeout error=timeout"},
		{"nothing, out of time", "", late, "timeout error=timeout"},
		{"an error, left", `{"error":{"type":"x"}}`, left, "error error=x"},
	} {
		span := newObserver().call(func(call *genaitrace.Call) {
			s := wire.NewStream(call, wire.Exchange{Response: contentType(jsonType)})
			s.Push([]byte(tt.body))
			tt.end(s)
		})
		assert.Equal(t, tt.want, strings.Join(summary(span), " "), tt.name)
	}
}
