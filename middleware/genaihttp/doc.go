// Package genaihttp attaches tracing to the HTTP side of a GenAI service in one
// line each:
//
//	http.Handle("/", genaihttp.NewHandler(gateway))
//
//	http.Handle("/", genaihttp.NewReverseProxy(&httputil.ReverseProxy{Rewrite: toModelServer}))
//
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{
//		Transport: genaihttp.NewTransport(http.DefaultTransport),
//	}))
//
// [NewHandler] makes the SERVER span of a gateway and reads the time to first
// token from the stream that the handler writes. [NewTransport] makes the CLIENT
// span of a model call ("chat {model}") and reads the answer as it passes: first
// chunk, time to first token, usage, finish reasons, errors inside a 200 answer,
// and how the stream ended. Both end their span exactly once, however the stream
// dies, and both understand the APIs of OpenAI and the servers that speak it,
// Anthropic, Gemini, Bedrock, Ollama, llama.cpp, Text Generation Inference, SGLang,
// Triton and KServe: package wire finds out which it is. [WithEndpoint] adds others.
// [NewReverseProxy] is both at once, and parses each stream once.
//
// The bytes that pass are never changed, held back or kept, and no content of
// prompts or answers is recorded, whatever genaitrace.WithContent says: that is for
// the code that has the messages, which gives them to
// genaitrace.CallFromContext(ctx).SetInput. Flush, http.ResponseController, Hijack
// and io.ReaderFrom work through the handler as without it. Providers come by
// option and default to the OpenTelemetry globals; propagation defaults to W3C
// Trace Context and baggage. Inside otelhttp's handler, ours is its child. Where a
// client library makes the span of a call itself, that span is enriched.
//
// [Check] at the start, and [Probe] as a health endpoint, send a synthetic request
// through the installed handler and transport and say what of the trace is missing,
// and what mends it. [WithTraceResponse] tells callers which span served them.
package genaihttp
