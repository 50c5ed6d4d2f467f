package wire_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
)

// A middleware that holds back a whole answer may do so with one of any length. Its
// chunks count when they leave, and until then cost nothing.
func TestChunksThatWaitCostNothingAndCountWhenTheyLeave(t *testing.T) {
	const chunks = 300_000
	for name, observe := range map[string]func(*genaitrace.Call) (s *wire.Stream, leave func()){
		"read, not written": func(gateway *genaitrace.Call) (*wire.Stream, func()) {
			s := wire.NewStream(nil, wire.Exchange{})
			s.Push([]byte(roleEvent))
			f := s.Follow(gateway)
			return s, func() { f.Written(); f.Sent(); f.End(nil) }
		},
		"written, not sent": func(gateway *genaitrace.Call) (*wire.Stream, func()) {
			s := wire.NewHeldStream(gateway, wire.Exchange{})
			return s, func() { s.Sent(); s.End(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				span := newObserver().call(func(gateway *genaitrace.Call) {
					s, leave := observe(gateway)
					s.Push([]byte(textEvent)) // its shape is known then
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					event := []byte(textEvent)
					for range chunks {
						s.Push(event)
					}
					runtime.ReadMemStats(&after)
					assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10), "bytes allocated")
					time.Sleep(time.Second)
					leave()
				})
				got := attributes(span)
				assert.EqualValues(t, chunks+1, got[semconv.GenAIChunkOutputCountKey])
				assert.InDelta(t, 1000, got[semconv.LLMTTFTMsKey], 0.1)
			})
		})
	}
}
