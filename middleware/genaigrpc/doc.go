// Package genaigrpc attaches tracing to gRPC servers and clients with one
// stats handler each, for unary and streaming RPCs:
//
//	server := grpc.NewServer(grpc.StatsHandler(genaigrpc.NewServerHandler()))
//
//	conn, err := grpc.NewClient("dns:///engine:8033", credentials,
//		grpc.WithStatsHandler(genaigrpc.NewClientHandler()))
//
//	ctx, call := tracer.StartCall(ctx, genaitrace.Request{
//		Provider: "vllm", Model: "qwen2.5-7b-instruct", Stream: true})
//	stream, err := client.Generate(ctx, prompt) // this RPC is the call: one span
//
// [NewServerHandler] makes the SERVER span of an inference service and notes
// when the request arrived, from which an engine's TTFT counts.
// [NewClientHandler] passes the trace on, feeds the model call that an RPC
// belongs to, and gives other RPCs a CLIENT span. Every span ends exactly once,
// however the RPC dies; the one exception, a client stream that is neither read
// to its end nor cancelled, is gRPC's own.
//
// What it never does: read, change, hold back or count messages; record
// metadata or the text of an error; let strangers choose names; fail an RPC for
// the sake of a header; change metadata in place; set an OpenTelemetry global;
// keep a goroutine. A message allocates nothing: it costs a type switch, on the
// way out of a client also a look-up in the context.
//
// Providers come by option and default to the OpenTelemetry globals;
// propagation defaults to W3C Trace Context and baggage. Behind another stats
// handler that starts a span, such as otelgrpc's, the SERVER span is its child.
package genaigrpc
