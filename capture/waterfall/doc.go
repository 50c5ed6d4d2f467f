// Package waterfall draws a trace in a terminal: the tree of its spans, a bar
// for each span, and below it the facts that a reader of a model call asks for
// first, which are the time to first token, the speed of the tokens and where
// the time to first token went.
//
//	err := waterfall.Render(os.Stdout, spans, waterfall.Options{})
//
// It works for any trace. The facts are read from the attributes that genaitrace
// and the middleware write (llm.ttft_ms, genai.ttft.*_ms, genai.last_token_ms and
// the token counts). A value that no span carries is left out; nothing is
// estimated and nothing is filled with zero.
//
// The input may be damaged: spans whose parent is missing become further roots,
// cycles are cut, spans without an end are drawn to the end of the trace, and
// names are escaped so that they cannot drive the terminal. Render does not
// change its input and keeps nothing of it.
package waterfall
