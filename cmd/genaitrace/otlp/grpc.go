package otlp

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // what senders may compress with
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// grpcServer serves the three services of OTLP. The messages come as bytes, because
// what pdata registers decodes them before anybody can look at them: a panic or a
// depth without bound would end the process.
func (r *Receiver) grpcServer() *grpc.Server {
	s := grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxRecvMsgSize(r.config.MaxBody),
		grpc.MaxConcurrentStreams(maxReceiving),
	)
	for sig, service := range [signals]string{
		traces:  "opentelemetry.proto.collector.trace.v1.TraceService",
		metrics: "opentelemetry.proto.collector.metrics.v1.MetricsService",
		logs:    "opentelemetry.proto.collector.logs.v1.LogsService",
	} {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: service,
			HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{
				MethodName: "Export",
				Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
					return r.grpcExport(ctx, signal(sig), decode)
				},
			}},
		}, r)
	}
	return s
}

func (r *Receiver) grpcExport(ctx context.Context, s signal, decode func(any) error) (any, error) {
	if err := r.begin(ctx); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	defer r.end()
	var body []byte
	if err := decode(&body); err != nil {
		return nil, err
	}
	return r.receive(ctx, s, protobuf, body)
}

// rawCodec passes messages as bytes.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, status.Errorf(codes.Internal, "cannot write a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(message)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	body, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot read a %T", v)
	}
	*body = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }
