package wire_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// A hasty decoder reads in a goroutine of its own, against the contract, and goes on
// with it when it has given up.
type hasty struct{ encoded io.Reader }

func (h hasty) Read([]byte) (int, error) {
	go io.Copy(io.Discard, h.encoded)
	time.Sleep(time.Second)
	return 0, errors.New("corrupt")
}

func TestADecoderThatReadsOnByItselfDoesNotBreakTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // waits for the decoder's goroutine
		o := newObserver()
		span := o.call(func(c *genaitrace.Call) {
			s := wire.NewStream(c, wire.Exchange{
				Response: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"hasty"}},
				Decoders: map[string]wire.Decoder{"hasty": func(r io.Reader) io.Reader { return hasty{r} }},
			})
			for range 3 {
				s.Push([]byte("data: {}\n\n"))
				time.Sleep(time.Second)
			}
			s.End(nil)
		})
		assert.NotContains(t, attributes(span), "genai.stream.terminal", "its end may be in what was not read")
	})
}
