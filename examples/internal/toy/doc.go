// Package toy is an inference engine in miniature, for the examples. It is no
// language model: its answers come from a few rules, or, where a system message gives
// sources, are the sentence of them that fits best, quoted. Where one offers tools, a
// short script decides by the words of the question and by the results so far which of
// them to call. The time that a model would compute is spent asleep, by a cost model of
// three constants.
//
// What happens around the model is real, because that is what a trace shows: a
// bounded queue before a limited number of slots, first come first served; a
// tokenizer; prefill in chunks that takes longer for a longer prompt; a prefix
// cache that shortens it; an answer that leaves token by token, stops at the
// token limit and stops at once when the caller goes away. Requests in different
// slots do not slow each other down, as they would on one accelerator.
//
// [Engine.Generate] is instrumented as a real engine would be. It is the place to
// look when you instrument yours.
package toy
