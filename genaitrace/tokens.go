package genaitrace

import (
	"errors"
	"io"
	"iter"
	"time"

	"github.com/genaitrace/otelgenai/semconv"
)

// RangeTokens records the tokens that an engine generates while they are ranged
// over, as [Decode.Token] and the end of the phase would. The items pass
// unchanged, one reading of the clock and no allocation each. Where d is nil it
// returns seq itself.
//
// count says how many tokens an item holds; nil means one each, and 0 that the
// item is none. Where it panics, or is negative, the item is not counted but in
// genai.telemetry.faults.
//
// The phase ends once, when the iteration does: as failed where the source
// yields an error last (io.EOF is a good end) or where loop or source panics, as
// an early stop where the inference's context has ended, and well otherwise, also
// where the loop breaks: that is how a stop sequence ends generation. An iteration
// that nobody ends does so with its inference.
func RangeTokens[T any](d *Decode, seq iter.Seq2[T, error], count func(T) int) iter.Seq2[T, error] {
	if d == nil || d.inf == nil {
		return seq
	}
	return func(yield func(T, error) bool) {
		var last iteration
		defer last.endDecode(d)
		for item, err := range seq {
			if last.took(err) {
				stampTokens(d, item, count)
			}
			if !yield(item, err) {
				return
			}
		}
		last.complete = true
	}
}

// ReceiveTokens is [RangeTokens] for a function that returns the next tokens of
// an engine. Its first error ends the phase; io.EOF ends it well. Who stops
// receiving before that ends d.
func ReceiveTokens[T any](d *Decode, recv func() (T, error), count func(T) int) func() (T, error) {
	if d == nil || d.inf == nil {
		return recv
	}
	return func() (T, error) {
		defer d.endOnPanic()
		item, err := recv()
		if err != nil {
			d.endStream(err, time.Time{})
			return item, err
		}
		stampTokens(d, item, count)
		return item, nil
	}
}

func stampTokens[T any](d *Decode, item T, count func(T) int) {
	if count == nil {
		d.Token()
		return
	}
	if n := countTokens(d, item, count); n != 0 {
		d.Tokens(n)
	}
}

var errTokenCounter = errors.New("decode: counter of tokens panicked: its item is not counted")

// countTokens lets no panic of the counter reach the engine.
func countTokens[T any](d *Decode, item T, count func(T) int) (n int) {
	defer func() {
		if recover() != nil {
			d.inf.t.metrics.fault(d.inf.ctx, semconv.GenAIFaultPanic, errTokenCounter)
			n = 0
		}
	}()
	return count(item)
}

// endDecode is for defer.
func (i *iteration) endDecode(d *Decode) {
	if r := recover(); r != nil {
		d.close(nil, panicked, time.Time{})
		panic(r)
	}
	if i.err != nil {
		d.endStream(i.err, i.at)
		return
	}
	d.endStream(io.EOF, time.Time{}) // a break, too, is how generation ends
}

// endOnPanic is for defer.
func (d *Decode) endOnPanic() {
	if r := recover(); r != nil {
		d.close(nil, panicked, time.Time{})
		panic(r)
	}
}

// endStream ends the phase with the error that ended its tokens, io.EOF where
// they ended well. An engine that just stops when the context ends has not.
func (d *Decode) endStream(err error, at time.Time) {
	if err == io.EOF { //nolint:errorlint // wrapped, it is the cause of something else
		err = d.inf.ctx.Err()
	}
	d.close(err, 0, at)
}
