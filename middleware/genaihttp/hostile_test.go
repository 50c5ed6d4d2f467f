package genaihttp_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// A repeated reader gives head, then piece so many times, then tail.
type repeated struct {
	head, piece, tail []byte
	times             int
	rest              []byte
	started, ended    bool
}

func (r *repeated) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		switch {
		case !r.started:
			r.started, r.rest = true, r.head
		case r.times > 0:
			r.times--
			r.rest = r.piece
		case !r.ended:
			r.ended, r.rest = true, r.tail
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (*repeated) Close() error { return nil }

// Whatever a server sends passes to its reader, and what we keep of it stays within a
// fixed bound, which the test measures as all that is allocated on the way. With
// OTELGENAI_HOSTILE set the inputs have their full size: 1 GB and a million events;
// else a sixteenth of it.
func TestHostileAnswersPassAndCostABoundedAmount(t *testing.T) {
	scale := 16
	if os.Getenv("OTELGENAI_HOSTILE") != "" {
		scale = 1
	}
	const bound = 16 << 20
	block := bytes.Repeat([]byte("x"), 1<<16)
	deep := bytes.Repeat([]byte(`{"a":[`), 1<<12)
	for _, tt := range []struct {
		name, contentType string
		body              repeated
	}{
		{"a line of 1 GB", "text/event-stream", repeated{head: []byte("data: "), piece: block, times: 1 << 14 / scale}},
		{"a line of 1 GB of JSON", "text/event-stream", repeated{head: []byte(roleEvent + textEvent + `data: {"choices":[{"delta":{"content":"`), piece: block, times: 1 << 14 / scale, tail: []byte("\"}}]}\n\n" + doneEvent)}},
		{"a million tiny events", "text/event-stream", repeated{piece: []byte("data:1\n\n"), times: 1_000_000 / scale}},
		{"a million empty events", "text/event-stream", repeated{piece: []byte("data\n\n"), times: 1_000_000 / scale}},
		{"a million tokens", "text/event-stream", repeated{piece: []byte(textEvent), times: 1_000_000 / scale, tail: []byte(doneEvent)}},
		{"a million tool calls", "text/event-stream", repeated{piece: []byte(toolEvent), times: 1_000_000 / scale}},
		{"deep JSON in a stream", "text/event-stream", repeated{head: []byte("data: "), piece: deep, times: 1 << 10 / scale, tail: []byte("\n\n")}},
		{"deep JSON", "application/json", repeated{piece: deep, times: 1 << 10 / scale}},
		{"a document of 1 GB", "application/json", repeated{head: []byte(`{"a":"`), piece: block, times: 1 << 14 / scale}},
		{"invalid UTF-8", "text/event-stream", repeated{piece: []byte("data: {\"id\":\"\xff\xfe\",\"model\":\"\xc3\x28\",\"choices\":[{\"delta\":{\"content\":\"\x80\"}}]}\n\n"), times: 1000}},
		{"lines without end", "application/x-ndjson", repeated{head: []byte(`{"model":"`), piece: block, times: 1 << 14 / scale}},
		{"a message of 4 GB that is announced", "application/vnd.amazon.eventstream", repeated{piece: bytes.Repeat([]byte{0xff}, 1<<16), times: 1 << 10 / scale}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			body := tt.body
			want := int64(len(body.head) + len(body.piece)*body.times + len(body.tail))
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {tt.contentType}}, Body: &body, Request: r,
				}, nil
			})
			resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{resp.Body}, make([]byte, 32<<10))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, want, n)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(bound), "bytes allocated")
			span := o.only()
			for _, a := range span.Attributes() {
				assert.LessOrEqual(t, len(a.Value.String()), 2048, string(a.Key))
				assert.NotContains(t, a.Value.String(), "\xff")
			}
		})
	}
}
