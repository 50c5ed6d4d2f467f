package integration_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// service is a gateway with an engine behind it, over HTTP on loopback, and its client.
type service struct {
	gateway *httptest.Server
	engine  *httptest.Server
	client  *http.Client
}

func startService(t *testing.T, tp trace.TracerProvider, mp metric.MeterProvider) *service {
	t.Helper()
	opts := []genaihttp.Option{genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(mp), genaihttp.WithTraceResponse()}
	tracer := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
	s := &service{client: &http.Client{}}
	s.engine = httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = answer(r.Context(), tracer, w, r.Header.Get("X-Question"))
	}), opts...))
	transport := genaihttp.NewTransport(http.DefaultTransport.(*http.Transport).Clone(), opts...)
	s.gateway = httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		out.URL.Scheme, out.URL.Host = "http", strings.TrimPrefix(s.engine.URL, "http://")
		resp, err := transport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(flushing{w}, resp.Body)
	}), opts...))
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.gateway.Close()
		s.engine.Close()
	})
	return s
}

// flushing passes on what it gets at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

// times is how long the engine takes over a question, beside what it must.
var times = map[string]struct{ queue, prefill, token, stall time.Duration }{
	"slow":       {prefill: 300 * time.Millisecond},
	"overloaded": {queue: 1200 * time.Millisecond, prefill: 1500 * time.Millisecond, token: 10 * time.Millisecond, stall: 1100 * time.Millisecond},
}

// answer is the engine: "slow" takes a while to its first token, "fail" breaks off, and
// "overloaded" queues for long, runs in a batch, stalls between tokens and miscounts.
func answer(ctx context.Context, tracer *genaitrace.Tracer, w http.ResponseWriter, question string) (err error) {
	ctx, inf := tracer.StartInference(ctx, genaitrace.Request{Provider: "vllm", Model: "m-1", ModelVersion: "7", Stream: true})
	defer inf.EndErr(&err)
	waits := times[question]
	_, queue := inf.StartQueue(ctx)
	time.Sleep(time.Millisecond + waits.queue)
	queue.End()
	if question == "overloaded" {
		_, batch := tracer.StartBatch(ctx, genaitrace.BatchFacts{Model: "m-1", Size: 3})
		batch.Join(inf)
		defer batch.End()
		inf.SetUsage(genaitrace.Usage{OutputTokens: new(-1)})
	}
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 120, Cached: new(16)})
	time.Sleep(waits.prefill)
	prefill.End()
	w.Header().Set("Content-Type", "text/event-stream")
	if question == "fail" {
		w.WriteHeader(http.StatusInternalServerError)
		return fmt.Errorf("device lost")
	}
	_, decode := inf.StartDecode(ctx)
	for i := range 5 {
		time.Sleep(waits.token)
		if i == 4 {
			time.Sleep(waits.stall)
		}
		if _, err := io.WriteString(flushing{w}, `data: {"model":"m-1","choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n"); err != nil {
			return err
		}
		decode.Token()
	}
	decode.End()
	inf.SetUsage(genaitrace.Usage{InputTokens: new(120), OutputTokens: new(5), CachedTokens: new(16)})
	inf.SetFinish("stop")
	_, err = io.WriteString(w, `data: {"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
		`data: {"model":"m-1","choices":[],"usage":{"prompt_tokens":120,"completion_tokens":5}}`+"\n\ndata: [DONE]\n\n")
	return err
}

// ask sends one question and reads the answer to its end.
func (s *service) ask(t *testing.T, question string) {
	t.Helper()
	resp := s.send(t, t.Context(), question)
	defer resp.Body.Close()
	_, err := io.Copy(io.Discard, resp.Body)
	assert.NoError(t, err)
}

// send sends one question.
func (s *service) send(t *testing.T, ctx context.Context, question string) *http.Response {
	t.Helper()
	body := strings.NewReader(`{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.gateway.URL+"/v1/chat/completions", body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Question", question)
	resp, err := s.client.Do(req)
	require.NoError(t, err)
	return resp
}
