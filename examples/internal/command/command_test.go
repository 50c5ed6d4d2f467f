package command

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestHowAProgramEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code int
		said string
	}{
		"well":                        {nil, 0, ""},
		"asked for help":              {flag.ErrHelp, 0, ""},
		"a mistake":                   {fmt.Errorf("flags: %w", Usagef("-n is %d", 0)), 2, "demo: flags: -n is 0\ndemo -help lists the flags.\n"},
		"an error that is shown":      {errors.Join(ShownError{errors.New("gone")}, nil), 1, ""},
		"an error that nobody showed": {errors.New("gone"), 1, "demo: gone\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			if code := exitCode("demo", tt.err, &said); code != tt.code || said.String() != tt.said {
				t.Errorf("code %d, %q; want %d, %q", code, said.String(), tt.code, tt.said)
			}
		})
	}
}

func TestParse(t *testing.T) {
	parse := func(args ...string) (n int, said string, err error) {
		flags := NewFlags("demo")
		flags.IntVar(&n, "n", 1, "`number` of things")
		var out strings.Builder
		err = Parse(flags, args, &out, "demo does things.", "it goes behind -n")
		return n, out.String(), err
	}
	if n, said, err := parse("-n", "3"); n != 3 || said != "" || err != nil {
		t.Errorf("n %d, said %q, error %v", n, said, err)
	}
	if _, said, err := parse("-h"); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(said, "demo does things.\n") || !strings.Contains(said, "-n number") {
		t.Errorf("-h: %v, %q", err, said)
	}
	for _, args := range [][]string{{"-n", "x"}, {"-m"}, {"three"}} {
		if _, said, err := parse(args...); !errors.As(err, new(UsageError)) || said != "" {
			t.Errorf("%q: %v, said %q", args, err, said)
		}
	}
	if _, _, err := parse("three"); !strings.Contains(err.Error(), `"three": it goes behind -n`) {
		t.Errorf("three: %v", err)
	}
}

func TestBaseURL(t *testing.T) {
	for text, want := range map[string]string{"http://h": "http://h/", "https://h:1/v1": "https://h:1/v1"} {
		if got, err := BaseURL(text); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "localhost:1", "ftp://u:hunter2@h/v1", "http://", "http://u:hunter2@h\x00"} {
		if _, err := BaseURL(text); !errors.As(err, new(UsageError)) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want a mistake that does not repeat it", text, err)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.0 ms", time.Microsecond: "<0.1 ms", 1234 * time.Microsecond: "1.2 ms"} {
		if got := Milliseconds(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
