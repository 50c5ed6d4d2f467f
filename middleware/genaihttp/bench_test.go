package genaihttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// chunks is the length of the streams below.
const chunks = 500

// benchEvents are the events of one streamed answer: 500 chunks of text of about
// 260 bytes, then the finish reason, the usage and the end mark.
func benchEvents() [][]byte {
	const format = `data: {"id":"chatcmpl-0123456789abcdef0123456789","object":"chat.completion.chunk","created":1767000000,` +
		`"model":"gpt-fx-2026-01-01","service_tier":"default","system_fingerprint":"fp_0123456789",` +
		`"choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}],"usage":null}` + "\n\n"
	events := [][]byte{fmt.Appendf(nil, format, `"role":"assistant","content":""`, "null")}
	for i := range chunks {
		events = append(events, fmt.Appendf(nil, format, fmt.Sprintf(`"content":" word%d"`, i), "null"))
	}
	return append(events,
		fmt.Appendf(nil, format, "", `"stop"`),
		[]byte(`data: {"id":"chatcmpl-0123456789abcdef0123456789","object":"chat.completion.chunk","created":1767000000,"model":"gpt-fx-2026-01-01","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":500,"total_tokens":519}}`+"\n\n"),
		[]byte("data: [DONE]\n\n"))
}

// discard stands for an exporter: the SDK makes the snapshot of each span that
// it would export, and the span goes no further.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

func benchProviders(sampler sdktrace.Sampler) (trace.TracerProvider, metric.MeterProvider) {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(discard{})),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

func benchTransport(base http.RoundTripper, tp trace.TracerProvider, mp metric.MeterProvider) http.RoundTripper {
	return genaihttp.NewTransport(base, genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(mp))
}

// handwritten is the least that one would write by hand for a streamed chat: a
// CLIENT span with the attributes of the call, the time to first token, and the
// usage, by two byte searches a chunk. The needles begin with a letter: bytes
// look for the first byte, and quotes are everywhere in JSON. It trusts that an
// event comes in one read, that the stream is a chat, and that it is read to
// its end.
type handwritten struct {
	base     http.RoundTripper
	tracer   trace.Tracer
	perChunk metric.Float64Histogram // nil: not recorded
	dims     []metric.RecordOption
}

func newHandwritten(base http.RoundTripper, tp trace.TracerProvider) *handwritten {
	return &handwritten{base: base, tracer: tp.Tracer("bench")}
}

func (h *handwritten) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	ctx, span := h.tracer.Start(req.Context(), "chat gpt-fx", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(genaiconv.ProviderNameOpenAI),
		genaiconv.RequestModel("gpt-fx"),
		genaiconv.RequestStream(true),
		otelsemconv.ServerAddress(req.URL.Hostname()),
		otelsemconv.HTTPRequestMethodKey.String(req.Method),
	))
	req = req.Clone(ctx)
	sc := span.SpanContext()
	req.Header.Set("Traceparent", "00-"+sc.TraceID().String()+"-"+sc.SpanID().String()+"-01")
	resp, err := h.base.RoundTrip(req)
	if err != nil {
		span.End()
		return resp, err
	}
	resp.Body = &handwrittenBody{
		ReadCloser: resp.Body, span: span, start: start, input: -1, output: -1,
		perChunk: h.perChunk, dims: h.dims,
	}
	return resp, nil
}

type handwrittenBody struct {
	io.ReadCloser

	span          trace.Span
	start         time.Time
	ttft          time.Duration
	input, output int

	perChunk metric.Float64Histogram
	dims     []metric.RecordOption
	last     time.Time
}

var (
	contentNeedle = []byte(`content":"`)
	usageNeedle   = []byte(`usage":{`)
)

func (b *handwrittenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	got := p[:n]
	if b.perChunk != nil && n > 0 {
		now := time.Now()
		if !b.last.IsZero() {
			b.perChunk.Record(context.Background(), now.Sub(b.last).Seconds(), b.dims...)
		}
		b.last = now
	}
	if at := bytes.Index(got, contentNeedle); at >= 0 && b.ttft == 0 && got[at+len(contentNeedle)] != '"' {
		b.ttft = time.Since(b.start)
	}
	if at := bytes.Index(got, usageNeedle); at >= 0 {
		b.input = numberAfter(got[at:], `prompt_tokens":`)
		b.output = numberAfter(got[at:], `completion_tokens":`)
	}
	if err != nil {
		attrs := []attribute.KeyValue{
			semconv.LLMTTFTMs(float64(b.ttft) / 1e6),
			otelsemconv.HTTPResponseStatusCode(http.StatusOK),
		}
		if b.input >= 0 {
			attrs = append(attrs, genaiconv.UsageInputTokens(b.input), genaiconv.UsageOutputTokens(b.output))
		}
		b.span.SetAttributes(attrs...)
		b.span.End()
	}
	return n, err
}

