package genaihttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// tokenAt is how often the replays of TestStreamTruth write a token.
const tokenAt = 10 * time.Millisecond

// A truth is one row of TestStreamTruth: what a server does, how its client uses
// it, and what is true of it. The time of the first token is the server's own.
type truth struct {
	name   string
	server func(s *script)
	use    func(cancel context.CancelFunc, resp *http.Response)
	gzip   bool // the client asks for it itself
	ttft   bool // there is a first token
	failed bool // it is the server's failure
}

// A script writes a stream, and notes when its first token left.
type script struct {
	http.ResponseWriter

	gone  <-chan struct{}
	first atomic.Int64 // unix nanoseconds, just before the write
	end   string       // of a line
	zip   *gzip.Writer
}

func (s *script) send(events ...string) {
	for _, e := range events {
		e = strings.ReplaceAll(e, "\n", s.end)
		if strings.Contains(e, `"hi"`) {
			s.first.CompareAndSwap(0, time.Now().UnixNano())
		}
		if s.zip != nil {
			_, _ = io.WriteString(s.zip, e)
			_ = s.zip.Flush()
		} else {
			_, _ = io.WriteString(s.ResponseWriter, e)
		}
	}
	_ = http.NewResponseController(s.ResponseWriter).Flush()
}

func (s *script) token() {
	time.Sleep(tokenAt)
	s.send(textEvent)
}

// usual is a role chunk, 30 ms of nothing, and tokens.
func (s *script) usual() {
	s.send(roleEvent)
	time.Sleep(2 * tokenAt)
	for range 5 {
		s.token()
	}
}

func (s *script) finish() { s.send(finishEvent, usageEvent, doneEvent) }

var toolEvent = `data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"hi","arguments":""}}]}}]}` + "\n\n"

func truths() []truth {
	whole := func(s *script) { s.usual(); s.finish() }
	hang := func(s *script) { s.usual(); <-s.gone }
	framed := func(end, before string) func(*script) {
		return func(s *script) {
			s.end = end
			s.send(before)
			whole(s)
		}
	}
	leave := func(_ context.CancelFunc, resp *http.Response) {
		_, _ = io.CopyN(io.Discard, resp.Body, int64(len(roleEvent+textEvent)))
		resp.Body.Close()
	}
	return []truth{
		{name: "normal", server: whole, ttft: true},
		{name: "late headers", server: func(s *script) { time.Sleep(3 * tokenAt); whole(s) }, ttft: true},
		{name: "early close", server: hang, use: leave, ttft: true},
		{name: "cancel", server: hang, ttft: true, use: func(cancel context.CancelFunc, resp *http.Response) {
			_, _ = io.CopyN(io.Discard, resp.Body, int64(len(roleEvent+textEvent)))
			cancel()
			_, _ = io.Copy(io.Discard, resp.Body)
		}},
		{name: "abandon", server: hang, ttft: true, use: func(cancel context.CancelFunc, resp *http.Response) {
			_, _ = io.CopyN(io.Discard, resp.Body, int64(len(roleEvent+textEvent)))
			time.AfterFunc(5*tokenAt, cancel) // and nobody reads or closes
		}},
		{name: "burst then close", ttft: true, use: leave, server: func(s *script) {
			s.send(roleEvent)
			for range 40 {
				s.send(textEvent)
			}
			<-s.gone
		}},
		{name: "server drop", server: func(s *script) { s.usual(); panic(http.ErrAbortHandler) }, ttft: true, failed: true},
		{name: "clean cut", server: func(s *script) { s.usual() }, ttft: true, failed: true},
		{name: "error object", server: func(s *script) { s.usual(); s.send(errorEvent) }, ttft: true, failed: true},
		{name: "error object, then the end mark", server: func(s *script) { s.usual(); s.send(errorEvent, doneEvent) }, ttft: true, failed: true},
		{name: "429", server: func(s *script) { tooMany(s.ResponseWriter, nil) }, failed: true},
		{name: "502", server: func(s *script) { s.WriteHeader(http.StatusBadGateway) }, failed: true},
		{name: "no end mark", server: func(s *script) { s.usual(); s.send(finishEvent) }, ttft: true},
		{name: "gzip, the transport's", server: func(s *script) { s.zip = gzip.NewWriter(s); whole(s); s.zip.Close() }, ttft: true},
		{name: "gzip, the caller's", server: func(s *script) { s.zip = gzip.NewWriter(s); whole(s); s.zip.Close() }, gzip: true, ttft: true},
		{name: "CRLF", server: framed("\r\n", ""), ttft: true},
		{name: "CR", server: framed("\r", ""), ttft: true},
		{name: "BOM", server: framed("\n", "\ufeff"), ttft: true},
		{name: "heartbeats", server: func(s *script) { s.send(": ping\n\n", ": ping\n\n"); whole(s) }, ttft: true},
		{name: "a tool call", server: func(s *script) { s.send(roleEvent); time.Sleep(tokenAt); s.send(toolEvent); s.finish() }, ttft: true},
	}
}

