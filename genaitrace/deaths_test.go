package genaitrace_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A source gives its items 10 ms apart and then ends in some way.
type source struct {
	ctx   context.Context
	items int
	end   func() (string, error)
	mute  bool // ends well when its context ends
	given int
}

const sourceGap = 10 * time.Millisecond

func (s *source) next() (string, error) {
	select {
	case <-s.ctx.Done():
		if s.mute {
			return "", io.EOF
		}
		return "", s.ctx.Err()
	case <-time.After(sourceGap):
	}
	if s.given == s.items {
		return s.end()
	}
	s.given++
	return fmt.Sprint("item", s.given), nil
}

// seq yields until the source ends; io.EOF is what a sequence has no word for.
func (s *source) seq() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			item, err := s.next()
			if err == io.EOF || !yield(item, err) || err != nil {
				return
			}
		}
	}
}

func (s *source) Read(p []byte) (int, error) {
	item, err := s.next()
	return copy(p, item), err
}

// A wrapped stream, whatever it was made with.
type wrapped struct {
	each func(func(item string, err error) bool) // until it ends or the consumer returns false, which stops it
	stop func()                                  // from another goroutine; nil where there is no such thing
}

// wrappers are all ways to record the stream of a call.
var wrappers = map[string]func(*genaitrace.Call, *source, func(*genaitrace.Call, string) genaitrace.ChunkKind) wrapped{
	"RangeChunks": func(call *genaitrace.Call, s *source, observe func(*genaitrace.Call, string) genaitrace.ChunkKind) wrapped {
		seq := genaitrace.RangeChunks(call, s.seq(), observe)
		return wrapped{each: func(consume func(string, error) bool) {
			for item, err := range seq {
				if !consume(item, err) {
					break
				}
			}
		}}
	},
	"ReceiveChunks": func(call *genaitrace.Call, s *source, observe func(*genaitrace.Call, string) genaitrace.ChunkKind) wrapped {
		recv, stop := genaitrace.ReceiveChunks(call, s.next, observe)
		return wrapped{stop: stop, each: func(consume func(string, error) bool) {
			defer stop()
			for {
				item, err := recv()
				if err == io.EOF || !consume(item, err) || err != nil {
					return
				}
			}
		}}
	},
	"ReadChunks": func(call *genaitrace.Call, s *source, observe func(*genaitrace.Call, string) genaitrace.ChunkKind) wrapped {
		var observeBytes func(*genaitrace.Call, []byte) genaitrace.ChunkKind
		if observe != nil {
			observeBytes = func(c *genaitrace.Call, p []byte) genaitrace.ChunkKind { return observe(c, string(p)) }
		}
		body := genaitrace.ReadChunks(call, s, observeBytes)
		return wrapped{stop: func() { body.Close() }, each: func(consume func(string, error) bool) {
			defer body.Close()
			p := make([]byte, 512)
			for {
				n, err := body.Read(p)
				if err == io.EOF || !consume(string(p[:n]), err) || err != nil {
					return
				}
			}
		}}
	},
}

// A death is a way in which a stream can end.
type death struct {
	end     func() (string, error) // of the source after three items; nil: io.EOF
	cancel  time.Duration          // when the context is cancelled
	timeout time.Duration          // when its deadline passes
	stop    time.Duration          // when another goroutine stops the stream
	observe func(*genaitrace.Call, string) genaitrace.ChunkKind
	broken  bool // end is an error, to a reader of bytes a broken stream
	items   int  // 0: three; −1: none

	mute    bool                        // the source ends well when the context ends
	never   bool                        // nobody reads
	dropped int                         // after so many items nobody reads on, without a word
	consume func(item string) (ok bool) // may panic; nil reads on
	panics  any                         // what must pass

	want     semconv.GenAIStreamTerminalAttr // empty: absent
	wantType string                          // empty: status Unset
	chunks   int64
	took     time.Duration
}

var errReset = typedError("reset")

func finishesAt(item string) func(*genaitrace.Call, string) genaitrace.ChunkKind {
	return func(c *genaitrace.Call, got string) genaitrace.ChunkKind {
		if got == item {
			c.SetFinish("stop")
		}
		return genaitrace.Visible
	}
}

func until(last string) func(string) bool { return func(item string) bool { return item != last } }

