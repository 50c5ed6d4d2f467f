package genaihttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// A busyProvider is a busy machine: the goroutine loses the processor wherever a span
// starts, gets attributes or ends.
type busyProvider struct{ trace.TracerProvider }

func (p busyProvider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return busyTracer{p.TracerProvider.Tracer(name, opts...)}
}

type busyTracer struct{ trace.Tracer }

func (t busyTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	time.Sleep(3 * time.Millisecond)
	ctx, span := t.Tracer.Start(ctx, name, opts...)
	time.Sleep(3 * time.Millisecond)
	span = busySpan{span}
	return trace.ContextWithSpan(ctx, span), span
}

type busySpan struct{ trace.Span }

func (s busySpan) SetAttributes(attrs ...attribute.KeyValue) {
	time.Sleep(3 * time.Millisecond)
	s.Span.SetAttributes(attrs...)
}

func (s busySpan) End(opts ...trace.SpanEndOption) {
	time.Sleep(3 * time.Millisecond)
	s.Span.End(opts...)
	time.Sleep(3 * time.Millisecond)
}

// A request's span and its metrics are timed by the same readings of the clock.
func TestARequestIsTimedByOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		handler := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(10 * time.Millisecond)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, textEvent)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, finishEvent+doneEvent)
		}), genaihttp.WithTracerProvider(busyProvider{o.tp}), genaihttp.WithMeterProvider(o.mp))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", nil))

		span := o.only()
		_, duration := o.histogram("http.server.request.duration")
		assert.Equal(t, span.EndTime().Sub(span.StartTime()).Seconds(), duration)
		_, ttft := o.histogram(semconv.GenAITimeToFirstTokenName)
		assert.Equal(t, span.Events()[0].Time.Sub(span.StartTime()).Seconds(), ttft)
		assert.Equal(t, attributes(span)[semconv.LLMTTFTMsKey], ttft*1e3)
	})
}
