package genaitrace_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// yields is a sequence of items that ends well.
func yields[T any](items ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// drain ranges over a whole sequence.
func drain[T any](seq iter.Seq2[T, error]) (items []T, err error) {
	for item, e := range seq {
		if e != nil {
			err = e
			continue
		}
		items = append(items, item)
	}
	return items, err
}

func TestAnObserverSaysWhatItemsCarryAndWhatTheyTell(t *testing.T) {
	type event struct {
		kind   genaitrace.ChunkKind
		tokens int
	}
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		events := []event{{genaitrace.NoChunk, 0}, {genaitrace.NoOutput, 0}, {genaitrace.Output, 0}, {genaitrace.NoChunk, 0},
			{genaitrace.Visible, 0}, {genaitrace.NoOutput, 7}}
		slow := func(yield func(event, error) bool) {
			for _, e := range events {
				time.Sleep(10 * time.Millisecond)
				if !yield(e, nil) {
					return
				}
			}
		}
		got, err := drain(genaitrace.RangeChunks(call, slow, func(c *genaitrace.Call, e event) genaitrace.ChunkKind {
			assert.Same(t, call, c)
			if e.tokens > 0 {
				c.SetUsage(genaitrace.Usage{OutputTokens: new(e.tokens)})
				c.SetFinish("stop")
				c.SetResponse("resp-1", "")
			}
			return e.kind
		}))
		require.NoError(t, err)
		assert.Equal(t, events, got)

		s := r.span("chat")
		assert.Equal(t, int64(4), s.int(semconv.GenAIChunkCountKey), "what is no data event is no chunk")
		assert.Equal(t, int64(2), s.int(semconv.GenAIChunkOutputCountKey))
		assert.Equal(t, 0.020, s.float("gen_ai.response.time_to_first_chunk"))
		assert.Equal(t, int64(30e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(50e6), s.nanos(semconv.GenAIFirstVisibleMsKey))
		assert.Equal(t, map[string]int64{"gen_ai.usage.output_tokens": 7}, usageKeys(s))
		assert.Equal(t, "resp-1", s.text("gen_ai.response.id"))
		assert.Equal(t, "finish", s.text(semconv.GenAIStreamTerminalKey))
	})
}

func TestAnItemIsStampedBeforeItsObserverAndItsReaderRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		time.Sleep(10 * time.Millisecond)
		for range genaitrace.RangeChunks(call, yields("a"), func(*genaitrace.Call, string) genaitrace.ChunkKind {
			time.Sleep(time.Second)
			return genaitrace.Visible
		}) {
			time.Sleep(time.Second)
		}
		assert.Equal(t, int64(10e6), r.span("chat").nanos(semconv.LLMTTFTMsKey))
	})
}

func TestAnObserverThatPanicsCostsItsItemAlone(t *testing.T) {
	reported := handled(t)
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	got, err := drain(genaitrace.RangeChunks(call, yields("a", "secret", "c"), func(_ *genaitrace.Call, item string) genaitrace.ChunkKind {
		if item == "secret" {
			panic(item)
		}
		return genaitrace.Visible
	}))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "secret", "c"}, got)
	s := r.span("chat")
	s.assertStatus("")
	assert.Equal(t, int64(3), s.int(semconv.GenAIChunkCountKey))
	assert.Equal(t, int64(2), s.int(semconv.GenAIChunkOutputCountKey))
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultPanic: 1}, r.faults())
	require.Len(t, reported(), 1)
	assert.NotContains(t, reported()[0].Error(), "secret")
}