func numberAfter(b []byte, key string) int {
	_, rest, _ := bytes.Cut(b, []byte(key))
	end := bytes.IndexAny(rest, ",}")
	n, err := strconv.Atoi(string(rest[:max(end, 0)]))
	if err != nil {
		return -1
	}
	return n
}

// readStream makes one call and reads its answer to the end.
func readStream(b *testing.B, rt http.RoundTripper, url string, p []byte) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(chatRequest))
	if err != nil {
		b.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	for err == nil {
		_, err = resp.Body.Read(p)
	}
	resp.Body.Close()
	if err != io.EOF {
		b.Fatal(err)
	}
}

func benchStream(b *testing.B, rt http.RoundTripper, url string) {
	p := make([]byte, 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		readStream(b, rt, url, p)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
}

// BenchmarkStream500 is one streamed chat of 500 chunks over loopback HTTP, the
// server flushing each: what a call costs in its surroundings.
func BenchmarkStream500(b *testing.B) {
	events := benchEvents()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := w.(http.Flusher).Flush
		for _, e := range events {
			_, _ = w.Write(e)
			flush()
		}
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	tp, mp := benchProviders(sdktrace.AlwaysSample())
	b.Run("bare", func(b *testing.B) { benchStream(b, base, server.URL) })
	b.Run("handwritten", func(b *testing.B) { benchStream(b, newHandwritten(base, tp), server.URL) })
	b.Run("otelgenai", func(b *testing.B) { benchStream(b, benchTransport(base, tp, mp), server.URL) })
}

// A replay is the body of an answer that gives one event a read.
type replay struct {
	events [][]byte
	next   int
}

func (r *replay) Read(p []byte) (int, error) {
	if r.next == len(r.events) {
		return 0, io.EOF
	}
	n := copy(p, r.events[r.next])
	r.next++
	return n, nil
}

func (*replay) Close() error { return nil }

// BenchmarkStreamInMemory500 is the same stream without sockets, one event a
// read: what the instrumentation costs by itself. The cost of a chunk is the
// difference from bare.
func BenchmarkStreamInMemory500(b *testing.B) {
	events := benchEvents()
	base := baseTransport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: &replay{events: events}, Request: r,
		}, nil
	})
	const url = "http://engine.internal:8000"
	b.Run("bare", func(b *testing.B) { benchStream(b, base, url) })
	b.Run("handwritten", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		benchStream(b, newHandwritten(base, tp), url)
	})
	b.Run("otelgenai", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		benchStream(b, benchTransport(base, tp, mp), url)
	})
	// gen_ai.client.inference.time_per_output_chunk is one Record of the SDK a
	// chunk. These two tell its part: the minimum with it, and ours without it,
	// by a view of the kind that its users would write.
	b.Run("handwrittenperchunk", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		h := newHandwritten(base, tp)
		h.dims = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
			genaiconv.OperationName(genaiconv.OperationNameChat),
			genaiconv.ProviderName(genaiconv.ProviderNameOpenAI),
			genaiconv.RequestModel("gpt-fx")))}
		perChunk, _ := genaiconv.NewClientInferenceTimePerOutputChunk(mp.Meter("bench"))
		h.perChunk = perChunk.Inst()
		benchStream(b, h, url)
	})
	b.Run("otelgenainoperchunk", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()), sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Name: genaiconv.ClientInferenceTimePerOutputChunkName},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}})))
		benchStream(b, benchTransport(base, tp, mp), url)
	})
	b.Run("metricsonly", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.NeverSample())
		benchStream(b, benchTransport(base, tp, mp), url)
	})
	b.Run("notrecording", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.NeverSample())
		benchStream(b, benchTransport(base, tp, metricnoop.NewMeterProvider()), url)
	})
}
