package column

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A handwritten is the least that one would write by hand: a CLIENT span with the
// attributes of the call, the time to first token, the finish reason and the usage, by
// two byte searches a chunk. The needles begin with a letter: bytes looks for the first
// byte, and quotes are everywhere in JSON. It trusts that an event comes in one read,
// that the stream is a chat, and that its reader comes to an end.
type handwritten struct {
	base   http.RoundTripper
	tracer trace.Tracer
}

func newHandwritten(base http.RoundTripper, t Telemetry) *handwritten {
	return &handwritten{base: base, tracer: t.Traces.Tracer("handwritten")}
}

func (h *handwritten) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	req, span := startChat(h.tracer, req, start)
	resp, err := h.base.RoundTrip(req)
	if err != nil {
		failSpan(span, err)
		return resp, err
	}
	if span.IsRecording() {
		resp.Body = &handwrittenBody{ReadCloser: resp.Body, span: span, start: start, input: -1, output: -1}
	}
	return resp, nil
}

// startChat starts the span of a chat and sends its context along.
func startChat(tracer trace.Tracer, req *http.Request, at time.Time) (*http.Request, trace.Span) {
	ctx, span := tracer.Start(req.Context(), "chat gpt-fx", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(at), trace.WithAttributes(
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(genaiconv.ProviderNameOpenAI),
		genaiconv.RequestModel("gpt-fx"),
		genaiconv.RequestStream(true),
		otelsemconv.ServerAddress(req.URL.Hostname()),
		otelsemconv.HTTPRequestMethodKey.String(req.Method),
	))
	req = req.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	return req, span
}

func failSpan(span trace.Span, err error) {
	span.SetStatus(codes.Error, err.Error())
	span.End()
}

type handwrittenBody struct {
	io.ReadCloser

	span          trace.Span
	start         time.Time
	ttft          time.Duration
	finish        string
	input, output int
	ended         bool
}

var (
	contentNeedle = []byte(`content":"`)
	finishNeedle  = []byte(`finish_reason":"`)
	usageNeedle   = []byte(`usage":{`)
)

func (b *handwrittenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	got := p[:n]
	if b.ttft == 0 {
		if _, text, ok := bytes.Cut(got, contentNeedle); ok && len(text) > 0 && text[0] != '"' {
			b.ttft = time.Since(b.start)
		}
	}
	if at := bytes.Index(got, finishNeedle); at >= 0 {
		reason, _, _ := bytes.Cut(got[at+len(finishNeedle):], []byte{'"'})
		b.finish = string(reason)
	}
	if at := bytes.Index(got, usageNeedle); at >= 0 {
		b.input = numberAfter(got[at:], `prompt_tokens":`)
		b.output = numberAfter(got[at:], `completion_tokens":`)
	}
	if err == io.EOF {
		b.end()
	} else if err != nil {
		b.span.SetStatus(codes.Error, err.Error())
		b.end()
	}
	return n, err
}

func (b *handwrittenBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *handwrittenBody) end() {
	if b.ended {
		return
	}
	b.ended = true
	attrs := []attribute.KeyValue{otelsemconv.HTTPResponseStatusCode(http.StatusOK)}
	if b.ttft > 0 {
		attrs = append(attrs, semconv.LLMTTFTMs(float64(b.ttft)/1e6))
	}
	if b.finish != "" {
		attrs = append(attrs, genaiconv.ResponseFinishReasons(b.finish))
	}
	if b.input >= 0 {
		attrs = append(attrs, genaiconv.UsageInputTokens(b.input), genaiconv.UsageOutputTokens(b.output))
	}
	b.span.SetAttributes(attrs...)
	b.span.End()
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