func TestAnErrorEndsTheSpanWhenItCameAndNotWhenTheLoopIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		time.Sleep(10 * time.Millisecond)
		for _, err := range genaitrace.RangeChunks(call, func(yield func(string, error) bool) { yield("", errReset) }, nil) {
			require.ErrorIs(t, err, errReset)
			time.Sleep(time.Second) // a reader that cleans up
			break
		}
		s := r.span("chat")
		s.assertStatus("reset")
		assert.Equal(t, 10*time.Millisecond, s.EndTime().Sub(s.StartTime()))

		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		time.Sleep(10 * time.Millisecond)
		for range genaitrace.RangeTokens(d, func(yield func(string, error) bool) { yield("", errReset) }, nil) {
			time.Sleep(time.Second)
		}
		inf.End()
		s = r.span(semconv.SpanInferenceDecode)
		s.assertStatus("reset")
		assert.Equal(t, 10*time.Millisecond, s.EndTime().Sub(s.StartTime()))
	})
}

func TestWhatComesFirstOfTheEndsOfStreamAndContextCounts(t *testing.T) {
	for range 20 { // the context tells its call in a goroutine of its own
		r := record(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, call := r.StartCall(ctx, genaitrace.Request{Stream: true})
		for range genaitrace.RangeChunks(call, yields("a"), nil) {
			cancel()
		}
		assert.Equal(t, "client_cancelled", r.span("chat").text(semconv.GenAIStreamTerminalKey))

		ctx, cancel = context.WithCancel(t.Context())
		_, call = r.StartCall(ctx, genaitrace.Request{Stream: true, Model: "m"})
		_, err := drain(genaitrace.RangeChunks(call, yields("a"), nil))
		cancel()
		require.NoError(t, err)
		assert.Equal(t, "eof", r.span("chat m").text(semconv.GenAIStreamTerminalKey))
	}
}

func TestAnErrorThatTheSourceGoesOnAfterIsNotTheEnd(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	got, err := drain(genaitrace.RangeChunks(call, func(yield func(string, error) bool) {
		_ = yield("a", nil) && yield("", errReset) && yield("b", nil)
	}, nil))
	require.ErrorIs(t, err, errReset)
	assert.Equal(t, []string{"a", "b"}, got)
	s := r.span("chat")
	s.assertStatus("")
	assert.Equal(t, int64(2), s.int(semconv.GenAIChunkCountKey))
	assert.Equal(t, "eof", s.text(semconv.GenAIStreamTerminalKey))

	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		for range genaitrace.RangeTokens(d, func(yield func(string, error) bool) {
			_ = yield("", errReset) && yield("b", nil)
		}, nil) {
			time.Sleep(10 * time.Millisecond)
		}
		inf.End()
		s := r.span(semconv.SpanInferenceDecode)
		s.assertStatus("")
		assert.Equal(t, 20*time.Millisecond, s.EndTime().Sub(s.StartTime()), "not when the error came")
	})
}

func TestAnItemThatIsNoDataEventIsNotStamped(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	call.Chunk(genaitrace.NoChunk)
	call.ChunkAt(genaitrace.NoChunk, time.Time{})
	call.End()
	assert.False(t, r.span("chat").has(semconv.GenAIChunkCountKey))
}

// The source closes its connection after the loop was left, and the transport
// below tells then what it read.
func TestACallEndsAfterItsSourceHasCleanedUp(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	for range genaitrace.RangeChunks(call, func(yield func(string, error) bool) {
		defer call.SetResponse("resp-1", "")
		yield("a", nil)
	}, nil) {
		break
	}
	_, recorded := call, r.span("chat")
	assert.Equal(t, "resp-1", recorded.text("gen_ai.response.id"))

	_, call = r.StartCall(t.Context(), genaitrace.Request{Stream: true, Model: "m"})
	require.NoError(t, genaitrace.ReadChunks(call, closer(func() { call.SetResponse("resp-2", "") }), nil).Close())
	assert.Equal(t, "resp-2", r.span("chat m").text("gen_ai.response.id"))
}

// closer is a body that is told when it is closed.
type closer func()

func (closer) Read([]byte) (int, error) { return 0, io.EOF }
func (c closer) Close() error           { c(); return nil }

