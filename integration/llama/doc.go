// Package llama is a small inference service around llama.cpp, in this process: slots
// that share one batch, a queue before them, chunked prefill, a prefix cache in each
// slot, and cancelling between two steps. It is instrumented the way an engine of one's
// own would be, and open about what llama.cpp itself measured.
//
//	engine, err := llama.Open(llama.Config{Library: dir, Model: "model.gguf", Slots: 2, Tracer: tracer})
//	defer engine.Close()
//	answer, err := engine.Generate(ctx, llama.Request{Prompt: "Once upon a time", MaxTokens: 100}, send)
package llama
