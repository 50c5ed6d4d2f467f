package genaitrace

import (
	"context"
	"fmt"
)

// Do makes a model call that has one answer, and records it: the span of
// [Tracer.StartCall] ends when do returns or panics, and the result passes
// unchanged. The call goes by the context that do gets; [CallFromContext] takes
// it from there, to note what the answer tells:
//
//	answer, err := genaitrace.Do(ctx, tr, req, func(ctx context.Context) (*Answer, error) {
//		answer, err := client.Complete(ctx, prompt)
//		if err == nil {
//			genaitrace.CallFromContext(ctx).SetUsage(genaitrace.Usage{OutputTokens: new(answer.Tokens)})
//		}
//		return answer, err
//	})
//
// Any error makes the call a failure (see [Call.Fail]), io.EOF too: it is how a
// dropped connection looks. Where nothing records, do is all that runs. For
// streams see [RangeChunks].
func Do[T any](ctx context.Context, t *Tracer, req Request, do func(context.Context) (T, error)) (answer T, err error) {
	var cause error
	ctx, call := t.StartCall(ctx, req)
	defer call.EndErr(&cause)
	answer, err = do(ctx)
	if err != nil {
		cause = fmt.Errorf("call: %w", err) // Fail would take a bare io.EOF for the end of a stream
	}
	return answer, err
}