func TestALoopThatItsGoroutineLeavesIsAbandoned(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	left := make(chan struct{})
	go func() {
		defer close(left)
		for range genaitrace.RangeChunks(call, yields("a"), nil) {
			runtime.Goexit() // as t.FailNow does
		}
	}()
	<-left
	s := r.span("chat")
	s.assertStatus("")
	assert.Equal(t, "client_cancelled", s.text(semconv.GenAIStreamTerminalKey))
}

func TestStreamsThatFollowEachOtherInOneCallAreStampedEach(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	lines := []string{"a", "b"}
	read := func() (string, error) {
		line := lines[0]
		lines = lines[1:]
		return line, nil
	}
	for range 2 { // a client that connects again
		recv, _ := genaitrace.ReceiveChunks(call, read, nil)
		recv()
	}
	call.End()
	assert.Equal(t, int64(2), r.span("chat").int(semconv.GenAIChunkCountKey))
}

func TestASecondIterationPassesUnrecorded(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	observed := 0
	seq := genaitrace.RangeChunks(call, yields("a", "b"), func(*genaitrace.Call, string) genaitrace.ChunkKind {
		observed++
		return genaitrace.Visible
	})
	for range 2 {
		got, err := drain(seq)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, got)
	}
	assert.Equal(t, 2, observed)
	assert.Equal(t, int64(2), r.span("chat").int(semconv.GenAIChunkCountKey))
}

func TestAGatewaysStreamIsWrappedAsACallersIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, call := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /"})
		genaitrace.RangeChunks(call, yields("a"), nil)
		time.Sleep(time.Millisecond)
		cancel()
		synctest.Wait()
		assert.Equal(t, "client_cancelled", r.span("POST /").text(semconv.GenAIStreamTerminalKey))
	})
}

func TestAReaderPassesWhatItsSourceSays(t *testing.T) {
	r := record(t)
	start := func() *genaitrace.Call {
		_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		return call
	}
	var kinds []string
	observe := func(_ *genaitrace.Call, p []byte) genaitrace.ChunkKind {
		kinds = append(kinds, string(p))
		return genaitrace.Visible
	}
	for name, source := range map[string]io.Reader{
		"data and io.EOF at once": iotest.DataErrReader(strings.NewReader("hello")),
		"one byte a read":         iotest.OneByteReader(strings.NewReader("hello")),
		"half of what is asked":   iotest.HalfReader(strings.NewReader("hello")),
	} {
		t.Run(name, func(t *testing.T) {
			kinds = nil
			got, err := io.ReadAll(genaitrace.ReadChunks(start(), source, observe))
			require.NoError(t, err)
			assert.Equal(t, "hello", string(got))
			assert.Equal(t, "hello", strings.Join(kinds, ""), "the observer sees every byte once")
		})
	}

	closing := errors.New("closing")
	body := genaitrace.ReadChunks(start(), struct {
		io.Reader
		io.Closer
	}{strings.NewReader(""), closeFunc(func() error { return closing })}, nil)
	assert.Equal(t, closing, body.Close())
	require.NoError(t, genaitrace.ReadChunks(start(), strings.NewReader(""), nil).Close(), "nothing to close")

	lying := genaitrace.ReadChunks(start(), liar{}, nil)
	n, err := lying.Read(make([]byte, 4))
	assert.Equal(t, 9, n, "the lie of a source is passed on")
	require.NoError(t, err)
	require.NoError(t, lying.Close())
}

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

// liar says that it read more than it could.
type liar struct{}

func (liar) Read([]byte) (int, error) { return 9, nil }

func TestAStreamMayBeStoppedWhileAnotherGoroutineReadsIt(t *testing.T) {
	r := record(t)
	const rounds = 200
	for range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		ctx, call := r.StartCall(ctx, genaitrace.Request{Stream: true})
		src := func() (string, error) { runtime.Gosched(); return "x", ctx.Err() }
		recv, stop := genaitrace.ReceiveChunks(call, src, nil)
		together(
			func() {
				for range 100 {
					recv()
				}
			},
			stop, stop, cancel,
		)
		ctx, call = r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		body := genaitrace.ReadChunks(call, iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 100))), nil)
		together(
			func() { io.Copy(io.Discard, body) },
			func() { body.Close() }, func() { body.Close() }, call.End,
		)
	}
	assert.Len(t, r.spans("chat"), 2*rounds)
	assert.Equal(t, 2*rounds, r.total("gen_ai.client.inference.duration"))
}

