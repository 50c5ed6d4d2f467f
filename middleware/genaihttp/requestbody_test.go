package genaihttp_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// rewound is a request as several clients make it: GetBody rewinds the very
// reader that is sent, instead of making another.
func rewound(t *testing.T, text string, length int64) (req *http.Request, rewinds *atomic.Int32) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine.internal/v1/chat/completions", nil)
	require.NoError(t, err)
	reader, rewinds := bytes.NewReader([]byte(text)), new(atomic.Int32)
	req.Body, req.ContentLength = io.NopCloser(reader), length
	req.GetBody = func() (io.ReadCloser, error) {
		rewinds.Add(1)
		_, err := reader.Seek(0, io.SeekStart)
		return io.NopCloser(reader), err
	}
	return req, rewinds
}

// A startSampler samples everything, and notes what it was shown.
type startSampler struct{ attributesSampler }

func (s *startSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.attributesSampler.ShouldSample(p)
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

// sampled returns the options of o with a sampler that notes starts.
func (o *telemetry) sampled() ([]genaihttp.Option, *startSampler) {
	s := &startSampler{}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithSpanProcessor(o.spans), sdktrace.WithSpanProcessor(o))
	return append(o.options(), genaihttp.WithTracerProvider(tp)), s
}

// padded is a request of n bytes that names its model first.
func padded(n int) string {
	const head, tail = `{"model":"gpt-fx","stream":true,"pad":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func TestABodyThatItsClientRewindsArrivesWhole(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		chunked    bool
	}{
		{"with its length", chatRequest, false},
		{"chunked", chatRequest, true},
		{"one byte less than is read ahead", padded(64<<10 - 1), false},
		{"as long as is read ahead", padded(64 << 10), false},
		{"as long as is read ahead, chunked", padded(64 << 10), true},
		{"one byte more than is read ahead", padded(64<<10 + 1), false},
		{"longer than is read ahead", padded(300 << 10), false},
		{"longer than is read ahead, chunked", padded(300 << 10), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			opts, sampler := o.sampled()
			received, lengths := make(chan string, 1), make(chan int64, 1)
			base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				received <- string(b)
				lengths <- r.ContentLength
				say(w, textEvent, finishEvent, doneEvent)
			}))
			defer stop()
			length := int64(len(tt.text))
			if tt.chunked {
				length = -1
			}
			req, rewinds := rewound(t, tt.text, length)
			resp, err := genaihttp.NewTransport(base, opts...).RoundTrip(req)
			require.NoError(t, err)
			_, err = readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()

			assert.Equal(t, tt.text, <-received)
			assert.Equal(t, length, <-lengths)
			assert.Zero(t, rewinds.Load(), "GetBody is the client's")
			assert.Equal(t, "chat gpt-fx", o.only().Name())
			assert.Equal(t, "chat gpt-fx", sampler.name)
			assert.Contains(t, sampler.attributes, genaiconv.RequestModel("gpt-fx"))
		})
	}
}

// A brokenBody gives its text and then fails.
type brokenBody struct {
	io.Reader

	err error
}

func (b brokenBody) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, b.err
}

func (brokenBody) Close() error { return nil }

// Whoever sends the body learns that it broke, as without us: it must not look
// like the end of a shorter one.
func TestABodyThatBreaksWhileItIsReadAheadBreaksTheRequest(t *testing.T) {
	boom := errors.New("boom")
	const text = `{"model":"gpt-fx","stream":true,"mess`
	for _, tt := range []struct {
		name string
		err  error
		body string
	}{
		{"error", boom, text},
		{"cut short", io.ErrUnexpectedEOF, text},
		{"error at once", boom, ""},
		{"error where reading ahead ends", boom, padded(64 << 10)},
		{"error behind what is read ahead", boom, padded(100 << 10)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			opts, sampler := o.sampled()
			var sent []byte
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				var err error
				sent, err = io.ReadAll(r.Body)
				if err == nil {
					return answers(200, "application/json", answer)(r)
				}
				return nil, err
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine/v1/chat/completions", nil)
			require.NoError(t, err)
			body := func() (io.ReadCloser, error) { return brokenBody{strings.NewReader(tt.body), tt.err}, nil }
			req.Body, _ = body()
			req.ContentLength, req.GetBody = -1, body
			_, err = genaihttp.NewTransport(base, opts...).RoundTrip(req)
			assert.Equal(t, tt.err, err)
			assert.Equal(t, tt.body, string(sent))

			span := o.only()
			assert.Equal(t, codes.Error, span.Status().Code)
			if tt.body != "" {
				assert.Equal(t, "chat gpt-fx", span.Name())
				assert.Equal(t, "chat gpt-fx", sampler.name)
			}
		})
	}
}

// net/http sends a request again, with GetBody, where a connection that it kept
// turns out to be closed.
func TestTheTransportBelowCanStillRewindTheBody(t *testing.T) {
	for name, text := range map[string]string{"short": chatRequest, "longer than is read ahead": padded(200 << 10)} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			var requests atomic.Int32
			received := make(chan string, 3)
			base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				received <- string(b)
				if requests.Add(1) == 2 {
					panic(http.ErrAbortHandler) // nothing was answered: the connection was stale
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			defer stop()
			rt := genaihttp.NewTransport(base, o.options()...)
			for i := range 2 {
				req, rewinds := rewound(t, text, int64(len(text)))
				req.Header.Set("Idempotency-Key", "k1") // what lets net/http send a POST again
				resp, err := rt.RoundTrip(req)
				require.NoError(t, err)
				got, err := readAll(resp)
				require.NoError(t, err)
				resp.Body.Close()
				assert.Equal(t, answer, got)
				assert.EqualValues(t, i, rewinds.Load())
			}
			require.EqualValues(t, 3, requests.Load())
			for range 3 {
				assert.Equal(t, text, <-received)
			}
			require.EqualValues(t, 2, o.ended.Load(), "one span a round trip")
			for _, span := range o.spans.Ended() {
				assert.Equal(t, "chat gpt-fx", span.Name())
				checkEnding(t, span, "", "")
			}
		})
	}
}

// A server closes its request's body when the answer begins, and says so to who reads
// on. The transport of net/http asks once more after the end of a body.
func TestTheEndOfABodyStaysItsEnd(t *testing.T) {
	o := newTelemetry(t)
	body := &serverBody{Reader: strings.NewReader(`{"model":"gpt-fx"}`)}
	base := baseTransport(func(r *http.Request) (*http.Response, error) {
		all, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		assert.Equal(t, `{"model":"gpt-fx"}`, string(all))
		body.closed = true
		n, err := r.Body.Read(make([]byte, 1))
		assert.Zero(t, n)
		assert.Equal(t, io.EOF, err)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine.internal/v1/chat/completions", body)
	require.NoError(t, err)
	resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "chat gpt-fx", o.only().Name())
}

// A serverBody is what a server hands to its handler.
type serverBody struct {
	io.Reader
	closed bool
}

func (b *serverBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.Reader.Read(p)
}

func (b *serverBody) Close() error { return nil }
