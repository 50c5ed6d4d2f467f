// Package deadline tells a passed deadline from a client that went away.
//
//	if errors.Is(err, context.Canceled) && deadline.Reached(ctx) { … } // too late, not cancelled
package deadline

import (
	"context"
	"time"
)

// slack is how much earlier than our own end of a deadline its other end may
// reach us. Both sides keep it, counted from when each of them learnt of it, and
// whoever is first cancels: the cancellation of a client that waited long enough
// arrives about when our own deadline passes.
const slack = 10 * time.Millisecond

// Reached reports whether ctx has a deadline that has passed, or is so near that
// a cancellation now is its doing.
func Reached(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) <= slack
}
