// Package wire reads what passes on the wire of a model call, as it passes: it
// is handed the bytes that were read or written and reports chunks, usage,
// finish reasons and errors to a [genaitrace.Call]. It never holds a byte back,
// never changes one, and keeps at most [MaxEvent] bytes of an event that is not
// complete yet.
//
//	s := wire.NewStream(call)
//	n, err := body.Read(p)
//	s.Push(p[:n])          // on each read
//	s.End(err)             // once: io.EOF, a broken connection, a cancelled context
//	call.End()
//
// The HTTP middleware of this module uses it; a service that moves streams by
// other means can use it alone. Server-sent events are parsed after the WHATWG
// standard (LF, CR, CRLF, byte order mark, any split). The dialect is OpenAI's
// chat completions, which vLLM, llama.cpp, Ollama and many gateways speak.
package wire