func TestEveryDeathOfEveryWrappedStreamEndsItsCallOnce(t *testing.T) {
	const (
		done      = semconv.GenAIStreamTerminalDone
		finish    = semconv.GenAIStreamTerminalFinish
		eof       = semconv.GenAIStreamTerminalEOF
		truncated = semconv.GenAIStreamTerminalTruncated
		streamErr = semconv.GenAIStreamTerminalError
		cancelled = semconv.GenAIStreamTerminalClientCancelled
		timeout   = semconv.GenAIStreamTerminalTimeout
	)
	fails := func(err error) func() (string, error) { return func() (string, error) { return "", err } }
	for name, d := range map[string]death{
		"eof":                    {want: eof, chunks: 3, took: 40 * time.Millisecond},
		"eof of an empty stream": {items: -1, took: 10 * time.Millisecond},
		"eof after a finish":     {observe: finishesAt("item3"), want: finish, chunks: 3, took: 40 * time.Millisecond},
		"eof after an end mark": {observe: func(c *genaitrace.Call, item string) genaitrace.ChunkKind {
			if item == "item3" {
				c.SetTerminal(done)
				return genaitrace.NoChunk
			}
			return genaitrace.Visible
		}, want: done, chunks: 2, took: 40 * time.Millisecond},

		"an error":              {end: fails(errReset), broken: true, want: streamErr, wantType: "reset", chunks: 3, took: 40 * time.Millisecond},
		"an error at once":      {end: fails(errReset), broken: true, items: -1, wantType: "reset", took: 10 * time.Millisecond},
		"a broken stream":       {end: fails(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)), want: truncated, wantType: "stream_truncated", chunks: 3, took: 40 * time.Millisecond},
		"a wrapped io.EOF":      {end: fails(fmt.Errorf("dial: %w", io.EOF)), broken: true, want: streamErr, wantType: "_OTHER", chunks: 3, took: 40 * time.Millisecond},
		"a server that cancels": {end: fails(context.Canceled), want: cancelled, chunks: 3, took: 40 * time.Millisecond},

		"the reader leaves":                   {consume: until("item2"), want: cancelled, chunks: 2, took: 20 * time.Millisecond},
		"the reader leaves at once":           {consume: until("item1"), want: cancelled, chunks: 1, took: 10 * time.Millisecond},
		"the reader leaves a complete answer": {consume: until("item2"), observe: finishesAt("item2"), want: finish, chunks: 2, took: 20 * time.Millisecond},

		"stopped while it waits": {stop: 25 * time.Millisecond, want: cancelled, chunks: 2, took: 25 * time.Millisecond},
		"stopped after its end":  {stop: 45 * time.Millisecond, want: eof, chunks: 3, took: 40 * time.Millisecond},

		"cancelled":                   {cancel: 25 * time.Millisecond, want: cancelled, chunks: 2, took: 25 * time.Millisecond},
		"cancelled before an item":    {cancel: 5 * time.Millisecond, want: cancelled, took: 5 * time.Millisecond},
		"cancelled, nobody reads":     {cancel: 25 * time.Millisecond, never: true, want: cancelled, took: 25 * time.Millisecond},
		"cancelled, nobody reads on":  {cancel: 25 * time.Millisecond, dropped: 1, want: cancelled, chunks: 1, took: 25 * time.Millisecond},
		"cancelled once complete":     {cancel: 25 * time.Millisecond, observe: finishesAt("item2"), want: finish, chunks: 2, took: 25 * time.Millisecond},
		"cancelled after its end":     {cancel: 45 * time.Millisecond, want: eof, chunks: 3, took: 40 * time.Millisecond},
		"a deadline":                  {timeout: 25 * time.Millisecond, want: timeout, wantType: "timeout", chunks: 2, took: 25 * time.Millisecond},
		"a deadline, nobody reads":    {timeout: 25 * time.Millisecond, never: true, want: timeout, wantType: "timeout", took: 25 * time.Millisecond},
		"a deadline, nobody reads on": {timeout: 25 * time.Millisecond, dropped: 2, want: timeout, wantType: "timeout", chunks: 2, took: 25 * time.Millisecond},
		"a deadline once complete":    {timeout: 25 * time.Millisecond, observe: finishesAt("item2"), want: finish, chunks: 2, took: 25 * time.Millisecond},

		"a deadline after an end mark": {timeout: 25 * time.Millisecond, observe: func(c *genaitrace.Call, item string) genaitrace.ChunkKind {
			if item == "item2" {
				c.SetTerminal(done)
			}
			return genaitrace.Visible
		}, want: done, chunks: 2, took: 25 * time.Millisecond},
		"a source that just stops when the context ends": {cancel: 25 * time.Millisecond, mute: true, want: cancelled, chunks: 2, took: 25 * time.Millisecond},

		"the reader panics": {consume: func(item string) bool {
			if item == "item2" {
				panic("reader")
			}
			return true
		}, panics: "reader", want: streamErr, wantType: "panic", chunks: 2, took: 20 * time.Millisecond},
		"the source panics": {end: func() (string, error) { panic("source") }, panics: "source",
			want: streamErr, wantType: "panic", chunks: 3, took: 40 * time.Millisecond},
		"the source panics at once": {end: func() (string, error) { panic("source") }, items: -1, panics: "source",
			wantType: "panic", took: 10 * time.Millisecond},
	} {
		for with, wrap := range wrappers {
			if with == "RangeChunks" && d.stop > 0 {
				continue // a loop is left from inside
			}
			d := d
			if with == "ReadChunks" && d.broken { // an error of a body is no message of the server
				d.want, d.wantType = truncated, "stream_truncated"
			}
			t.Run(name+"/"+with, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { die(t, d, wrap) })
			})
		}
	}
}

