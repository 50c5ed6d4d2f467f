package genaihttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A stream with a trailer through a gateway, over HTTP/1 and HTTP/2 on both sides: the
// bytes, the trailer and what is recorded are the same.
func TestAStreamWithATrailerOverEachVersionOfHTTP(t *testing.T) {
	const whole = roleEvent + textEvent + finishEvent + usageEvent + doneEvent
	start := func(h http.Handler, http2 bool) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = quiet
		s.EnableHTTP2 = http2
		s.StartTLS()
		return s
	}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			var proto string
			upstream := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				proto = r.Proto
				_, _ = io.Copy(io.Discard, r.Body)
				time.Sleep(time.Millisecond) // a ReverseProxy breaks where the answer outruns the request
				w.Header().Set("Trailer", "X-Checksum")
				say(w, roleEvent, textEvent)
				say(w, finishEvent, usageEvent, doneEvent)
				w.Header().Set("X-Checksum", "42")
				w.Header().Set(http.TrailerPrefix+"X-Late", "43")
			}), http2)
			defer upstream.Close()
			target, err := url.Parse(upstream.URL)
			require.NoError(t, err)
			gateway := start(genaihttp.NewReverseProxy(&httputil.ReverseProxy{
				Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
				Transport: upstream.Client().Transport, ErrorLog: quiet,
			}, o.options()...), http2)
			defer gateway.Close()
			client := gateway.Client()
			client.Transport = genaihttp.NewTransport(client.Transport, o.options()...)
			resp, err := client.Post(gateway.URL+"/v1/chat/completions", "application/json", strings.NewReader(chatRequest))
			require.NoError(t, err)
			got, err := readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, name, proto)
			assert.Equal(t, name, resp.Proto)
			assert.Equal(t, whole, got)
			assert.Equal(t, "42", resp.Trailer.Get("X-Checksum"))
			assert.Equal(t, "43", resp.Trailer.Get("X-Late"))
			require.Eventually(t, func() bool { return o.ended.Load() == 3 }, 10*time.Second, time.Millisecond)
			told := 0
			for _, span := range o.spans.Ended() {
				checkEnding(t, span, "done", "")
				attrs := attributes(span)
				assert.EqualValues(t, 4, attrs[semconv.GenAIChunkCountKey])
				assert.Contains(t, attrs, semconv.LLMTTFTMsKey)
				if _, ok := attrs[genaiconv.UsageInputTokensKey]; ok {
					told++
				}
			}
			assert.Equal(t, 1, told, "the usage is told by the outermost call alone")
			client.CloseIdleConnections()
		})
	}
}
