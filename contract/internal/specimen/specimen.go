// Package specimen makes captures that the built-in profiles accept, for tests. The
// model calls, the gateway and the engine are recorded by genaitrace and genaihttp;
// what this module does not record yet is written with the otel API and the words
// of semconv, as any other library would. Time is that of testing/synctest, so
// every capture is the same each time.
package specimen

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// The numbers of every model call here.
const (
	Model   = "qwen2.5-7b-instruct"
	prompt  = 2456
	cached  = 1024
	answer  = 512
	perStep = 10 * time.Millisecond
)

// Service is what the specimens record with.
type Service struct {
	tracer *genaitrace.Tracer
	plain  trace.Tracer
	rec    *capture.Recorder
	faster time.Duration // what every time is divided by
}

// sleep takes some time.
func (s *Service) sleep(d time.Duration) { time.Sleep(d / s.faster) }

// Recorded is one request through a gateway and an engine for benchmarks, which have
// no bubble: at real times, so everything takes a hundredth of its time.
func Recorded(b *testing.B) *capture.Capture {
	b.Helper()
	rec := capture.NewRecorder()
	s := newService(rec)
	s.faster = 100
	s.Gateway()
	s.Engine(context.Background())
	got, err := rec.Capture(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func newService(rec *capture.Recorder, opts ...genaitrace.Option) *Service {
	opts = append(opts, genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider()),
		genaitrace.WithLoggerProvider(rec.LoggerProvider()))
	return &Service{
		tracer: genaitrace.New(opts...),
		plain:  rec.TracerProvider().Tracer("specimen"),
		rec:    rec,
		faster: 1,
	}
}

// Record runs service in a bubble of testing/synctest and returns what it recorded.
func Record(t *testing.T, serve func(s *Service)) *capture.Capture {
	t.Helper()
	return RecordIn(t, semconv.Standard, serve)
}

// RecordIn is Record in other words.
func RecordIn(t *testing.T, words semconv.Vocabulary, serve func(s *Service)) *capture.Capture {
	t.Helper()
	var got *capture.Capture
	synctest.Test(t, func(t *testing.T) {
		rec := capture.NewRecorder()
		serve(newService(rec, genaitrace.WithVocabulary(words)))
		synctest.Wait()
		var err error
		if got, err = rec.Capture(context.Background()); err != nil {
			t.Error(err)
		}
		if err := rec.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return got
}

// Profiles are the built-in profiles, each with a service that it accepts.
var Profiles = map[string]func(*Service){
	"base": func(s *Service) { s.Call(context.Background(), false) },
	"chat": func(s *Service) {
		s.Call(context.Background(), false)
		s.FailedCall(context.Background(), false)
	},
	"streaming-chat": func(s *Service) {
		s.Call(context.Background(), true)
		s.FailedCall(context.Background(), true)
		s.BrokenCall(context.Background())
	},
	"gateway": (*Service).Gateway,
	"engine": func(s *Service) {
		s.Engine(context.Background())
		s.CutEngine(context.Background())
		s.FailedEngine(context.Background())
	},
	"batch":        (*Service).Batch,
	"rag":          (*Service).RAG,
	"tools":        (*Service).Tools,
	"agent":        (*Service).Agent,
	"requirements": (*Service).Everything,
}

// Call is a model call as its caller sees it.
func (s *Service) Call(ctx context.Context, stream bool) {
	_, call := s.tracer.StartCall(ctx, request(stream))
	defer call.End()
	s.sleep(40 * time.Millisecond)
	call.SetResponse("chatcmpl-1", Model)
	if stream {
		call.Chunk(genaitrace.NoOutput) // the role
		s.sleep(5 * time.Millisecond)
		for range answer {
			call.Chunk(genaitrace.Visible)
			s.sleep(perStep)
		}
		call.SetTerminal(semconv.GenAIStreamTerminalDone)
	}
	call.SetUsage(usage())
	call.SetFinish("stop")
}

func request(stream bool) genaitrace.Request {
	return genaitrace.Request{Provider: "vllm", Model: Model, Stream: stream, MaxTokens: 1024}
}

func usage() genaitrace.Usage {
	return genaitrace.Usage{InputTokens: new(prompt), OutputTokens: new(answer), CachedTokens: new(cached)}
}

// Gateway serves one streamed request over HTTP and passes it on.
func (s *Service) Gateway() {
	s.gateway().ServeHTTP(httptest.NewRecorder(), gatewayRequest())
}

// CalledGateway is Gateway for a caller that is recorded as well.
func CalledGateway(s *Service) {
	req := gatewayRequest()
	ctx, call := s.tracer.StartCall(req.Context(), request(false))
	defer call.End()
	propagation.New().Inject(ctx, propagation.HTTPHeader(req.Header))
	s.gateway().ServeHTTP(httptest.NewRecorder(), req)
	call.SetResponse("chatcmpl-1", Model)
	call.SetUsage(usage())
	call.SetFinish("stop")
}

func gatewayRequest() *http.Request {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"hello"}]}`, Model)
	req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	return req
}

func (s *Service) gateway() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, call := s.tracer.StartCall(r.Context(), request(true))
		defer call.End()
		send := func(event string) {
			fmt.Fprintf(w, "data: %s\n\n", event)
			w.(http.Flusher).Flush()
		}
		chunk := func(delta, finish string) string {
			return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","model":%q,"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, Model, delta, finish)
		}
		s.sleep(40 * time.Millisecond)
		call.SetResponse("chatcmpl-1", Model)
		call.Chunk(genaitrace.NoOutput)
		send(chunk(`{"role":"assistant"}`, "null"))
		s.sleep(5 * time.Millisecond)
		for range answer {
			call.Chunk(genaitrace.Visible)
			send(chunk(`{"content":"x"}`, "null"))
			s.sleep(perStep)
		}
		call.SetTerminal(semconv.GenAIStreamTerminalDone)
		call.SetUsage(usage())
		call.SetFinish("stop")
		send(chunk(`{}`, `"stop"`))
		send("[DONE]")
	})
	return genaihttp.NewHandler(mux,
		genaihttp.WithTracerProvider(s.rec.TracerProvider()), genaihttp.WithMeterProvider(s.rec.MeterProvider()))
}

// Engine runs the model for one request.
func (s *Service) Engine(ctx context.Context) {
	ctx, inf := s.tracer.StartInference(ctx, request(true))
	defer inf.End()
	_, queue := inf.StartQueue(ctx)
	s.sleep(350 * time.Millisecond)
	queue.End()
	_, tokenize := inf.StartTokenize(ctx)
	tokenize.SetAttributes(semconv.AITokensInput(prompt), semconv.GenAITokenizerHash("5f3a"))
	s.sleep(2 * time.Millisecond)
	tokenize.End()
	_, schedule := inf.StartSchedule(ctx)
	s.sleep(time.Millisecond)
	schedule.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: prompt, Cached: new(cached)})
	s.sleep(120 * time.Millisecond)
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	s.sleep(3 * time.Millisecond)
	for range answer {
		decode.Token()
		s.sleep(perStep)
	}
	decode.End()
	_, post := inf.StartPostprocess(ctx)
	s.sleep(time.Millisecond)
	post.End()
	inf.SetUsage(usage())
	inf.SetFinish("stop")
}

// EngineOverHTTP serves the request of an engine that is its own HTTP server.
func EngineOverHTTP(s *Service) {
	handler := genaihttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s.Engine(r.Context()) }),
		genaihttp.WithTracerProvider(s.rec.TracerProvider()), genaihttp.WithMeterProvider(s.rec.MeterProvider()))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
}

// EveryToken is Engine with an event for each of its first 110 tokens.
func EveryToken(s *Service) {
	newService(s.rec, genaitrace.WithTokenEvents(110)).Engine(context.Background())
}

// span records a span that this module has no function for.
func (s *Service) span(ctx context.Context, name string, kind trace.SpanKind, took time.Duration, attrs ...attribute.KeyValue) context.Context {
	ctx, span := s.plain.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	s.sleep(took)
	span.End()
	return ctx
}

// Batch runs three requests, each in its own trace, in one batch.
func (s *Service) Batch() {
	_, batch := s.tracer.StartBatch(context.Background(), genaitrace.BatchFacts{Model: Model})
	defer batch.End()
	for range 3 {
		_, inf := s.tracer.StartInference(context.Background(), request(false))
		batch.Join(inf)
		s.sleep(20 * time.Millisecond)
		defer inf.End()
	}
}

// failed is an error that names its own error.type.
type failed string

func (f failed) Error() string     { return string(f) }
func (f failed) ErrorType() string { return string(f) }

// FailedCall is a model call that its server turns away.
func (s *Service) FailedCall(ctx context.Context, stream bool) {
	_, call := s.tracer.StartCall(ctx, request(stream))
	s.sleep(5 * time.Millisecond)
	call.Fail(failed("overloaded"))
}

// BrokenCall is a stream that ends amid the answer, after a stall.
func (s *Service) BrokenCall(ctx context.Context) {
	_, call := s.tracer.StartCall(ctx, request(true))
	s.sleep(40 * time.Millisecond)
	for range 20 {
		call.Chunk(genaitrace.Visible)
		s.sleep(perStep)
	}
	s.sleep(time.Second)
	call.Chunk(genaitrace.Visible)
	call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	call.Fail(failed("device_lost"))
}

// FailedEngine is a request whose device fails amid prefill.
func (s *Service) FailedEngine(ctx context.Context) {
	ctx, inf := s.tracer.StartInference(ctx, request(true))
	_, queue := inf.StartQueue(ctx)
	s.sleep(10 * time.Millisecond)
	queue.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: prompt, Cached: new(0)})
	s.sleep(50 * time.Millisecond)
	prefill.Fail(failed("device_lost"))
	inf.Fail(failed("device_lost"))
}

// CutEngine is a request that stalls, and is stopped by the limit of its tokens.
func (s *Service) CutEngine(ctx context.Context) {
	ctx, inf := s.tracer.StartInference(ctx, request(true))
	defer inf.End()
	_, queue := inf.StartQueue(ctx)
	s.sleep(10 * time.Millisecond)
	queue.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: prompt, Cached: new(0)})
	s.sleep(50 * time.Millisecond)
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	for range 30 {
		decode.Token()
		s.sleep(perStep)
	}
	s.sleep(time.Second)
	decode.Token()
	s.sleep(time.Millisecond)
	inf.EarlyStop(semconv.GenAIEarlyStopReasonLength)
	decode.End()
	inf.SetFinish("length")
}

// entry is the server span of a request.
func (s *Service) entry(work func(ctx context.Context)) {
	ctx, span := s.plain.Start(context.Background(), "POST /v1/ask", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	s.sleep(time.Millisecond)
	work(ctx)
}

// Everything records each operation that the requirements name, in the words of
// the house.
func (s *Service) Everything() {
	s.entry(func(ctx context.Context) {
		operation := semconv.AIOperation
		s.span(ctx, "embeddings bge-m3", trace.SpanKindClient, 8*time.Millisecond,
			operation("embeddings"), semconv.AIModelName("bge-m3"), semconv.AITokensInput(17), genaiconv.ProviderName("vllm"))
		s.span(ctx, "retrieval handbook", trace.SpanKindClient, 15*time.Millisecond, operation("retrieval"))
		s.span(ctx, "rag.rerank", trace.SpanKindInternal, 6*time.Millisecond,
			semconv.GenAISpanRole(semconv.GenAISpanRoleRerank), operation("rerank"))
		s.span(ctx, "execute_tool get_weather", trace.SpanKindInternal, 30*time.Millisecond, operation("execute_tool"), genaiconv.ToolName("get_weather"))
		s.span(ctx, "invoke_agent weather", trace.SpanKindInternal, 20*time.Millisecond, operation("invoke_agent"), genaiconv.AgentName("weather"))
		s.Call(ctx, true)
	})
}
