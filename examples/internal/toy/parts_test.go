package toy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestReplyAnswersTheQuestion(t *testing.T) {
	for _, tt := range []struct{ question, want string }{
		{"What is 17 * 23?", "17 * 23 = 391."},
		{"what's 2 plus 2", "2 + 2 = 4."},
		{"10 divided by 4", "10 / 4 = 2.5."},
		{"1/3", "1 / 3 ≈ 0.333333."},
		{"-3 - -4", "-3 - -4 = 1."},
		{"0.1 + 0.2", "0.1 + 0.2 = 0.3."},
		{"999999999999999 x 999999999999999", "999999999999999 * 999999999999999 = 999999999999998000000000000001."},
		{"7 / 0", "Nothing can be divided by zero."},
		{"What is the capital of France?", "The capital of France is Paris."},
		{"capital of JAPAN", "The capital of Japan is Tokyo."},
		{"What is TTFT?", "TTFT is the time to first token"},
		{"Why is the first token slow?", "TTFT is the time to first token"},
		{"Explain prefill.", "Prefill is the pass"},
		{"what does decode do", "Decode is the phase"},
		{"Why do I wait in the queue?", "A request waits in the queue"},
		{"KV cache?", "The KV cache keeps"},
		{"What is a trace?", "A trace is the tree"},
		{"What is a token?", "A token is a piece"},
		{"Hello there", "Hello! I am toy-1"},
		{"Who are you?", "I am toy-1"},
		{"Will it rain tomorrow?", "I am a toy engine"},
		{"", "I am a toy engine"},
		{"capital punishment", "I am a toy engine"},
		{"this", "I am a toy engine"}, // no greeting inside a word
	} {
		if got := reply(tt.question); !strings.HasPrefix(got, tt.want) {
			t.Errorf("reply(%q) = %q, want %q", tt.question, got, tt.want)
		}
	}
}

func TestAnswerTakesTheLastUserMessage(t *testing.T) {
	got := strings.Join(answer([]Message{{"user", "1 + 1"}, {"user", "2 + 2"}, {"assistant", "3 + 3"}}), "")
	if want := "2 + 2 = 4."; got != want {
		t.Errorf("answer = %q, want %q", got, want)
	}
}

func TestTokenizeSplitsWords(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"What is TTFT?", []string{"What", " is", " TTFT", "?"}},
		{"tokenization", []string{"tokeni", "zation"}},
		{"17 * 23", []string{"1", "7", " *", " 2", "3"}},
		{"a  b ", []string{"a", "  ", "b", " "}},
		{"Brasília\n", []string{"Brasíl", "ia", "\n"}},
	} {
		if got := tokenize(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("tokenize(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzTokenizeLosesNothing(f *testing.F) {
	f.Add("What is  17*23?\n")
	f.Add("\xff é 模型")
	f.Fuzz(func(t *testing.T, text string) {
		tokens := tokenize(text)
		if got := strings.Join(tokens, ""); got != text {
			t.Errorf("tokens of %q join to %q", text, got)
		}
		if slices.Contains(tokens, "") {
			t.Errorf("empty token in %q", tokens)
		}
	})
}

func TestPrefixCacheFindsTheLongestPrefix(t *testing.T) {
	words := func(from, to int) []string {
		var out []string
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprint(i))
		}
		return out
	}
	c := newPrefixCache(100)
	c.add(words(0, 40)) // two whole blocks
	for _, tt := range []struct {
		name   string
		prompt []string
		want   int
	}{
		{"empty", nil, 0},
		{"shorter than a block", words(0, 10), 0},
		{"one block and a token", words(0, 17), 16},
		{"the whole prompt: one token must be computed", words(0, 32), 16},
		{"both blocks", words(0, 50), 32},
		{"the same block at another place", words(16, 60), 0},
		{"differs in the second block", append(words(0, 20), words(100, 120)...), 16},
	} {
		if got := c.longest(tt.prompt); got != tt.want {
			t.Errorf("%s: %d tokens cached, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPrefixCacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	prompt := func(name string) []string { return slices.Repeat([]string{name}, blockTokens+1) }
	c := newPrefixCache(2)
	c.add(prompt("a"))
	c.add(prompt("b"))
	c.longest(prompt("a")) // b is now the oldest
	c.add(prompt("c"))
	for name, want := range map[string]int{"a": blockTokens, "b": 0, "c": blockTokens} {
		if got := c.longest(prompt(name)); got != want {
			t.Errorf("%s: %d tokens cached, want %d", name, got, want)
		}
	}
	c.add(slices.Repeat([]string{"long"}, 100*blockTokens))
	if n := len(c.blocks); n != 2 || c.recent.Len() != 2 {
		t.Errorf("%d blocks in the map, %d in the list, want 2", n, c.recent.Len())
	}
}

// A turn that comes while its owner gives up must not be lost.
func TestSchedulerKeepsItsSlotsWhenWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(1, 10)
		if err := s.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			err := s.acquire(ctx)
			if err == nil {
				s.release()
			}
			left <- err
		}()
		synctest.Wait()
		cancel()
		s.release() // at the same moment
		if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("%d slots free, %d waiting, want 1 and 0", s.free, len(s.waiting))
		}
	})
}
