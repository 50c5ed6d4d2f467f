package genaigrpc_test

import (
	"context"
	"fmt"
	"net"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// A server and a client of it, each with one handler.
func Example() {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	server := grpc.NewServer(grpc.StatsHandler(genaigrpc.NewServerHandler(genaigrpc.WithTracerProvider(tp))))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()

	conn, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(genaigrpc.WithTracerProvider(tp))))
	if err != nil {
		panic(err)
	}
	_, err = healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
	server.GracefulStop()
	<-served

	for _, span := range spans.Ended() {
		fmt.Println(span.Name(), span.SpanKind())
	}
	// Unordered output:
	// grpc.health.v1.Health/Check server
	// grpc.health.v1.Health/Check client
}

// An RPC made with the context of a model call is that call: one span.
func ExampleNewClientHandler() {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	tracer := genaitrace.New(genaitrace.WithTracerProvider(tp))

	conn, err := grpc.NewClient("passthrough:///engine:8033",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed }),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(genaigrpc.WithTracerProvider(tp))))
	if err != nil {
		panic(err)
	}
	ctx, call := tracer.StartCall(context.Background(), genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	call.Fail(err)
	_ = conn.Close()

	for _, span := range spans.Ended() {
		fmt.Println(span.Name(), span.SpanKind(), span.Status().Code)
		for _, a := range span.Attributes() {
			if a.Key == "rpc.method" || a.Key == "error.type" {
				fmt.Println(" ", a.Key, a.Value.AsString())
			}
		}
	}
	// Output:
	// chat qwen2.5-7b-instruct client Error
	//   rpc.method grpc.health.v1.Health/Check
	//   error.type UNAVAILABLE
}
