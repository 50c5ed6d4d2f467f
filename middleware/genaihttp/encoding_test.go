package genaihttp_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A compressor is what servers compress answers with.
type compressor interface {
	io.WriteCloser
	Flush() error
}

var compressors = map[string]func(io.Writer) compressor{
	"gzip":        func(w io.Writer) compressor { return gzip.NewWriter(w) },
	"deflate":     func(w io.Writer) compressor { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) compressor { z, _ := flate.NewWriter(w, 6); return z },
}

// encodings are what the caller asks for itself, with the header of the answer and
// a compressor for it.
func encodings(t *testing.T, check func(t *testing.T, header string, compress func(io.Writer) compressor)) {
	t.Helper()
	for name, compress := range compressors {
		t.Run(name, func(t *testing.T) { check(t, strings.TrimPrefix(name, "raw "), compress) })
	}
}

// compressed serves events, each after 10 ms.
func compressed(header string, compress func(io.Writer) compressor, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", header)
		z := compress(w)
		for _, e := range events {
			time.Sleep(10 * time.Millisecond)
			_, _ = io.WriteString(z, e)
			_ = z.Flush()
			_ = http.NewResponseController(w).Flush()
		}
		_ = z.Close()
	}
}

// A stream whose encoding the caller asked for is read from a copy, token by token;
// the caller gets what the server sent.
func TestAnEncodedStreamIsReadFromADecodedCopy(t *testing.T) {
	events := []string{roleEvent, textEvent, textEvent, finishEvent, usageEvent, doneEvent}
	encodings(t, func(t *testing.T, header string, compress func(io.Writer) compressor) {
		for _, asked := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				base, stop := serve(compressed(header, compress, events...))
				defer stop()
				base.DisableCompression = false
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine/v1/chat/completions", strings.NewReader(chatRequest))
				require.NoError(t, err)
				if asked {
					req.Header.Set("Accept-Encoding", header)
				}
				resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				resp.Body.Close()
				if asked || header != "gzip" { // else Go's transport decodes it
					var want bytes.Buffer
					z := compress(&want)
					for _, e := range events {
						_, _ = io.WriteString(z, e)
						_ = z.Flush()
					}
					_ = z.Close()
					assert.Equal(t, want.Bytes(), got)
				} else {
					assert.Equal(t, strings.Join(events, ""), string(got))
				}
				span := o.only()
				checkEnding(t, span, "done", "")
				attrs := attributes(span)
				assert.Equal(t, 20.0, attrs[semconv.LLMTTFTMsKey])
				assert.EqualValues(t, 5, attrs[semconv.GenAIChunkCountKey])
				assert.EqualValues(t, 19, attrs[genaiconv.UsageInputTokensKey])
			})
		}
	})
}

// The same through a proxy, whose client asks for the encoding, and where the
// gateway compresses by itself.
func TestAnEncodedStreamThroughAGateway(t *testing.T) {
	events := []string{roleEvent, textEvent, finishEvent, usageEvent, doneEvent}
	encodings(t, func(t *testing.T, header string, compress func(io.Writer) compressor) {
		for name, gateway := range map[string]func(o *telemetry, base http.RoundTripper) http.Handler{
			"proxied": func(o *telemetry, base http.RoundTripper) http.Handler {
				return genaihttp.NewReverseProxy(toEngine(base), o.options()...)
			},
			"compressed by the gateway": func(o *telemetry, _ http.RoundTripper) http.Handler {
				return genaihttp.NewHandler(compressed(header, compress, events...), o.options()...)
			},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := newTelemetry(t)
					upstream, stopUpstream := serve(compressed(header, compress, events...))
					defer stopUpstream()
					front, stop := serve(gateway(o, upstream))
					defer stop()
					resp, err := post(t.Context(), &http.Client{Transport: front})
					require.NoError(t, err)
					assert.Equal(t, header, resp.Header.Get("Content-Encoding"))
					_, err = readAll(resp)
					require.NoError(t, err)
					resp.Body.Close()
					synctest.Wait()
					for _, span := range o.spans.Ended() {
						checkEnding(t, span, "done", "")
						assert.Equal(t, 20.0, attributes(span)[semconv.LLMTTFTMsKey], span.Name())
					}
				})
			})
		}
	})
}

