// Package waterfall draws a trace, in a terminal or as a page: the tree of its spans, a bar
// for each span, and below it the facts that a reader of a model call asks for
// first, which are the time to first token, the speed of the tokens and where
// the time to first token went.
//
//	err := waterfall.Render(os.Stdout, spans, waterfall.Options{})
//
// RenderPage draws the same as a page for a browser, with the attributes and events
// of each span and the times of its tokens. Package view makes spans of a capture
// ready for both.
//
// It works for any trace. The facts are read from the attributes that genaitrace
// and the middleware write (llm.ttft_ms, genai.ttft.*_ms, genai.last_token_ms and
// the token counts). A value that no span carries is left out; nothing is
// estimated and nothing is filled with zero. Durations are in milliseconds.
//
// The table below the tree says who measured: "gateway" is a server on the way,
// "model call" is the span of an outgoing call to a model, such as that of the
// gateway, and "engine" is the span where the model runs. Each counts the time to
// first token from the start of its own span, so it shrinks from row to row.
//
// Behind a span that failed stands a ✗. A server that refuses a request has not
// failed itself; behind its span stands the HTTP or gRPC status, such as 404.
//
// The input may be damaged: spans whose parent is missing become further roots,
// cycles are cut, spans without an end are drawn to the end of the trace, and
// names are escaped so that they cannot drive the terminal. Render does not
// change its input and keeps nothing of it.
package waterfall
