package genaigrpc_test

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

const (
	modelInfer       = "/inference.GRPCInferenceService/ModelInfer"
	modelStreamInfer = "/inference.GRPCInferenceService/ModelStreamInfer"
)

// A protocol is one copy of the Open Inference Protocol, apart from every other:
// the two that generated code has cannot be in one program.
type protocol struct{ file protoreflect.FileDescriptor }

func newProtocol(tb testing.TB, methods ...string) protocol {
	tb.Helper()
	text, err := os.ReadFile("testdata/openinference.txtpb")
	require.NoError(tb, err)
	file := &descriptorpb.FileDescriptorProto{}
	require.NoError(tb, prototext.Unmarshal(text, file))
	file.Name = proto.String("openinference.proto")
	for _, name := range methods {
		file.Service[0].Method = append(file.Service[0].Method, &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(".inference.ModelInferRequest"),
			OutputType: proto.String(".inference.ModelStreamInferResponse"),
		})
	}
	d, err := protodesc.NewFile(file, nil)
	require.NoError(tb, err)
	return protocol{d}
}

func kserve(tb testing.TB) protocol { tb.Helper(); return newProtocol(tb) }

func triton(tb testing.TB) protocol {
	tb.Helper()
	return newProtocol(tb, "ModelStreamInfer", "SystemSharedMemoryRegister")
}

func (p protocol) empty(name protoreflect.Name) proto.Message {
	return dynamicpb.NewMessage(p.file.Messages().ByName(name))
}

// message returns a message from its JSON.
func (p protocol) message(tb testing.TB, name protoreflect.Name, json string) proto.Message {
	tb.Helper()
	m := p.empty(name)
	require.NoError(tb, protojson.Unmarshal([]byte(json), m), json)
	return m
}

func (p protocol) request(tb testing.TB, json string) proto.Message {
	tb.Helper()
	return p.message(tb, "ModelInferRequest", json)
}

func (p protocol) streamed(tb testing.TB, json string) proto.Message {
	tb.Helper()
	return p.message(tb, "ModelStreamInferResponse", json)
}

// A tensorService serves the protocol.
type tensorService struct {
	infer  func(ctx context.Context, in proto.Message) (proto.Message, error)
	stream func(stream grpc.ServerStream) error
}

var tensorStream = grpc.StreamDesc{StreamName: "ModelStreamInfer", ServerStreams: true, ClientStreams: true}

func (p protocol) serviceDesc() *grpc.ServiceDesc {
	stream := tensorStream
	stream.Handler = func(srv any, stream grpc.ServerStream) error { return srv.(tensorService).stream(stream) }
	return &grpc.ServiceDesc{
		ServiceName: "inference.GRPCInferenceService",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "ModelInfer",
			Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := p.empty("ModelInferRequest")
				if err := decode(in); err != nil {
					return nil, err
				}
				return srv.(tensorService).infer(ctx, in)
			},
		}},
		Streams: []grpc.StreamDesc{stream},
	}
}

// serve connects a client to s over memory, both with a handler.
func (p protocol) serve(tb testing.TB, o *telemetry, s tensorService, opts ...genaigrpc.Option) link {
	tb.Helper()
	listener := bufconn.Listen(1 << 20)
	return p.serveOn(tb, o, s, listener, func(ctx context.Context) (net.Conn, error) { return listener.DialContext(ctx) }, opts...)
}

// serveLoopback is serve over a socket.
func (p protocol) serveLoopback(tb testing.TB, o *telemetry, s tensorService, opts ...genaigrpc.Option) link {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	return p.serveOn(tb, o, s, listener, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}, opts...)
}

func (p protocol) serveOn(tb testing.TB, o *telemetry, s tensorService, listener net.Listener, dial func(context.Context) (net.Conn, error), opts ...genaigrpc.Option) link {
	tb.Helper()
	gs := grpc.NewServer(grpc.WaitForHandlers(true), grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(opts...)...)))
	gs.RegisterService(p.serviceDesc(), s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = gs.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///triton:8001", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opts...)...)))
	require.NoError(tb, err)
	l := link{server: gs, conn: conn, stop: func() {
		_ = conn.Close()
		gs.Stop()
		<-served
	}}
	tb.Cleanup(l.stop)
	return l
}