// A stream that is cut, left or broken in its encoding ends its span all the same,
// and its decoder with it: goleak looks after the tests.
func TestTheDecoderEndsWithTheBody(t *testing.T) {
	read := func(t *testing.T, body []byte, use func(*http.Response)) *telemetry {
		t.Helper()
		o := newTelemetry(t)
		base := answersWith("gzip", body)
		resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
		require.NoError(t, err)
		use(resp)
		resp.Body.Close()
		return o
	}
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	_, _ = io.WriteString(z, roleEvent+textEvent)
	_ = z.Flush()
	half := whole.Len()
	_, _ = io.WriteString(z, finishEvent+doneEvent)
	require.NoError(t, z.Close())
	all := func(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body) }
	damaged := bytes.Clone(whole.Bytes())
	damaged[half+2] ^= 0xff

	t.Run("whole", func(t *testing.T) { checkEnding(t, read(t, whole.Bytes(), all).only(), "done", "") })
	t.Run("closed unread", func(t *testing.T) {
		checkEnding(t, read(t, whole.Bytes(), func(*http.Response) {}).only(), "client_cancelled", "")
	})
	t.Run("closed after the first token", func(t *testing.T) {
		o := read(t, whole.Bytes(), func(resp *http.Response) { _, _ = io.CopyN(io.Discard, resp.Body, int64(half)) })
		checkEnding(t, o.only(), "client_cancelled", "")
		assert.Contains(t, attributes(o.only()), semconv.LLMTTFTMsKey)
	})
	t.Run("cut", func(t *testing.T) {
		checkEnding(t, read(t, whole.Bytes()[:half], all).only(), "truncated", "stream_truncated")
	})
	t.Run("damaged", func(t *testing.T) { // that its end was not found is no sign of a failure
		o := read(t, damaged, all)
		checkEnding(t, o.only(), "eof", "")
		assert.Contains(t, attributes(o.only()), semconv.LLMTTFTMsKey)
	})
	t.Run("in two members, the first of which is all there is for a while", func(t *testing.T) {
		var first, second bytes.Buffer
		for b, text := range map[*bytes.Buffer]string{&first: roleEvent + textEvent, &second: finishEvent + doneEvent} {
			z := gzip.NewWriter(b)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
		}
		o := read(t, first.Bytes(), func(resp *http.Response) { _, _ = io.CopyN(io.Discard, resp.Body, int64(first.Len())) })
		checkEnding(t, o.only(), "client_cancelled", "")
		assert.Contains(t, attributes(o.only()), semconv.LLMTTFTMsKey, "before anything follows")
		checkEnding(t, read(t, append(first.Bytes(), second.Bytes()...), all).only(), "done", "")
	})
	t.Run("not what it says", func(t *testing.T) { checkEnding(t, read(t, []byte(roleEvent+textEvent), all).only(), "", "") })
	t.Run("empty", func(t *testing.T) { checkEnding(t, read(t, nil, all).only(), "eof", "") })
}

func answersWith(encoding string, body []byte) baseTransport {
	return func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return &http.Response{
			StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
			Header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {encoding}},
		}, nil
	}
}

// Base64 stands for an encoding that the standard library has no decoder for.
func TestADecoderOfOnesOwn(t *testing.T) {
	body := base64.StdEncoding.EncodeToString([]byte(roleEvent + textEvent + finishEvent + doneEvent))
	for name, tt := range map[string]struct {
		decoder  func(io.Reader) io.Reader
		terminal semconv.GenAIStreamTerminalAttr
	}{
		"that works":         {func(r io.Reader) io.Reader { return base64.NewDecoder(base64.StdEncoding, r) }, "done"},
		"that panics":        {func(io.Reader) io.Reader { panic("secret") }, ""},
		"that returns nil":   {func(io.Reader) io.Reader { return nil }, ""},
		"that gives nothing": {func(io.Reader) io.Reader { return emptyReader{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			opts := append(o.options(), genaihttp.WithDecoder("BR", tt.decoder))
			resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(answersWith("br", []byte(body)), opts...)})
			require.NoError(t, err)
			got, err := readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, body, got)
			checkEnding(t, o.only(), tt.terminal, "")
		})
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

// What is decoded of a bomb is bounded, and so is what is kept of that.
func TestABombIsPassedOnAndNotDecoded(t *testing.T) {
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestCompression)
	_, _ = io.WriteString(z, roleEvent+textEvent)
	_ = z.Flush()
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	for range 64 {
		_, _ = z.Write(zeros)
	}
	require.NoError(t, z.Close())

	o := newTelemetry(t)
	resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(answersWith("gzip", bomb.Bytes()), o.options()...)})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, resp.Body)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	resp.Body.Close()
	assert.EqualValues(t, bomb.Len(), n)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), "of 64 MiB")
	checkEnding(t, o.only(), "eof", "")
	assert.Contains(t, attributes(o.only()), semconv.LLMTTFTMsKey)
}
