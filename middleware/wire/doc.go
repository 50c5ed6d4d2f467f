// Package wire reads what passes on the wire of a model call, as it passes: it
// is handed the bytes that were read or written and reports chunks, usage,
// finish reasons and errors to a [genaitrace.Call]. It never holds a byte back,
// never changes one, and keeps at most a few times [MaxEvent] bytes of what is not
// complete yet.
//
//	s := wire.NewStream(call, wire.Exchange{Path: req.URL.Path, Response: resp.Header})
//	n, err := body.Read(p)
//	s.Push(p[:n])          // on each read
//	s.End(err)             // once: io.EOF, a broken connection, a cancelled context
//	call.End()
//
// The HTTP middleware of this module uses it; a service that moves streams by
// other means can use it alone.
//
// A body is split into events by its content type: server-sent events after the
// WHATWG standard (LF, CR, CRLF, byte order mark, any split), JSON lines, AWS
// event-stream, or an array that is written piece by piece. A [Dialect] reads the
// events: [OpenAI] and what vLLM, SGLang, llama.cpp, Groq, Fireworks, DeepSeek,
// OpenRouter and others add to it, [Responses], [Anthropic], [Gemini], [Bedrock],
// [Ollama], [LlamaCPP], [TGI], [SGLang] and [Triton]. It is found out from the path,
// the headers and the first event that looks like one of them, unless it is named.
//
// What is told is one vocabulary for all: input tokens include those of a cache and
// output tokens those of reasoning, finish reasons stay as they were received, and
// genai.stream.terminal says how a stream ended. What a server did not tell is
// absent. Durations that an engine reports of its own work ([EngineTimes]) keep
// every digit.
package wire
