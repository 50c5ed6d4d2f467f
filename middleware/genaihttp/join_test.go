package genaihttp_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// timed serves events, each 10 ms after the one before.
func timed(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for _, e := range events {
			time.Sleep(10 * time.Millisecond)
			say(w, e)
		}
	}
}

// their starts the span that a client library makes of a call.
func (o *telemetry) their(ctx context.Context, kind trace.SpanKind, operation string) (context.Context, trace.Span) {
	return o.tp.Tracer("com.example.sdk").Start(ctx, "example.messages.create", trace.WithSpanKind(kind), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", operation),
		attribute.String("gen_ai.request.model", "theirs"),
	))
}

// A client library that makes the span of a call itself: that span gets what it
// lacks, in whichever way its owner uses it.
func TestASpanOfTheClientLibraryIsEnrichedAndNotDoubled(t *testing.T) {
	stream := []string{roleEvent, textEvent, finishEvent, usageEvent, doneEvent}
	read := func(t *testing.T, resp *http.Response, _ trace.Span) { _, _ = readAll(resp) }
	for _, tt := range []struct {
		name      string
		answers   []http.HandlerFunc
		use       func(*testing.T, *http.Response, trace.Span)
		terminal  semconv.GenAIStreamTerminalAttr
		errType   string
		untold    bool // of finish reason and usage
		durations uint64
	}{
		{name: "read to its end", answers: []http.HandlerFunc{timed(stream...)}, use: read, terminal: "done", durations: 1},
		{name: "ended with the end mark", answers: []http.HandlerFunc{timed(stream...)}, terminal: "done", durations: 1,
			use: func(t *testing.T, resp *http.Response, their trace.Span) {
				readUntil(t, resp, doneEvent)
				their.End()
			}},
		{name: "left after the first token", answers: []http.HandlerFunc{timed(stream...)}, terminal: "client_cancelled", untold: true, durations: 1,
			use: func(t *testing.T, resp *http.Response, their trace.Span) {
				readUntil(t, resp, textEvent)
				their.End() // and closes the body then
			}},
		{name: "tried again", answers: []http.HandlerFunc{tooMany, timed(stream...)}, use: read, terminal: "done", durations: 2},
		{name: "tried again after a dropped connection", answers: []http.HandlerFunc{drop, timed(stream...)}, use: read, terminal: "done", durations: 2},
		{name: "cut", answers: []http.HandlerFunc{timed(roleEvent, textEvent)}, use: read, terminal: "truncated", errType: "stream_truncated", untold: true, durations: 1},
		{name: "an error in it", answers: []http.HandlerFunc{timed(roleEvent, textEvent, errorEvent)}, terminal: "error", errType: "server_error", untold: true, durations: 1,
			use: func(t *testing.T, resp *http.Response, their trace.Span) {
				readUntil(t, resp, errorEvent)
				their.End()
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				var seen []string
				base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					seen = append(seen, r.Header.Get("Traceparent"))
					tt.answers[len(seen)-1](w, r)
				}))
				defer stop()
				client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
				ctx, their := o.their(t.Context(), trace.SpanKindClient, "chat")
				for i := range tt.answers {
					resp, err := post(ctx, client)
					if i+1 == len(tt.answers) {
						require.NoError(t, err)
						tt.use(t, resp, their)
					}
					if err == nil {
						resp.Body.Close()
					}
				}
				their.End()
				time.Sleep(time.Second) // for a server whose client left

				span := o.only()
				assert.Equal(t, "example.messages.create", span.Name())
				checkEnding(t, span, tt.terminal, tt.errType)
				got := attributes(span)
				assert.Equal(t, "theirs", got[genaiconv.RequestModelKey], "theirs stays")
				assert.EqualValues(t, "inference", got[semconv.GenAISpanRoleKey])
				assert.Equal(t, true, got[genaiconv.RequestStreamKey])
				assert.Equal(t, 20.0, got[semconv.LLMTTFTMsKey])
				if !tt.untold {
					assert.Equal(t, []string{"stop"}, got[genaiconv.ResponseFinishReasonsKey])
					assert.EqualValues(t, 19, got[genaiconv.UsageInputTokensKey])
					assert.EqualValues(t, 4, got[semconv.GenAIChunkCountKey])
					assert.Contains(t, got, semconv.GenAIChunkTimelineKey)
				}
				assert.Equal(t, traceparent(span.SpanContext()), seen[len(seen)-1])
				durations, _ := o.histogram(genaiconv.ClientInferenceDurationName)
				assert.Equal(t, tt.durations, durations)
				ttfts, _ := o.histogram(semconv.GenAITimeToFirstTokenName)
				assert.EqualValues(t, 1, ttfts)
			})
		})
	}
}

