package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

type jsonText = json.RawMessage

func TestCalculate(t *testing.T) {
	for expression, want := range map[string]string{
		"17 * 23": "391", "(3 + 4) * 12.5": "87.5", "1 / 3": "0.333333333333333", "-2 - -3": "1", "0.1 + 0.2": "0.3",
		"99999999999999999999 + 1": "100000000000000000000", "7 / 2 * 2": "7", "1e3": "1000",
	} {
		if got, err := calculate(t.Context(), sum{expression}); got != want || err != nil {
			t.Errorf("%s = %s, %v; want %s", expression, got, err, want)
		}
	}
	for _, expression := range []string{
		"", "1 +", "1 / 0", "1 / (2 - 2)", "os.Exit(1)", "x", `"a" + "b"`, "1 << 99", "1 == 1", "!1", "func() {}", "'a'", "2i",
		strings.Repeat("(", 99) + "1" + strings.Repeat(")", 102), strings.Repeat("9", 201),
	} {
		if got, err := calculate(t.Context(), sum{expression}); err == nil {
			t.Errorf("%s = %s, want an error", expression, got)
		}
	}
}

func FuzzCalculate(f *testing.F) {
	f.Add("17 * (23 - 1.5e2) / 3")
	f.Fuzz(func(t *testing.T, expression string) {
		got, err := calculate(context.Background(), sum{expression})
		if err == nil && !json.Valid([]byte(got)) && !strings.Contains(got, "Inf") {
			t.Errorf("%q = %q, which is no number", expression, got)
		}
	})
}

func TestSearchFiles(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(outside, "secret.txt"), "needle "+secret)
	for name, content := range map[string]string{
		"a/b/deep.go": "one\nthe needle\nthree", "a/c.md": "needle " + strings.Repeat("é", 300), ".hidden/x.go": "needle",
		"picture.png": "needle", "large.txt": "needle" + strings.Repeat(" ", maxFile), "many.txt": strings.Repeat("many\n", 20),
	} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	for link, target := range map[string]string{"linked": outside, "secret.txt": filepath.Join(outside, "secret.txt")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	find := func(query, under string) (string, error) { return searchFiles(t.Context(), root, search{query, under}) }

	got, err := find("needle", "")
	if err != nil || !strings.HasPrefix(got, "a/b/deep.go:2\tthe needle\na/c.md:1\tneedle é") || strings.Count(got, "\n") != 1 {
		t.Errorf("found %q, %v", got, err)
	}
	if got, err := find("needle", "a/b"); got != "a/b/deep.go:2\tthe needle" || err != nil {
		t.Errorf("found %q, %v", got, err)
	}
	if got, err := find("many", "."); strings.Count(got, "many.txt:") != maxMatches || err != nil {
		t.Errorf("found %q, %v", got, err)
	}
	// The rule of the agent is before this; root is a wall of its own.
	for _, under := range []string{"..", "../..", outside, "/etc", "a/../..", "linked", "nowhere"} {
		if got, err := find("needle", under); err == nil || strings.Contains(got, secret) {
			t.Errorf("under %s: %q, %v; want an error", under, got, err)
		}
	}
	if got, err := find(secret, ""); err == nil {
		t.Errorf("a link led out: %q", got)
	}
	if _, err := find("", ""); !errors.As(err, new(*argumentError)) {
		t.Errorf("no query: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := searchFiles(ctx, root, search{"needle", ""}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTheRuleOfTheSearch(t *testing.T) {
	for under, broken := range map[string]bool{"": false, ".": false, "a/b": false, "..": true, "a/../..": true, "/etc": true} {
		arguments, err := json.Marshal(search{"x", under})
		if err != nil {
			t.Fatal(err)
		}
		if err := insideRoot.broken(arguments); (err != nil) != broken {
			t.Errorf("under %q: %v, want an error: %t", under, err, broken)
		}
	}
	for _, arguments := range []string{"", "nonsense", `{"under":7}`} { // no tool takes them
		if err := insideRoot.broken(jsonText(arguments)); err != nil {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestAResultIsShort(t *testing.T) {
	if got := short(strings.Repeat("é", maxResult)); len(got) > maxResult+16 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
	if got := short("x\xff"); got != "x�" {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsTemporary(t *testing.T) {
	for err, want := range map[error]bool{
		&statusError{503}: true, fmt.Errorf("call: %w", &statusError{503}): true, &statusError{500}: false, context.Canceled: false, context.DeadlineExceeded: false,
	} {
		if temporary(err) != want {
			t.Errorf("%v is temporary: %t", err, !want)
		}
	}
	if temporary(nil) {
		t.Error("no error is temporary")
	}
}
