package genaigrpc_test

import (
	"context"
	"fmt"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/sampling"
)

// A service that tells its callers what it keeps, and follows its own callees.
func ExampleTailServerOptions() {
	tail, err := sampling.NewTail(tracetest.NewInMemoryExporter(), sampling.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	opts := []genaigrpc.Option{
		genaigrpc.WithTracerProvider(tp), genaigrpc.WithMeterProvider(metricnoop.NewMeterProvider()),
		genaigrpc.WithTailSampler(tail),
	}
	server := grpc.NewServer(append(genaigrpc.TailServerOptions(tail),
		grpc.StatsHandler(genaigrpc.NewServerHandler(opts...)))...)
	callees := grpc.WithStatsHandler(genaigrpc.NewClientHandler(opts...)) // for grpc.NewClient
	_ = callees
	server.Stop()
	fmt.Println(tail.Shutdown(context.Background()))
	// Output: <nil>
}
