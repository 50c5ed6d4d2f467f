package toy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// testConfig makes every time of a request easy to tell from the others: a token
// of the prompt takes 1 ms, an output token 10 ms.
func testConfig() Config {
	return Config{
		Slots: 1, ChunkTokens: 1 << 20,
		PassTime: time.Microsecond, PrefillTime: time.Millisecond, DecodeTime: 10 * time.Millisecond,
	}
}

func newEngine(cfg Config) (*Engine, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	return New(cfg, genaitrace.New(genaitrace.WithTracerProvider(tp))), recorder
}

func ask(question string) Request {
	return Request{Messages: []Message{{"user", question}}}
}

func discard(string) error { return nil }

// durations sums up the time of the spans of each name.
func durations(recorder *tracetest.SpanRecorder) map[string]time.Duration {
	sums := make(map[string]time.Duration)
	for _, s := range recorder.Ended() {
		sums[s.Name()] += s.EndTime().Sub(s.StartTime())
	}
	return sums
}

func TestGenerateStreamsTheAnswerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, recorder := newEngine(testConfig())
		var text strings.Builder
		res, err := engine.Generate(t.Context(), ask("What is 17 * 23?"), func(token string) error {
			text.WriteString(token)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := "17 * 23 = 391."; text.String() != want {
			t.Errorf("answer = %q, want %q", text.String(), want)
		}
		prompt := len(tokenize("<|user|>What is 17 * 23?\n<|assistant|>"))
		output := len(tokenize(text.String()))
		got := durations(recorder)
		if want := (Result{
			InputTokens: prompt, OutputTokens: output, FinishReason: "stop",
			Prefill: got["inference.prefill"], Decode: got["inference.decode"],
		}); res != want {
			t.Errorf("result = %+v, want %+v", res, want)
		}
		for name, want := range map[string]time.Duration{
			"queue.wait":            0,
			"tokenizer.encode":      0,
			"inference.prefill":     time.Microsecond + time.Duration(prompt)*time.Millisecond,
			"inference.decode":      time.Duration(output-1) * 10 * time.Millisecond,
			"inference.postprocess": 0,
			"inference.generate":    time.Microsecond + time.Duration(prompt)*time.Millisecond + time.Duration(output-1)*10*time.Millisecond,
		} {
			if d, ok := got[name]; !ok || d != want {
				t.Errorf("%s took %v (recorded: %t), want %v", name, d, ok, want)
			}
		}
		if len(got) != 6 {
			t.Errorf("spans: %v, want six", got)
		}
	})
}

func TestOneSlotServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, recorder := newEngine(testConfig())
		var (
			wg    sync.WaitGroup
			order []string // one request runs at a time
		)
		questions := []string{"1 + 1", "2 + 2", "3 + 3", "4 + 4"}
		for _, q := range questions {
			wg.Go(func() {
				first := true
				if _, err := engine.Generate(t.Context(), ask(q), func(token string) error {
					if first {
						order = append(order, q)
					}
					first = false
					return nil
				}); err != nil {
					t.Errorf("%s: %v", q, err)
				}
			})
			synctest.Wait() // the request stands in the queue
		}
		wg.Wait()
		if got, want := strings.Join(order, ", "), strings.Join(questions, ", "); got != want {
			t.Errorf("served in order %s, want %s", got, want)
		}

		// The requests cost the same, so each waits one service time longer.
		var waits []time.Duration
		for _, s := range recorder.Ended() {
			if s.Name() == "queue.wait" {
				waits = append(waits, s.EndTime().Sub(s.StartTime()))
			}
		}
		sums := durations(recorder)
		service := (sums["inference.prefill"] + sums["inference.decode"]) / time.Duration(len(questions))
		for i, wait := range waits {
			if want := time.Duration(i) * service; wait != want {
				t.Errorf("request %d waited %v, want %v", i, wait, want)
			}
		}
	})
}

func TestSlotsServeAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Slots = 3
		engine, recorder := newEngine(cfg)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = engine.Generate(t.Context(), ask("1 + 1"), discard) })
		}
		wg.Wait()
		if d := durations(recorder)["queue.wait"]; d != 0 {
			t.Errorf("queue.wait took %v in all, want none", d)
		}
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Queued = 1
		engine, _ := newEngine(cfg)
		var wg sync.WaitGroup
		for range 2 { // one runs, one waits
			wg.Go(func() {
				if _, err := engine.Generate(t.Context(), ask("1 + 1"), discard); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if _, err := engine.Generate(t.Context(), ask("1 + 1"), discard); !errors.Is(err, ErrOverloaded) {
			t.Errorf("third request: %v, want %v", err, ErrOverloaded)
		}
		wg.Wait()
	})
}

func TestTheCacheShortensPrefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, recorder := newEngine(testConfig())
		system := Message{"system", strings.Repeat("word ", 40)}
		shared := len(tokenize("<|system|>"+system.Content+"\n<|user|>")) / blockTokens * blockTokens
		prefill := func(question string) (Result, time.Duration) {
			before := durations(recorder)["inference.prefill"]
			res, err := engine.Generate(t.Context(), Request{Messages: []Message{system, {"user", question}}}, discard)
			if err != nil {
				t.Fatal(err)
			}
			return res, durations(recorder)["inference.prefill"] - before
		}

		cold, coldTime := prefill("1 + 1")
		if cold.CachedTokens != 0 {
			t.Errorf("first request: %d tokens cached, want none", cold.CachedTokens)
		}
		warm, warmTime := prefill("2 + 2")
		if warm.CachedTokens != shared {
			t.Errorf("second request: %d tokens cached, want the %d of the system message in whole blocks", warm.CachedTokens, shared)
		}
		if saved := coldTime - warmTime; saved != time.Duration(shared)*time.Millisecond {
			t.Errorf("prefill took %v cold and %v warm, want %d ms less", coldTime, warmTime, shared)
		}
	})
}

func TestTheNextTurnFindsTheAnswerInTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, _ := newEngine(testConfig())
		first := Message{"user", "What is prefill?"}
		var answer strings.Builder
		res, err := engine.Generate(t.Context(), Request{Messages: []Message{first}}, func(token string) error {
			answer.WriteString(token)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		next, err := engine.Generate(t.Context(), Request{
			Messages: []Message{first, {"assistant", answer.String()}, {"user", "Thanks"}},
		}, discard)
		if err != nil {
			t.Fatal(err)
		}
		if want := (res.InputTokens + res.OutputTokens) / blockTokens * blockTokens; next.CachedTokens != want {
			t.Errorf("%d tokens cached, want the %d of the first turn in whole blocks", next.CachedTokens, want)
		}
	})
}

func TestPrefillComputesInChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.ChunkTokens = 10
		cfg.PassTime = time.Second
		engine, recorder := newEngine(cfg)
		res, err := engine.Generate(t.Context(), ask("1 + 1"), discard)
		if err != nil {
			t.Fatal(err)
		}
		passes := (res.InputTokens + 9) / 10
		want := time.Duration(passes)*time.Second + time.Duration(res.InputTokens)*time.Millisecond
		if got := durations(recorder)["inference.prefill"]; got != want {
			t.Errorf("prefill of %d tokens took %v, want %v", res.InputTokens, got, want)
		}
	})
}

func TestCancellationStopsAtOnceAndFreesTheSlot(t *testing.T) {
	for _, when := range []struct {
		phase string
		after time.Duration
	}{
		{"queue.wait", 5 * time.Millisecond},
		{"inference.prefill", 5 * time.Millisecond},
		{"inference.decode", 95 * time.Millisecond},
	} {
		t.Run(when.phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, recorder := newEngine(testConfig())
				if when.phase == "queue.wait" {
					if err := engine.scheduler.acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), when.after)
				defer cancel()

				begin := time.Now()
				if _, err := engine.Generate(ctx, ask("What is prefill?"), discard); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Generate = %v, want the deadline", err)
				}
				if took := time.Since(begin); took != when.after {
					t.Errorf("Generate returned after %v, want %v", took, when.after)
				}
				ended := recorder.Ended()
				if last := ended[len(ended)-2].Name(); last != when.phase {
					t.Errorf("the last phase was %s, want %s", last, when.phase)
				}
				if started := len(recorder.Started()); started != len(ended) {
					t.Errorf("%d spans started, %d ended", started, len(ended))
				}

				if when.phase == "queue.wait" {
					engine.scheduler.release()
				}
				if _, err := engine.Generate(t.Context(), ask("1 + 1"), discard); err != nil {
					t.Errorf("the next request: %v", err)
				}
				if engine.scheduler.free != 1 || len(engine.scheduler.waiting) != 0 {
					t.Errorf("scheduler: %d slots free, %d waiting, want 1 and 0", engine.scheduler.free, len(engine.scheduler.waiting))
				}
			})
		})
	}
}

func TestGenerateStopsWhereTheStreamFails(t *testing.T) {
	gone := errors.New("stream closed")
	tests := []struct {
		name string
		cfg  func(*Config)
		emit func(string) error
	}{
		{"emit", func(*Config) {}, func(string) error { return gone }},
		{"fault", func(c *Config) { c.Fault = func(int) error { return gone } }, discard},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := testConfig()
				tt.cfg(&cfg)
				engine, _ := newEngine(cfg)
				if _, err := engine.Generate(t.Context(), ask("1 + 1"), tt.emit); !errors.Is(err, gone) {
					t.Errorf("Generate = %v, want %v", err, gone)
				}
				if engine.scheduler.free != 1 {
					t.Error("the slot was not given back")
				}
			})
		})
	}
}

func TestTheTokenLimitEndsTheAnswer(t *testing.T) {
	full := len(tokenize(reply("What is prefill?")))
	for _, tt := range []struct {
		name            string
		request, engine int
		want            int
		finish          string
	}{
		{"of the request", 3, 0, 3, "length"},
		{"of the engine", 0, 4, 4, "length"},
		{"the smaller one counts", 9, 4, 4, "length"},
		{"exactly met", full, 0, full, "stop"},
		{"not met", full + 1, 0, full, "stop"},
		{"negative is none", -1, 0, full, "stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := testConfig()
				cfg.MaxTokens = tt.engine
				engine, _ := newEngine(cfg)
				req := ask("What is prefill?")
				req.MaxTokens = tt.request
				n := 0
				res, err := engine.Generate(t.Context(), req, func(string) error { n++; return nil })
				if err != nil {
					t.Fatal(err)
				}
				if n != tt.want || res.OutputTokens != tt.want || res.FinishReason != tt.finish {
					t.Errorf("%d tokens, result %+v, want %d and %s", n, res, tt.want, tt.finish)
				}
			})
		})
	}
}
