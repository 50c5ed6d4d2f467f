package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An answerCase is the body of an answer and what is told of it, as summary
// writes it.
type answerCase struct {
	name string
	body string
	want string
}

// eventStreamType and the others are content types.
const (
	eventStreamType = "text/event-stream"
	jsonLinesType   = "application/x-ndjson"
	jsonType        = "application/json"
	awsType         = "application/vnd.amazon.eventstream"
)

func contentType(t string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", t)
	return h
}

// checkAnswers runs cases of one content type. The result must not depend on how
// the body is cut.
func checkAnswers(t *testing.T, x wire.Exchange, contentType string, cases []answerCase) {
	t.Helper()
	if x.Response == nil {
		x.Response = http.Header{}
	}
	x.Response.Set("Content-Type", contentType)
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				assert.Equal(t, tt.want, observe(x, []byte(tt.body)))
				for _, size := range []int{1, 2, 7, 64} {
					assert.Equal(t, tt.want, observe(x, chop([]byte(tt.body), size)...), "%d bytes a push", size)
				}
			})
		})
	}
}

// observe returns the summary of an answer that comes in pieces.
func observe(x wire.Exchange, pieces ...[]byte) string {
	var times wire.EngineTimes
	span := newObserver().call(func(call *genaitrace.Call) {
		s := wire.NewStream(call, x)
		for _, p := range pieces {
			s.Push(p)
		}
		s.End(io.EOF)
		times = s.EngineTimes()
	})
	return strings.Join(append(summary(span), describeTimes(times)...), " ")
}

func chop(b []byte, size int) (pieces [][]byte) {
	for len(b) > 0 {
		n := min(size, len(b))
		pieces, b = append(pieces, b[:n]), b[n:]
	}
	return pieces
}

// summary is what a span tells of an answer: "model=m chunks=3/1 visible in=5
// out=1 finish=stop done". Chunks are all and those with output.
func summary(span sdktrace.ReadOnlySpan) (parts []string) {
	got := attributes(span)
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if v, ok := got[genaiconv.ResponseIDKey]; ok {
		add("id=%v", v)
	}
	if v, ok := got[genaiconv.ResponseModelKey]; ok {
		add("model=%v", v)
	}
	if v, ok := got[semconv.GenAIChunkCountKey]; ok {
		add("chunks=%v/%v", v, got[semconv.GenAIChunkOutputCountKey])
	}
	if _, ok := got[semconv.GenAIFirstVisibleMsKey]; ok {
		add("visible")
	}
	if v, ok := got[genaiconv.UsageInputTokensKey]; ok {
		add("in=%v", v)
	}
	if v, ok := got[genaiconv.UsageOutputTokensKey]; ok {
		add("out=%v", v)
	}
	if v, ok := got[genaiconv.UsageCacheReadInputTokensKey]; ok {
		add("cached=%v", v)
	}
	if v, ok := got[genaiconv.UsageCacheWriteInputTokensKey]; ok {
		add("written=%v", v)
	}
	if v, ok := got[genaiconv.UsageReasoningOutputTokensKey]; ok {
		add("reasoning=%v", v)
	}
	if v, ok := got[genaiconv.ResponseFinishReasonsKey]; ok {
		add("finish=%s", strings.Join(v.([]string), ","))
	}
	if v, ok := got[semconv.GenAIStreamTerminalKey]; ok {
		add("%v", v)
	}
	if v, ok := got["error.type"]; ok {
		add("error=%v", v)
	}
	return parts
}

func describeTimes(t wire.EngineTimes) (parts []string) {
	for _, f := range []struct {
		name  string
		value *time.Duration
	}{
		{"queue", t.Queue}, {"load", t.Load}, {"tokenize", t.Tokenize}, {"prefill", t.Prefill}, {"decode", t.Decode},
		{"first", t.FirstToken}, {"total", t.Total}, {"validation", t.Validation}, {"inference", t.Inference},
		{"pertoken", t.PerToken}, {"processing", t.Processing},
	} {
		if f.value != nil {
			parts = append(parts, f.name+"="+f.value.String())
		}
	}
	if len(parts) > 0 {
		parts = append(parts, "from="+string(t.Source))
	}
	return parts
}

// sse writes events of data alone, named those of name and data in turn.
func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func named(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString("event: " + pairs[i] + "\ndata: " + pairs[i+1] + "\n\n")
	}
	return b.String()
}

func lines(documents ...string) string { return strings.Join(documents, "\n") + "\n" }
