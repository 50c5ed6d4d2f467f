package genaihttp_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// BenchmarkProxySSE is a stream of 500 chunks through httputil.ReverseProxy over
// loopback, eight at a time and as fast as they go: what a gateway passes at
// saturation (MB/s), beside a plain proxy in the same run. delay-µs/chunk is
// how long a chunk of a slow stream takes from the server's write to the client's
// read, in the median; what we add is the difference.
func BenchmarkProxySSE(b *testing.B) {
	events := benchEvents()
	size := 0
	for _, e := range events {
		size += len(e)
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(time.Millisecond) // a plain proxy breaks where the answer outruns the request
		w.Header().Set("Content-Type", "text/event-stream")
		flush := w.(http.Flusher).Flush
		if r.URL.Query().Has("slow") {
			sayTheTime(w, flush)
			return
		}
		for _, e := range events {
			_, _ = w.Write(e)
			flush()
		}
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		b.Fatal(err)
	}
	base := &http.Transport{MaxIdleConnsPerHost: 64}
	defer base.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: base, ErrorLog: quiet}
	tp, mp := benchProviders(sdktrace.AlwaysSample())
	ours := genaihttp.NewReverseProxy(proxy, genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(mp))
	for _, gateway := range []struct {
		name string
		http.Handler
	}{{"plain", proxy}, {"otelgenai", ours}} {
		b.Run(gateway.name, func(b *testing.B) {
			server := httptest.NewServer(gateway.Handler)
			defer server.Close()
			client := &http.Transport{MaxIdleConnsPerHost: 64}
			defer client.CloseIdleConnections()
			const parallel = 8
			b.SetBytes(int64(parallel * size))
			b.ReportAllocs()
			for b.Loop() {
				var streams sync.WaitGroup
				for range parallel {
					streams.Go(func() { readStream(b, client, server.URL, make([]byte, 32<<10)) })
				}
				streams.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parallel/chunks, "ns/chunk")
			b.ReportMetric(float64(delay(b, client, server.URL).Nanoseconds())/1e3, "delay-µs/chunk")
		})
	}
}

// sayTheTime writes 200 chunks, one a millisecond, each with the time at which it
// is written.
func sayTheTime(w io.Writer, flush func()) {
	for range 200 {
		time.Sleep(time.Millisecond)
		var now [8]byte
		binary.BigEndian.PutUint64(now[:], uint64(time.Now().UnixNano()))
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"`+hex.EncodeToString(now[:])+`"}}]}`+"\n\n")
		flush()
	}
	_, _ = io.WriteString(w, doneEvent)
}

// delay is the median delay of a chunk through a gateway.
func delay(b *testing.B, client http.RoundTripper, gateway string) time.Duration {
	b.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, gateway+"/v1/chat/completions?slow", strings.NewReader(chatRequest))
	if err != nil {
		b.Fatal(err)
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var all []time.Duration
	p := make([]byte, 4<<10)
	for err == nil {
		var n int
		n, err = resp.Body.Read(p)
		_, text, ok := strings.Cut(string(p[:n]), `"content":"`)
		if !ok || len(text) < 16 {
			continue
		}
		if then, err := hex.DecodeString(text[:16]); err == nil {
			all = append(all, time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(then)))))
		}
	}
	if len(all) == 0 {
		b.Fatal("no chunk came")
	}
	slices.Sort(all)
	return all[len(all)/2]
}
