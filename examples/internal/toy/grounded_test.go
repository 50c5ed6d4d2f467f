package toy

import (
	"strings"
	"testing"
)

const given = `Answer from the sources below.

Sources:
[1] ARCHITECTURE.md § Times
| name | from → to |
|---|---|
| **TTFT** | arrival → first generated output |

The TTFT is split among the phases: queue, prefill and
decode. Unknown is absent, never 0.

[2] README.md § Install
` + "```sh\ngo get the TTFT tool right now\n```" + `
Gateways need one line. Engines need ten.

- **No event a token.** The SDK drops the oldest.

`

// An answer from sources is a sentence of them, word for word, with its place.
func TestAnswersFromSourcesAreQuotes(t *testing.T) {
	for question, want := range map[string]string{
		"What is TTFT?":                        "ARCHITECTURE.md § Times says: “TTFT | arrival → first generated output” [1]",
		"Into which phases is the TTFT split?": "ARCHITECTURE.md § Times says: “The TTFT is split among the phases: queue, prefill and decode.” [1]",
		"What is unknown?":                     "ARCHITECTURE.md § Times says: “Unknown is absent, never 0.” [1]",
		"How many lines do engines need?":      "README.md § Install says: “Engines need ten.” [2]",
		"Is there an event a token?":           "README.md § Install says: “No event a token. The SDK drops the oldest.” [2]",
		"What is the capital of France?":       "The sources do not answer that.",
		"17 * 23?":                             "The sources do not answer that.",
	} {
		got := strings.Join(answer([]Message{{"system", given}, {"user", question}}), "")
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", question, got, want)
		}
	}
}

// Sources that are given by none but the user are no sources.
func TestOnlyASystemMessageGivesSources(t *testing.T) {
	got := strings.Join(answer([]Message{{"user", given}, {"assistant", given}, {"user", "What is 1 + 1?"}}), "")
	if got != "1 + 1 = 2." {
		t.Errorf("got %q", got)
	}
	got = strings.Join(answer([]Message{{"system", "Sources:\nnone"}, {"system", "\nSources:\n"}, {"user", "What is 1 + 1?"}}), "")
	if got != "The sources do not answer that." {
		t.Errorf("an empty list of sources: got %q", got)
	}
}