// bounds are what the time of a first token must lie between, however slow the
// machine is: when the server began to write it and when the client had read it.
type bounds struct{ written, read time.Time }

// A timedBody notes when which part of a body was read.
type timedBody struct {
	io.ReadCloser

	got   []byte
	reads []struct {
		upTo int
		at   time.Time
	}
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.got = append(b.got, p[:n]...)
	b.reads = append(b.reads, struct {
		upTo int
		at   time.Time
	}{len(b.got), time.Now()})
	return n, err
}

// when is when the first n bytes had been read.
func (b *timedBody) when(n int) time.Time {
	for _, r := range b.reads {
		if r.upTo >= n {
			return r.at
		}
	}
	return time.Now()
}

// firstToken is how much of the body there is up to the end of its first token.
func (b *timedBody) firstToken() int {
	text := b.got
	var n int
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		for n = range len(b.got) { // the shortest prefix that holds it
			r, err := gzip.NewReader(bytes.NewReader(b.got[:n]))
			if err != nil {
				continue
			}
			if text, _ = io.ReadAll(r); bytes.Contains(text, []byte(`"hi"`)) {
				return n + len("flushed")
			}
		}
	}
	start := bytes.Index(text, []byte(`"hi"`))
	end := bytes.Index(text[max(start, 0):], []byte("data:"))
	if end < 0 {
		return len(text)
	}
	return start + end
}

// The rows of peer comparisons over real connections: the time to first token of
// each lies between the server's write and the client's read, each failure is marked
// and nothing else, and each span ends. Beside those all fixtures, ten times as fast.
func TestStreamTruth(t *testing.T) {
	type score struct{ right, wrong, marked, missed, benign, wronglyMarked, unended atomic.Int32 }
	var total score
	judge := func(t *testing.T, o *telemetry, b bounds, has, failed bool) {
		t.Helper()
		if o.started.Load() != o.ended.Load() || o.ended.Load() == 0 {
			total.unended.Add(1)
			t.Errorf("%d spans started, %d ended", o.started.Load(), o.ended.Load())
			return
		}
		ended := o.spans.Ended()
		span := ended[len(ended)-1]
		got, ok := attributes(span)[semconv.LLMTTFTMsKey].(float64)
		first := span.StartTime()
		for _, e := range span.Events() { // whose time has the call's own start
			first = e.Time
			assert.Equal(t, got, e.Attributes[0].Value.AsFloat64())
		}
		switch {
		case ok != has, ok && (first.Before(b.written) || first.After(b.read)):
			total.wrong.Add(1)
			t.Errorf("TTFT %v ms (there: %v), outside of [%v, %v]", got, ok, b.written.Sub(span.StartTime()), b.read.Sub(span.StartTime()))
		case has:
			total.right.Add(1)
		}
		isFailure := span.Status().Code == codes.Error
		switch {
		case failed && isFailure:
			total.marked.Add(1)
		case failed:
			total.missed.Add(1)
			t.Error("failure not marked")
		case isFailure:
			total.wronglyMarked.Add(1)
			t.Error("marked as a failure")
		default:
			total.benign.Add(1)
		}
	}
	for _, row := range truths() {
		t.Run(row.name, func(t *testing.T) {
			o, b := play(t, row)
			judge(t, o, b, row.ttft, row.failed)
		})
	}
	for _, f := range loadFixtures(t) {
		t.Run("fixture "+f.Name, func(t *testing.T) {
			o, b := replayOverLoopback(t, &f)
			failed := f.Expect.Terminal == "error" || f.Expect.Terminal == "truncated" || f.Expect.Terminal == "http_error"
			judge(t, o, b, f.Expect.FirstTokenMs != nil, failed)
		})
	}
	t.Logf("TTFT right %d of %d, failures marked %d of %d, benign marked %d of %d, never ended %d",
		total.right.Load(), total.right.Load()+total.wrong.Load(), total.marked.Load(), total.marked.Load()+total.missed.Load(),
		total.wronglyMarked.Load(), total.wronglyMarked.Load()+total.benign.Load(), total.unended.Load())
}

