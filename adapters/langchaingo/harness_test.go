package genailangchain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"go.opentelemetry.io/otel/codes"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A recording is all that a test recorded.
type recording struct {
	*genaitrace.Tracer

	spans  *tracetest.SpanRecorder
	tp     *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	mp     *sdkmetric.MeterProvider
	logs   *logs
}

func record(opts ...genaitrace.Option) *recording {
	r := &recording{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(), logs: &logs{}}
	r.tp = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	lp := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(r.logs)))
	r.Tracer = genaitrace.New(append([]genaitrace.Option{
		genaitrace.WithTracerProvider(r.tp), genaitrace.WithMeterProvider(r.mp), genaitrace.WithLoggerProvider(lp),
	}, opts...)...)
	return r
}

// logs keeps log records.
type logs struct {
	mu  sync.Mutex
	all []sdklog.Record
}

func (l *logs) Export(_ context.Context, records []sdklog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		l.all = append(l.all, r.Clone())
	}
	return nil
}

func (l *logs) Shutdown(context.Context) error   { return nil }
func (l *logs) ForceFlush(context.Context) error { return nil }

// transport is genaihttp's, recording to the same place.
func (r *recording) transport() *http.Client {
	return &http.Client{Transport: genaihttp.NewTransport(&http.Transport{DisableKeepAlives: true},
		genaihttp.WithTracerProvider(r.tp), genaihttp.WithMeterProvider(r.mp))}
}

func plainClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// tree draws the ended spans: each below its parent, in the order of their starts, with
// those of the attributes that it has.
func (r *recording) tree(attributes ...string) string {
	ended := r.spans.Ended()
	slices.SortStableFunc(ended, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	known := map[trace.SpanID]bool{}
	for _, s := range ended {
		known[s.SpanContext().SpanID()] = true
	}
	var b strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		for _, s := range ended {
			if above := s.Parent().SpanID(); above == parent || !parent.IsValid() && !known[above] {
				b.WriteString(indent + line(s, attributes) + "\n")
				draw(s.SpanContext().SpanID(), indent+"  ")
			}
		}
	}
	draw(trace.SpanID{}, "")
	return b.String()
}

func line(s sdktrace.ReadOnlySpan, attributes []string) string {
	out := fmt.Sprintf("%s (%s", s.Name(), s.SpanKind())
	if s.Status().Code == codes.Error {
		out += ", error"
	}
	out += ")"
	for _, key := range attributes {
		if v := attributeOf(s, key); v != nil {
			out += fmt.Sprintf(" %s=%v", key, v)
		}
	}
	return out
}

// attributeOf is nil where the span has none.
func attributeOf(s sdktrace.ReadOnlySpan, key string) any {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.AsInterface()
		}
	}
	return nil
}

// one is the only ended span.
func (r *recording) one(t *testing.T) sdktrace.ReadOnlySpan {
	t.Helper()
	require.Len(t, r.spans.Ended(), 1, "%s", r.tree())
	return r.spans.Ended()[0]
}

// points are the sums of a metric's points by the value of an attribute.
func (r *recording) points(t *testing.T, name, by string) map[string]uint64 {
	t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &got))
	out := map[string]uint64{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					v, _ := p.Attributes.Value(keyOf(by))
					out[v.AsString()] += p.Count
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					v, _ := p.Attributes.Value(keyOf(by))
					out[v.AsString()] += uint64(p.Value)
				}
			}
		}
	}
	return out
}

// A chatServer speaks OpenAI's API on loopback: it gives the scripted answers in turn.
type chatServer struct {
	*httptest.Server

	mu       sync.Mutex
	script   []http.HandlerFunc
	requests []string
}

func serve(t *testing.T, script ...http.HandlerFunc) *chatServer {
	t.Helper()
	s := &chatServer{script: script}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, string(body))
		next := s.script[0]
		if len(s.script) > 1 {
			s.script = s.script[1:]
		}
		s.mu.Unlock()
		next(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *chatServer) openai(t *testing.T, client *http.Client, opts ...openai.Option) *openai.LLM {
	t.Helper()
	llm, err := openai.New(append([]openai.Option{
		openai.WithToken("sk-test"), openai.WithBaseURL(s.URL + "/v1"), openai.WithModel("gpt-4.1"), openai.WithHTTPClient(client),
	}, opts...)...)
	require.NoError(t, err)
	return llm
}

const usage = `"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`

// whole is an answer in one piece.
func whole(text string) http.HandlerFunc {
	quoted, _ := json.Marshal(text)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"chatcmpl-1","model":"gpt-4.1-2025","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],%s}`, quoted, usage)
	}
}

// toolCall is an answer that asks for a tool.
func toolCall(name, arguments string) http.HandlerFunc {
	quoted, _ := json.Marshal(arguments)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"chatcmpl-2","model":"gpt-4.1-2025","choices":[{"index":0,"message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":%q,"arguments":%s}}]},"finish_reason":"tool_calls"}],%s}`, name, quoted, usage)
	}
}

// stream is an answer in events; what follows is done by after.
func stream(after func(http.ResponseWriter, *http.Request), events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
			w.(http.Flusher).Flush()
		}
		if after != nil {
			after(w, r)
		}
	}
}

func delta(field string) string {
	return `{"id":"chatcmpl-1","model":"gpt-4.1-2025","choices":[{"index":0,"delta":{` + field + `}}]}`
}

var (
	role     = delta(`"role":"assistant","content":""`)
	thought  = delta(`"reasoning_content":"hm"`)
	hello    = delta(`"content":"Hello"`)
	world    = delta(`"content":" world"`)
	finish   = `{"id":"chatcmpl-1","model":"gpt-4.1-2025","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	told     = `{"id":"chatcmpl-1","model":"gpt-4.1-2025","choices":[],` + usage + `}`
	done     = "[DONE]"
	complete = []string{role, thought, hello, world, finish, told, done}
)

func human(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

func streaming(f func(string) error) llms.CallOption {
	return llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error { return f(string(chunk)) })
}

func ignore(string) error { return nil }

var request = genaitrace.Request{Provider: "openai", Model: "gpt-4.1"}
