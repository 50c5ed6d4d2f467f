package genaigrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
)

// serveStream serves the method toy.Engine/Generate on the loopback interface.
func serveStream(handler grpc.StreamHandler, opts ...grpc.ServerOption) (address string, stop func()) {
	server := grpc.NewServer(opts...)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "toy.Engine", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
		{StreamName: "Generate", ServerStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				return err
			}
			return handler(srv, stream)
		}},
	}}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	return listener.Addr().String(), func() {
		server.GracefulStop()
		<-served
	}
}

// askForTokens calls it and returns how many messages came.
func askForTokens(ctx context.Context, conn *grpc.ClientConn) (n int) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "Generate", ServerStreams: true}, "/toy.Engine/Generate")
	if err != nil {
		panic(err)
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.String("hello")), stream.CloseSend()); err != nil {
		panic(err)
	}
	for {
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			panic(err)
		}
		n++
	}
}

// The handler of an engine sends each token as a message: its stream drives the
// token clock.
func ExampleSendTokens() {
	spans := tracetest.NewSpanRecorder()
	tracer := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))

	address, stop := serveStream(func(_ any, stream grpc.ServerStream) (err error) {
		ctx, inf := tracer.StartInference(stream.Context(), genaitrace.Request{Model: "toy-1", Stream: true})
		defer inf.EndErr(&err)
		_, decode := inf.StartDecode(ctx)

		stream = genaigrpc.SendTokens(stream, decode, nil)
		for _, token := range []string{"Hel", "lo", "!"} {
			if err := stream.SendMsg(wrapperspb.String(token)); err != nil {
				return err
			}
		}
		return nil
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	askForTokens(context.Background(), conn)
	_ = conn.Close()
	stop()

	for _, span := range spans.Ended() {
		for _, a := range span.Attributes() {
			if a.Key == semconv.GenAITokenCountKey {
				fmt.Println(span.Name(), a.Value.AsInt64())
			}
		}
	}
	// Output:
	// inference.decode 3
}

// Every RPC of a method is a model call, without a word from those who make it.
func ExampleWithModelCall() {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	address, stop := serveStream(func(_ any, stream grpc.ServerStream) error {
		return errors.Join(stream.SendMsg(wrapperspb.String("Hel")), stream.SendMsg(wrapperspb.String("lo!")))
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(
			genaigrpc.WithTracerProvider(tp),
			genaigrpc.WithModelCall(genaigrpc.ModelCall{
				Method:   "toy.Engine/Generate",
				Provider: "toy",
				Request:  func(any) genaitrace.Request { return genaitrace.Request{Model: "toy-1"} },
			}),
		)))
	if err != nil {
		panic(err)
	}
	askForTokens(context.Background(), conn)
	_ = conn.Close()
	stop()

	for _, span := range spans.Ended() {
		fmt.Println(span.Name(), span.SpanKind())
		for _, a := range span.Attributes() {
			if a.Key == semconv.GenAIChunkCountKey || a.Key == semconv.GenAIStreamTerminalKey {
				fmt.Println(" ", a.Key, a.Value.String())
			}
		}
	}
	// Output:
	// chat toy-1 client
	//   genai.chunk.count 2
	//   genai.stream.terminal eof
}
