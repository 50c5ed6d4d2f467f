package propagation_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// A gateway continues over gRPC the trace that an HTTP request brought.
func Example() {
	bridge := propagation.New(propagation.WithFormats(propagation.TraceBin))

	request := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", http.NoBody)
	request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	request.Header.Add("Tracestate", "ot=th:8")
	request.Header.Add("Tracestate", "vendor=x")

	ctx := bridge.ToGRPC(bridge.FromHTTP(request))

	md, _ := metadata.FromOutgoingContext(ctx)
	fmt.Println(md["traceparent"])
	fmt.Println(md["tracestate"])
	fmt.Printf("%x\n", md["grpc-trace-bin"])
	// Output:
	// [00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01]
	// [ot=th:8,vendor=x]
	// [00004bf92f3577b34da6a3ce929d0e0e47360100f067aa0ba902b70201]
}

// Of several formats one counts, and what contradicts it is reported.
func ExampleBridge_Receive() {
	bridge := propagation.New(propagation.WithReadFormats(propagation.B3, propagation.XTraceID))
	_, got := bridge.Receive(context.Background(), propagation.Map{
		"b3":         "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
		"x-trace-id": "order-2026/07#42",
	})
	fmt.Println(got.Format, got.SpanContext.TraceID(), got.Sampling)
	fmt.Println(got.Conflicts[0].Source, got.Conflicts[0].SpanContext.TraceID())
	// Output:
	// b3 4bf92f3577b34da6a3ce929d0e0e4736 deferred
	// x-trace-id d94b0a7be12bc62c2d613abc25484c8d
}

// A third party gets the traceparent alone.
func ExampleBridge_ToHTTP() {
	bridge := propagation.New(propagation.WithTrustedHosts("gateway.example.com"))
	ctx := bridge.Extract(context.Background(), propagation.Map{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"baggage":     "customer=acme",
	})
	for _, url := range []string{"http://engine:8000/", "https://gateway.example.com/", "https://api.openai.com/"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
		if err != nil {
			panic(err)
		}
		bridge.ToHTTP(req)
		fmt.Println(req.Host, len(req.Header), req.Header["Baggage"])
	}
	// Output:
	// engine:8000 2 [customer=acme]
	// gateway.example.com 2 [customer=acme]
	// api.openai.com 1 []
}

// The context of one tenant is no parent of another's span.
func ExampleContextWithTenant() {
	bridge := propagation.New(propagation.WithTenants([]byte("a key that all our services have")))
	ctx := propagation.ContextWithTenant(context.Background(), "acme")
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{15: 1},
		SpanID:  trace.SpanID{7: 1},
	}))
	sent := propagation.Map{}
	bridge.Inject(ctx, sent)

	for _, tenant := range []string{"acme", "other"} {
		ctx := propagation.ContextWithTenant(context.Background(), tenant)
		ctx, got := bridge.Receive(ctx, sent)
		fmt.Println(tenant, got.Parent, len(propagation.Links(ctx)))
	}
	// Output:
	// acme true 0
	// other false 1
}

// The steps of a prompt, and what the last one was caused by.
func ExampleContextWithHop() {
	span := func(ctx context.Context, n byte) context.Context {
		return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{15: 1},
			SpanID:  trace.SpanID{7: n},
		}))
	}
	ctx := propagation.ContextWithHop(span(context.Background(), 1), "router")
	ctx = propagation.ContextWithHop(span(ctx, 2), "retrieve", trace.SpanID{7: 1})
	ctx = propagation.ContextWithHop(span(ctx, 3), "answer", trace.SpanID{7: 2})

	header := http.Header{}
	bridge := propagation.New(propagation.WithPromptChain())
	bridge.Inject(ctx, propagation.HTTPHeader(header))
	ctx = bridge.Extract(context.Background(), propagation.HTTPHeader(header))

	chain, _ := propagation.PromptChainFromContext(ctx)
	for _, hop := range chain.Backtrace(trace.SpanID{7: 3}) {
		fmt.Println(hop.SpanID, hop.Name)
	}
	// Output:
	// 0000000000000003 answer
	// 0000000000000002 retrieve
	// 0000000000000001 router
}

// A record of Kafka, with the header type of a client library.
func ExampleNewKafka() {
	type RecordHeader struct { // of franz-go
		Key   string
		Value []byte
	}
	var headers []RecordHeader
	ctx := propagation.W3C.Extract(context.Background(), propagation.Map{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	propagation.New().Inject(ctx, propagation.NewKafka(&headers))
	fmt.Printf("%s: %s\n", headers[0].Key, headers[0].Value)
	// Output:
	// traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}

// A message of a WebSocket carries the context of its own request.
func ExampleWriteEnvelope() {
	message := []byte(`{"type": "response.create", "metadata": {"user": "u1"}}`)
	message, err := propagation.WriteEnvelope(message, propagation.Map{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	fmt.Println(string(message), err)
	ctx := propagation.New().Extract(context.Background(), propagation.ReadEnvelope(message))
	fmt.Println(trace.SpanContextFromContext(ctx).SpanID())
	// Output:
	// {"type": "response.create", "metadata": {"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","user":"u1"}} <nil>
	// 00f067aa0ba902b7
}

// A server tells which span served the request.
func ExampleInjectResponse() {
	ctx := propagation.W3C.Extract(context.Background(), propagation.Map{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	header := http.Header{"Server-Timing": {"queue;dur=12.5"}}
	propagation.InjectResponse(ctx, propagation.HTTPHeader(header))
	fmt.Println(header["Server-Timing"])

	response := propagation.ReadResponse(propagation.HTTPHeader(header))
	fmt.Println(response.SpanContext.SpanID(), response.Durations["queue"])
	// Output:
	// [queue;dur=12.5, trace;desc=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01]
	// 00f067aa0ba902b7 12.5ms
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
