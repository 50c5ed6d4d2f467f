package serving

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/examples/internal/inferencev1"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// service is the gRPC server around the engine.
type service struct {
	inferencev1.UnimplementedInferenceServer
	engine *toy.Engine
}

// NewService returns the server around an engine.
func NewService(engine *toy.Engine, tel *telemetry.Telemetry) *grpc.Server {
	server := grpc.NewServer(grpc.StatsHandler(genaigrpc.NewServerHandler(
		genaigrpc.WithTracerProvider(tel.Traces),
		genaigrpc.WithMeterProvider(tel.Metrics),
	)))
	inferencev1.RegisterInferenceServer(server, &service{engine: engine})
	return server
}

func (s *service) Generate(in *inferencev1.GenerateRequest, stream grpc.ServerStreamingServer[inferencev1.GenerateResponse]) error {
	if in.GetModel() != toy.Model {
		return status.Errorf(codes.NotFound, "the model %q does not exist", in.GetModel())
	}
	if len(in.GetMessages()) == 0 {
		return status.Error(codes.InvalidArgument, "messages are missing")
	}
	req := toy.Request{MaxTokens: int(in.GetMaxTokens()), Temperature: in.Temperature}
	for _, m := range in.GetMessages() {
		req.Messages = append(req.Messages, toy.Message{Role: m.GetRole(), Content: m.GetContent()})
	}
	res, err := s.engine.Generate(stream.Context(), req, func(token string) error {
		return stream.Send(&inferencev1.GenerateResponse{Text: token})
	})
	if err != nil {
		return toStatus(err)
	}
	return stream.Send(&inferencev1.GenerateResponse{
		FinishReason: res.FinishReason,
		Usage: &inferencev1.Usage{
			InputTokens:  new(int32(res.InputTokens)),
			CachedTokens: new(int32(res.CachedTokens)),
			OutputTokens: new(int32(res.OutputTokens)),
		},
	})
}

// toStatus gives an error of the engine its gRPC code.
func toStatus(err error) error {
	if errors.Is(err, toy.ErrOverloaded) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	return status.Error(codes.Internal, err.Error())
}
