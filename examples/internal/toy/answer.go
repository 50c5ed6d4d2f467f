package toy

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// answer returns the tokens of the answer to the last user message: a quote where
// the conversation gives sources, calls of tools or what they gave where it offers
// some, else what the rules say.
func answer(messages []Message) []string {
	var question string
	for _, m := range slices.Backward(messages) {
		if m.Role == "user" {
			question = m.Content
			break
		}
	}
	if sources, given := sourcesIn(messages); given {
		return tokenize(quote(question, sources))
	}
	if d, offers := dialogueIn(messages); offers {
		if text := d.next(); text != "" {
			return tokenize(text)
		}
	}
	return tokenize(reply(question))
}

// reply tries the rules from the most to the least particular one.
func reply(question string) string {
	if text, ok := calculate(question); ok {
		return text
	}
	words := normalize(question)
	for _, rule := range rules {
		for _, phrase := range rule.phrases {
			if strings.Contains(words, " "+phrase+" ") {
				return rule.text
			}
		}
	}
	if strings.Contains(words, " capital ") {
		for word := range strings.FieldsSeq(words) {
			if city, ok := capitals[word]; ok {
				return fmt.Sprintf("The capital of %s is %s.", strings.ToUpper(word[:1])+word[1:], city)
			}
		}
	}
	return "I am a toy engine with a few rules instead of a language model, so I cannot answer that. " +
		"I can do sums (17 * 23), name some capitals, and explain TTFT, queue, prefill, decode, KV cache, token, span and trace."
}

// normalize returns the words of s in lower case between single blanks.
func normalize(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return " " + strings.Join(words, " ") + " "
}

const number = `(-?\d{1,15}(?:\.\d{1,15})?)`

var sum = regexp.MustCompile(`(?i)` + number + `\s*(\+|-|\*|/|×|÷|x|plus|minus|times|divided by)\s*` + number)

// calculate answers a sum of two numbers.
func calculate(question string) (string, bool) {
	m := sum.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	x, _ := new(big.Rat).SetString(m[1])
	y, _ := new(big.Rat).SetString(m[3])
	result := new(big.Rat)
	var sign string
	switch strings.ToLower(m[2]) {
	case "+", "plus":
		result.Add(x, y)
		sign = "+"
	case "-", "minus":
		result.Sub(x, y)
		sign = "-"
	case "*", "×", "x", "times":
		result.Mul(x, y)
		sign = "*"
	default:
		if y.Sign() == 0 {
			return "Nothing can be divided by zero.", true
		}
		result.Quo(x, y)
		sign = "/"
	}
	return fmt.Sprintf("%s %s %s %s.", m[1], sign, m[3], equals(result)), true
}

// equals writes a number with at most six decimals and says whether that is all.
func equals(r *big.Rat) string {
	if r.IsInt() {
		return "= " + r.RatString()
	}
	rounded := strings.TrimRight(r.FloatString(6), "0")
	rounded = strings.TrimSuffix(rounded, ".")
	if exact, _ := new(big.Rat).SetString(rounded); exact.Cmp(r) == 0 {
		return "= " + rounded
	}
	return "≈ " + rounded
}

var capitals = map[string]string{
	"argentina": "Buenos Aires", "australia": "Canberra", "austria": "Vienna", "brazil": "Brasília",
	"canada": "Ottawa", "china": "Beijing", "egypt": "Cairo", "france": "Paris", "germany": "Berlin",
	"india": "New Delhi", "italy": "Rome", "japan": "Tokyo", "kenya": "Nairobi", "mexico": "Mexico City",
	"norway": "Oslo", "poland": "Warsaw", "portugal": "Lisbon", "spain": "Madrid", "switzerland": "Bern",
	"vietnam": "Hanoi",
}

// rules are tried in this order. A phrase matches whole words.
var rules = []struct {
	phrases []string
	text    string
}{
	{
		[]string{"ttft", "time to first token", "first token"},
		"TTFT is the time to first token: how long a user waits from sending a request until the answer begins. " +
			"The wait in the queue, the tokenizer and prefill all add to it.",
	},
	{
		[]string{"tpot", "time per output token", "tokens per second"},
		"Time per output token is the time from the first token to the last one, divided by the tokens after the first. " +
			"Its inverse is the speed at which a user sees the answer grow.",
	},
	{
		[]string{"kv cache", "prefix cache", "cache"},
		"The KV cache keeps what prefill computed for a prompt. A later prompt that begins with the same tokens skips that work, so its first token comes sooner.",
	},
	{
		[]string{"prefill"},
		"Prefill is the pass of the model over the whole prompt before the first output token. It takes longer for a longer prompt, and less where the KV cache already holds its beginning.",
	},
	{
		[]string{"decode", "decoding"},
		"Decode is the phase after prefill: the model generates one token at a time, each from all the tokens before it.",
	},
	{
		[]string{"queue", "queueing", "queuing"},
		"A request waits in the queue until the scheduler has a free slot for it. Under load this is often the largest part of the TTFT.",
	},
	{
		[]string{"gateway"},
		"A gateway is the entry of the service: it takes HTTP requests, checks them and passes them on to an inference service.",
	},
	{
		[]string{"span", "spans"},
		"A span is one timed step of a request, such as prefill. Spans point to their parent and so form a trace.",
	},
	{
		[]string{"trace", "tracing", "traces"},
		"A trace is the tree of all timed steps of one request, across every process that took part in it.",
	},
	{
		[]string{"token", "tokens", "tokenizer"},
		"A token is a piece of text, often a short word or a part of a longer one. Models read and write tokens, and the tokenizer translates.",
	},
	{
		[]string{"who are you", "what are you", "what can you do", "help"},
		"I am toy-1, a toy engine with a few rules instead of a language model. I can do sums, name some capitals and explain the words of a trace.",
	},
	{
		[]string{"hello", "hi", "hey", "good morning", "good evening"},
		"Hello! I am toy-1, a toy engine. Ask me for a sum, a capital or what prefill is.",
	},
	{
		[]string{"thanks", "thank you"},
		"You are welcome.",
	},
}
