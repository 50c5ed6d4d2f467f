package contracttest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/genaitrace/otelgenai/capture"
)

// Synctest runs a test in a bubble of testing/synctest, whose clock moves on only
// while everything waits: times are the same in every run, so the contract is held
// without tolerance. An assertion first waits until the goroutines of the test have
// done what they can.
//
// Real sockets do not work in a bubble: use net.Pipe, bufconn, or call the handler.
func Synctest(t *testing.T, from Source, test func(t *testing.T, obs *Observer), opts ...capture.Option) {
	t.Helper()
	now := time.Now() // in the bubble it is the year 2000
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		obs := newObserver(t, from, opts)
		obs.bubble, obs.now = true, now
		obs.start(t)
		test(t, obs)
	})
}