// What the owner says wins, whenever it says it.
func TestTheOwnersOwnWordsStay(t *testing.T) {
	o := newTelemetry(t)
	client := &http.Client{Transport: genaihttp.NewTransport(answers(200, "text/event-stream", textEvent+finishEvent+usageEvent+doneEvent), o.options()...)}
	ctx, their := o.their(t.Context(), trace.SpanKindClient, "chat")
	their.SetAttributes(genaiconv.UsageInputTokens(7), genaiconv.ResponseID("before"))
	resp, err := post(ctx, client)
	require.NoError(t, err)
	_, _ = readAll(resp)
	resp.Body.Close()
	their.SetAttributes(genaiconv.UsageOutputTokens(8))
	their.SetStatus(codes.Ok, "")
	their.End()
	got := attributes(o.only())
	assert.EqualValues(t, 7, got[genaiconv.UsageInputTokensKey])
	assert.EqualValues(t, 8, got[genaiconv.UsageOutputTokensKey])
	assert.Equal(t, "before", got[genaiconv.ResponseIDKey])
	assert.Equal(t, codes.Ok, o.only().Status().Code)
}

// An opaque span does not tell what it is.
type opaque struct{ trace.Span }

// Spans around a call that are not the call itself have our span below them.
func TestOtherSpansAreParents(t *testing.T) {
	for _, tt := range []struct {
		name      string
		kind      trace.SpanKind
		operation string
		opaque    bool
	}{
		{"of the application", trace.SpanKindInternal, "chat", false},
		{"of an agent elsewhere", trace.SpanKindClient, "invoke_agent", false},
		{"of who knows what", trace.SpanKindClient, "chat", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			client := &http.Client{Transport: genaihttp.NewTransport(answers(200, "text/event-stream", textEvent+finishEvent+usageEvent+doneEvent), o.options()...)}
			ctx, their := o.their(t.Context(), tt.kind, tt.operation)
			if tt.opaque {
				ctx = trace.ContextWithSpan(ctx, opaque{their})
			}
			resp, err := post(ctx, client)
			require.NoError(t, err)
			_, _ = readAll(resp)
			resp.Body.Close()
			their.End()
			require.EqualValues(t, 2, o.started.Load())
			span := o.named("chat gpt-fx")
			assert.Equal(t, their.SpanContext().SpanID(), span.Parent().SpanID())
			got := attributes(span)
			if tt.opaque { // it may have the usage itself
				assert.NotContains(t, got, genaiconv.UsageInputTokensKey)
				assert.EqualValues(t, 19, got[semconv.AITokensInputKey])
			} else {
				assert.EqualValues(t, 19, got[genaiconv.UsageInputTokensKey])
			}
			assert.NotContains(t, attributes(o.named("example.messages.create")), semconv.LLMTTFTMsKey)
		})
	}
}

// An opaqueProvider wraps spans, as bridges between SDKs do.
type opaqueProvider struct {
	trace.TracerProvider
}

func (p opaqueProvider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return opaqueTracer{p.TracerProvider.Tracer(name, opts...)}
}

type opaqueTracer struct{ trace.Tracer }

func (t opaqueTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := t.Tracer.Start(ctx, name, opts...)
	return trace.ContextWithSpan(ctx, opaque{span}), opaque{span}
}

// Our own handler's span is known, whatever SDK it is of.
func TestAGatewaysSpanIsNoClientLibrarys(t *testing.T) {
	o := newTelemetry(t)
	opts := append(o.options(), genaihttp.WithTracerProvider(opaqueProvider{o.tp}))
	upstream, stop := serve(timed(textEvent, finishEvent, usageEvent, doneEvent))
	defer stop()
	gateway, stopGateway := serve(genaihttp.NewReverseProxy(toEngine(upstream), opts...))
	defer stopGateway()
	resp, err := post(t.Context(), &http.Client{Transport: gateway})
	require.NoError(t, err)
	_, _ = readAll(resp)
	resp.Body.Close()
	require.Eventually(t, func() bool { return o.ended.Load() == 2 }, 10*time.Second, time.Millisecond)
	assert.EqualValues(t, 19, attributes(o.named("chat gpt-fx"))[genaiconv.UsageInputTokensKey])
}
