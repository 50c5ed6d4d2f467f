package guide

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv/translate"
)

func overHTTP(mux *http.ServeMux) (http.Handler, openai.Client) {
	handler := genaihttp.NewHandler(mux) // for http.ListenAndServe

	client := openai.NewClient(option.WithHTTPClient(&http.Client{
		Transport: genaihttp.NewTransport(http.DefaultTransport),
	}))
	return handler, client
}

func proxy(upstream *url.URL) http.Handler {
	handler := genaihttp.NewReverseProxy(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
	})
	return handler
}

func ownPath() http.RoundTripper {
	transport := genaihttp.NewTransport(http.DefaultTransport,
		genaihttp.WithEndpoint(wire.Endpoint{Path: "/internal/llm", Dialect: wire.OpenAI}))
	return transport
}

func fromOpenInference(exporter sdktrace.SpanExporter) (sdktrace.SpanExporter, error) {
	tr, err := translate.New(translate.OpenInference, translate.Standard)
	return translate.NewSpanExporter(exporter, tr), err
}

func overGRPC(target string, creds grpc.DialOption) (*grpc.Server, *grpc.ClientConn, error) {
	server := grpc.NewServer(grpc.StatsHandler(genaigrpc.NewServerHandler()))
	conn, err := grpc.NewClient(target, grpc.WithStatsHandler(genaigrpc.NewClientHandler()), creds)
	return server, conn, err
}

// What the next pieces are about: a gateway with a gRPC engine behind it.
type (
	gateway struct{ engine engine }
	engine  interface {
		Generate(ctx context.Context, req *Request) (stream, error)
	}
	stream interface{ Recv() (*Piece, error) }
	// Request is what the gateway passes on.
	Request struct{ Model string }
	// Piece is what comes back.
	Piece struct {
		Text  string
		Usage *struct{ Input, Output int }
	}
)

var tracer = genaitrace.New() // one for the process

func (g *gateway) complete(ctx context.Context, req *Request, send func(string) error) (err error) {
	ctx, call := tracer.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: req.Model, Stream: true})
	defer call.EndErr(&err) // ends on every path, panics included

	stream, err := g.engine.Generate(ctx, req)
	if err != nil {
		return err
	}
	for {
		msg, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		call.Chunk(genaitrace.Visible) // the first one is the caller's TTFT
		if msg.Usage != nil {
			call.SetUsage(genaitrace.Usage{InputTokens: &msg.Usage.Input, OutputTokens: &msg.Usage.Output})
		}
		if err := send(msg.Text); err != nil {
			return err
		}
	}
}

// And the engine itself.
type (
	// Server runs the model.
	Server struct{ scheduler scheduler }
	// Prompt is what it answers.
	Prompt    struct{}
	scheduler interface {
		Wait(ctx context.Context) slot
	}
	slot interface {
		Prefill(in *Prompt)
		Decode() iter.Seq[string]
	}
)

func send(string) {}

// Generate answers one prompt.
func (s *Server) Generate(ctx context.Context, in *Prompt) (err error) {
	ctx, inf := tracer.StartInference(ctx, genaitrace.Request{
		Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", Stream: true,
	})
	defer inf.EndErr(&err)

	_, queue := inf.StartQueue(ctx)
	slot := s.scheduler.Wait(ctx)
	queue.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2456, Cached: new(1024)}) // new(0): a known miss
	slot.Prefill(in)
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	for token := range slot.Decode() {
		decode.Token() // the first one fixes the TTFT: attribute, event and histogram
		send(token)
	}
	decode.End()
	inf.SetUsage(genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(512)})
	inf.SetFinish("stop")
	return nil
}

func keepWhatMatters(ctx context.Context, exporter sdktrace.SpanExporter, serve func(*sdktrace.TracerProvider) error) error {
	tail, err := sampling.NewTail(exporter, sampling.Any(
		sampling.Errors(),
		sampling.Slow(3*time.Second),
		sampling.Baseline(0.05),
	))
	if err != nil {
		return err
	}
	tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	defer tp.Shutdown(ctx)
	defer tail.Shutdown(ctx)   // before the provider
	otel.SetTracerProvider(tp) // or give tp to the middleware, by its WithTracerProvider
	return serve(tp)
}
