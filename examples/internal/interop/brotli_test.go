package interop

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// A stream in Brotli, which the client of a gateway asked for, is read from a copy.
func TestABrotliStreamThroughAGateway(t *testing.T) {
	r := newRecording()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "br")
		z := brotli.NewWriter(w)
		for event := range strings.SplitAfterSeq(stream, "\n\n") {
			_, _ = io.WriteString(z, event)
			_ = z.Flush()
			_ = http.NewResponseController(w).Flush()
		}
		_ = z.Close()
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	gateway := httptest.NewServer(genaihttp.NewReverseProxy(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: base,
	}, append(r.ours(), genaihttp.WithDecoder("br", func(encoded io.Reader) io.Reader { return brotli.NewReader(encoded) }))...))
	defer gateway.Close()

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway.URL+"/v1/chat/completions", strings.NewReader(request))
	require.NoError(t, err)
	req.Header.Set("Accept-Encoding", "br")
	resp, err := gateway.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(brotli.NewReader(resp.Body))
	require.NoError(t, err)
	assert.Equal(t, stream, string(body))
	for name, span := range r.ended(t, 2) {
		got := attributes(span)
		assert.EqualValues(t, "done", got[semconv.GenAIStreamTerminalKey], name)
		assert.EqualValues(t, 3, got[semconv.GenAIChunkCountKey], name)
		assert.Contains(t, got, semconv.LLMTTFTMsKey, name)
	}
}