// play runs a row over a loopback connection and returns what was recorded, and
// when its first token passed.
func play(t *testing.T, row truth) (*telemetry, bounds) {
	t.Helper()
	o := newTelemetry(t)
	var s *script
	var done sync.WaitGroup
	done.Add(1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer done.Done()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.HasPrefix(row.name, "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		s = &script{ResponseWriter: w, gone: r.Context().Done(), end: "\n"}
		row.server(s)
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(chatRequest))
	require.NoError(t, err)
	if row.gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
	require.NoError(t, err)
	timed := &timedBody{ReadCloser: resp.Body}
	resp.Body = timed
	if row.use != nil {
		row.use(cancel, resp)
		require.Eventually(t, func() bool { return o.ended.Load() == 1 }, 10*time.Second, time.Millisecond, "span never ended")
	} else {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	cancel()
	resp.Body.Close()
	done.Wait()
	if first := s.first.Load(); first > 0 {
		return o, bounds{time.Unix(0, first), timed.when(timed.firstToken())}
	}
	return o, bounds{}
}

// replayOverLoopback plays a fixture over a loopback connection, ten times as fast.
func replayOverLoopback(t *testing.T, f *fixture) (*telemetry, bounds) {
	t.Helper()
	o := newTelemetry(t)
	var b bounds
	fast := *f
	fast.Writes = slices.Clone(f.Writes)
	begin, token := -1, 0 // of the writes at the time of the first token
	for i, w := range f.Writes {
		fast.Writes[i].AtMs = w.AtMs / 10
		if f.Expect.FirstTokenMs == nil || float64(w.AtMs) != *f.Expect.FirstTokenMs {
			continue
		}
		if token = w.End; begin < 0 {
			begin = 0
			if i > 0 {
				begin = f.Writes[i-1].End
			}
		}
		if f.Headers["Content-Encoding"] != "" {
			token = len(f.body) // it was not flushed
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fast.ServeHTTP(&tokenWatch{ResponseWriter: w, from: begin, at: &b.written}, r)
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	defer server.Close()
	base := &http.Transport{DisableCompression: true}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
	resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(chatRequest))
	require.NoError(t, err)
	timed := &timedBody{ReadCloser: resp.Body}
	_, _ = io.Copy(io.Discard, timed)
	resp.Body.Close()
	assert.True(t, bytes.Equal(f.body, timed.got), "the caller's bytes")
	b.read = timed.when(token)
	return o, b
}

// A tokenWatch notes when the write begins that stands at an offset.
type tokenWatch struct {
	http.ResponseWriter

	from, written int
	at            *time.Time
}

func (w *tokenWatch) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *tokenWatch) Write(p []byte) (int, error) {
	if w.written <= w.from {
		*w.at = time.Now()
	}
	w.written += len(p)
	return w.ResponseWriter.Write(p)
}