// A context may live as long as the process: what it holds of a call must go
// when the call ends.
func TestAContextDoesNotKeepTheCallsThatEnded(t *testing.T) {
	r := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kept := func() weak.Pointer[genaitrace.Call] {
		_, call := r.StartCall(ctx, genaitrace.Request{Stream: true})
		for range 2 { // a client that connects again
			genaitrace.RangeChunks(call, yields("a"), nil)
		}
		call.End()
		return weak.Make(call)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return kept.Value() == nil }, 5*time.Second, time.Millisecond)
}

func TestWhereNothingRecordsAStreamIsNotWrapped(t *testing.T) {
	seq := yields("a")
	body := io.NopCloser(strings.NewReader("a"))
	assert.Equal(t, body, genaitrace.ReadChunks(nil, body, nil))
	got, err := io.ReadAll(genaitrace.ReadChunks(&genaitrace.Call{}, strings.NewReader("a"), nil))
	require.NoError(t, err)
	assert.Equal(t, "a", string(got))
	recv, stop := genaitrace.ReceiveChunks(nil, func() (string, error) { return "a", nil }, nil)
	next := genaitrace.ReceiveTokens(nil, recv, nil)
	passed, err := drain(genaitrace.RangeTokens(nil, genaitrace.RangeChunks(nil, seq, nil), nil))
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, passed)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		genaitrace.RangeChunks(nil, seq, nil)
		genaitrace.RangeTokens(nil, seq, nil)
		next()
		stop()
	}))
}

func TestAnItemCostsNoAllocation(t *testing.T) {
	type item struct {
		text string
		n    [4]int
	}
	r := record(t)
	const items = 10_000
	seq := func(yield func(item, error) bool) {
		for i := range items {
			if !yield(item{n: [4]int{i}}, nil) {
				return
			}
		}
	}
	observe := func(_ *genaitrace.Call, i item) genaitrace.ChunkKind { return genaitrace.ChunkKind(i.n[0] % 3) }
	count := func(i item) int { return i.n[0] % 3 }
	for name, stream := range map[string]func(){
		"RangeChunks": func() {
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			for range genaitrace.RangeChunks(call, seq, observe) {
			}
		},
		"ReceiveChunks": func() {
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			recv, stop := genaitrace.ReceiveChunks(call, func() (item, error) { return item{}, nil }, observe)
			for range items {
				recv()
			}
			stop()
		},
		"ReadChunks": func() {
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			body := genaitrace.ReadChunks(call, zeros{}, func(_ *genaitrace.Call, p []byte) genaitrace.ChunkKind { return genaitrace.ChunkKind(p[0]) })
			p := make([]byte, 8)
			for range items {
				body.Read(p)
			}
			body.Close()
		},
		"RangeTokens": func() {
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			for range genaitrace.RangeTokens(d, seq, count) {
			}
			inf.End()
		},
		"ReceiveTokens": func() {
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			recv := genaitrace.ReceiveTokens(d, func() (item, error) { return item{}, nil }, count)
			for range items {
				recv()
			}
			inf.End()
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Less(t, testing.AllocsPerRun(3, stream), 300.0, "of the whole stream, its span and its metrics")
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAPullOfAWrappedStreamStops(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
	next, stop := iter.Pull2(genaitrace.RangeChunks(call, yields(slices.Repeat([]string{"a"}, 5)...), nil))
	next()
	stop()
	assert.Equal(t, "client_cancelled", r.span("chat").text(semconv.GenAIStreamTerminalKey))
}
