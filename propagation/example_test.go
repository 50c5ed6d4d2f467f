package propagation_test

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// A gateway continues over gRPC the trace that an HTTP request brought.
func Example() {
	bridge := propagation.New(propagation.WithFormats(propagation.TraceBin))

	request := http.Header{}
	request.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	request.Add("Tracestate", "ot=th:8")
	request.Add("Tracestate", "vendor=x")
	ctx := bridge.Extract(context.Background(), propagation.HTTPHeader(request))

	md := metadata.MD{}
	bridge.Inject(ctx, propagation.GRPCMetadata(md))
	fmt.Println(md["traceparent"])
	fmt.Println(md["tracestate"])
	fmt.Printf("%x\n", md["grpc-trace-bin"])
	// Output:
	// [00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01]
	// [ot=th:8,vendor=x]
	// [00004bf92f3577b34da6a3ce929d0e0e47360100f067aa0ba902b70201]
}

// Keys are lower-cased, and what would make the RPC fail is left out.
func ExampleGRPCMetadata() {
	md := metadata.MD{}
	carrier := propagation.GRPCMetadata(md)
	carrier.Set("X-Tenant", "acme")
	carrier.Set("X-Prompt-Trace", "user→router")
	fmt.Println(md["x-tenant"], md.Len())
	// Output:
	// [acme] 1
}

// A binary value is base64 in an HTTP header, and bytes again where it is read.
func ExampleHTTPHeader() {
	header := http.Header{}
	carrier := propagation.HTTPHeader(header)
	carrier.Set("x-data-bin", "\x00\x01\xFE\xFF")
	fmt.Println(header)
	fmt.Printf("%q\n", carrier.Get("x-data-bin"))
	// Output:
	// map[X-Data-Bin:[AAH+/w]]
	// "\x00\x01\xfe\xff"
}

// A client marks what it sends, so that the server does not report the tokens
// of the same call a second time.
func ExampleContextWithCallerMark() {
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{15: 1},
		SpanID:  trace.SpanID{7: 1},
	}))
	header := http.Header{}
	propagation.New().Inject(propagation.ContextWithCallerMark(ctx), propagation.HTTPHeader(header))
	fmt.Println(header["Tracestate"])

	ctx = propagation.New().Extract(context.Background(), propagation.HTTPHeader(header))
	fmt.Println(propagation.HasCallerMark(trace.SpanContextFromContext(ctx)))
	// Output:
	// [genai=c:1]
	// true
}
