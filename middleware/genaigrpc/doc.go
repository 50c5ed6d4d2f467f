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
// however the RPC dies: also where gRPC never reports an end, because a stream is
// neither read to its end nor cancelled, or because a handler does not return
// ([WithIdleTimeout]).
//
// # Model calls
//
// Some RPCs are known to call a model, without a word from the caller: ModelInfer
// and ModelStreamInfer of KServe and Triton, and what [WithModelCall] names. Their
// messages are read as gRPC reports them, by the names of their protobuf fields. The
// client's span is then the model call itself ("inference resnet50"), the server's
// has the facts of the request: model, version, request ID, shape of the tensors
// (genai.tensor_shape, genai.tensor.inputs), genai.backend_type, genai.content_type,
// and genai.trace_flags as they arrived.
//
// One ModelStreamInfer has any number of requests. Each is a span of its own below
// that of the RPC, with its chunks, its time to first token and its end: the answer
// that Triton marks with triton_final_response, an error inside the stream, or the
// end of the stream. Not more than 1000 requests of a stream are followed at a time.
//
// A handler that generates tokens binds its stream to the token clock with
// [SendTokens], a client with [ReceiveChunks].
//
// # What it never does
//
// Change or hold back messages, keep one, or record what it says to a model; record
// metadata or the text of an error; let strangers choose names; fail an RPC for
// the sake of a header; change metadata in place; set an OpenTelemetry global;
// keep a goroutine. A message of an RPC that is no model call is not looked at: it
// costs a look-up in the context and allocates nothing.
//
// Providers come by option and default to the OpenTelemetry globals;
// propagation defaults to W3C Trace Context and baggage. Behind another stats
// handler that starts a span, such as otelgrpc's, the SERVER span is its child.
package genaigrpc
