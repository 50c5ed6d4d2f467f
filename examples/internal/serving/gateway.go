package serving

import (
	"context"
	"errors"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/inferencev1"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// gateway is an OpenAI-compatible HTTP server before the inference service.
type gateway struct {
	backend inferencev1.InferenceClient
	tracer  *genaitrace.Tracer
}

// NewGateway is the gateway before the inference service that backend reaches.
func NewGateway(backend grpc.ClientConnInterface, tel *telemetry.Telemetry) http.Handler {
	g := &gateway{backend: inferencev1.NewInferenceClient(backend), tracer: tel.Tracer}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+chatapi.Path, g.chat)
	return mux
}

// Traced gives every request to next a SERVER span.
func Traced(next http.Handler, tel *telemetry.Telemetry) http.Handler {
	return genaihttp.NewHandler(next,
		genaihttp.WithTracerProvider(tel.Traces),
		genaihttp.WithMeterProvider(tel.Metrics),
	)
}

func (g *gateway) chat(w http.ResponseWriter, r *http.Request) {
	req, err := chatapi.ReadRequest(w, r)
	if err != nil {
		toAPIError(err).Write(w)
		return
	}
	if len(req.Tools) > 0 {
		toAPIError(&chatapi.Error{Status: http.StatusBadRequest, Message: "tools are given, but the inference service knows of text alone"}).Write(w)
		return
	}
	out := chatapi.NewWriter(w, req)
	last, err := g.generate(r.Context(), req, out.Text)
	if err == nil {
		u := last.GetUsage()
		err = out.Finish(chatapi.End{
			Reason: last.GetFinishReason(),
			Usage:  chatapi.NewUsage(u.GetInputTokens(), u.GetCachedTokens(), u.GetOutputTokens()),
		})
	}
	if err != nil && r.Context().Err() == nil { // else nobody reads it
		out.Fail(toAPIError(err))
	}
}

// generate calls the inference service, hands on its text as it comes, and
// returns its last message once the call is over.
func (g *gateway) generate(ctx context.Context, req *chatapi.Request, text func(string) error) (last *inferencev1.GenerateResponse, err error) {
	ctx, call := g.tracer.StartCall(ctx, genaitrace.Request{
		Provider:    "toy",
		Model:       req.Model,
		Stream:      true, // the service knows no other way
		Temperature: req.Temperature,
	})
	defer call.EndErr(&err)

	stream, err := g.backend.Generate(ctx, forBackend(req))
	if err != nil {
		return nil, err
	}
	for {
		msg, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && last != nil:
			return last, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case msg.GetText() != "":
			call.Chunk(genaitrace.Visible)
			if err := text(msg.GetText()); err != nil {
				return nil, err
			}
		default:
			call.Chunk(genaitrace.NoOutput)
		}
		if msg.GetFinishReason() != "" {
			last = msg
			call.SetFinish(msg.GetFinishReason())
			call.SetUsage(usage(msg.GetUsage()))
		}
	}
}

// forBackend is the same request for the inference service.
func forBackend(r *chatapi.Request) *inferencev1.GenerateRequest {
	out := &inferencev1.GenerateRequest{Model: r.Model, MaxTokens: r.MaxTokens(), Temperature: r.Temperature}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, &inferencev1.Message{Role: m.Role, Content: string(m.Content)})
	}
	return out
}

// usage keeps unknown what the service does not know.
func usage(u *inferencev1.Usage) genaitrace.Usage {
	if u == nil {
		return genaitrace.Usage{}
	}
	known := func(n *int32) *int {
		if n == nil {
			return nil
		}
		return new(int(*n))
	}
	//nolint:protogetter // a getter does not tell unknown from zero
	return genaitrace.Usage{
		InputTokens:  known(u.InputTokens),
		CachedTokens: known(u.CachedTokens),
		OutputTokens: known(u.OutputTokens),
	}
}

// toAPIError gives an error of the backend its HTTP status.
func toAPIError(err error) *chatapi.Error {
	if e, ok := errors.AsType[*chatapi.Error](err); ok {
		return e
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.NotFound:
		return &chatapi.Error{Status: http.StatusNotFound, Code: "model_not_found", Message: s.Message()}
	case codes.InvalidArgument:
		return &chatapi.Error{Status: http.StatusBadRequest, Message: s.Message()}
	case codes.ResourceExhausted:
		return &chatapi.Error{Status: http.StatusTooManyRequests, Code: "overloaded", Message: s.Message()}
	case codes.Unavailable:
		return &chatapi.Error{Status: http.StatusServiceUnavailable, Message: "the inference service cannot be reached"}
	case codes.DeadlineExceeded:
		return &chatapi.Error{Status: http.StatusGatewayTimeout, Message: "the inference service did not answer in time"}
	default:
		return &chatapi.Error{Status: http.StatusInternalServerError, Message: s.Message()}
	}
}