func die(t *testing.T, d death, wrap func(*genaitrace.Call, *source, func(*genaitrace.Call, string) genaitrace.ChunkKind) wrapped) {
	r := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if d.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	ctx, call := r.StartCall(ctx, genaitrace.Request{Stream: true})
	s := &source{ctx: ctx, items: 3, mute: d.mute, end: func() (string, error) { return "", io.EOF }}
	if d.items != 0 {
		s.items = max(d.items, 0)
	}
	if d.end != nil {
		s.end = d.end
	}
	w := wrap(call, s, d.observe)
	if d.cancel > 0 {
		time.AfterFunc(d.cancel, cancel)
	}
	if d.stop > 0 {
		time.AfterFunc(d.stop, w.stop)
	}
	var items []string
	switch {
	case d.never:
	case d.dropped > 0:
		next, stop := iter.Pull2(iter.Seq2[string, error](w.each))
		defer stop() // for the test alone: the reader has forgotten the stream
		for range d.dropped {
			next()
		}
	case d.panics != nil:
		require.PanicsWithValue(t, d.panics, func() { consume(w, d.consume) })
	default:
		items = consume(w, d.consume)
	}
	time.Sleep(100 * time.Millisecond)
	for i, item := range items {
		assert.Equal(t, fmt.Sprint("item", i+1), item, "items pass unchanged")
	}

	// Reading on, stopping and ending after the end change nothing.
	if d.panics == nil && d.dropped == 0 {
		consume(w, nil)
	}
	call.Fail(errReset)
	seen := r.span("chat")
	seen.assertStatus(d.wantType)
	assert.Equal(t, d.took, seen.EndTime().Sub(seen.StartTime()))
	assert.Equal(t, d.took.Seconds(), r.once("gen_ai.client.inference.duration"))
	if d.want == "" {
		assert.False(t, seen.has(semconv.GenAIStreamTerminalKey), "genai.stream.terminal")
	} else {
		assert.Equal(t, string(d.want), seen.text(semconv.GenAIStreamTerminalKey))
	}
	if d.chunks == 0 {
		assert.False(t, seen.has(semconv.GenAIChunkCountKey))
		return
	}
	assert.Equal(t, d.chunks, seen.int(semconv.GenAIChunkCountKey))
	assert.Equal(t, sourceGap.Nanoseconds(), seen.nanos(semconv.LLMTTFTMsKey), "the first item")
	if d.chunks > 1 {
		assert.Equal(t, sourceGap.Nanoseconds(), seen.nanos(semconv.GenAIChunkGapMaxMsKey), "the gaps")
	}
}

// consume reads a stream while more says so, and returns its items.
func consume(w wrapped, more func(string) bool) (items []string) {
	w.each(func(item string, err error) bool {
		if err == nil {
			items = append(items, item)
		}
		return more == nil || more(item)
	})
	return items
}
