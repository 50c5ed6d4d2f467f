// Package chatapi is the part of OpenAI's chat completions API that servers of the
// examples speak: [ReadRequest] checks what came, a [Writer] sends the answer, whole
// or streamed, and an [Error] is what OpenAI clients read.
package chatapi
