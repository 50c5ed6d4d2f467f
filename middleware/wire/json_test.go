package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeValue writes a random JSON value with random white space.
func writeValue(rng *rand.Rand, w *strings.Builder, depth int) {
	gap := func() { w.WriteString([]string{"", "", " ", "\n\t", "\r\n "}[rng.IntN(5)]) }
	gap()
	kind := rng.IntN(7)
	if depth == 0 {
		kind = rng.IntN(5)
	}
	switch kind {
	case 0, 1:
		w.WriteString(randomString(rng))
	case 2:
		fmt.Fprint(w, rng.IntN(2_000_000)-1_000_000)
	case 3:
		fmt.Fprintf(w, "%g", rng.NormFloat64()*1e10)
	case 4:
		w.WriteString([]string{"true", "false", "null"}[rng.IntN(3)])
	case 5:
		writeArray(rng, w, depth)
	case 6:
		writeObject(rng, w, depth)
	}
	gap()
}

func writeArray(rng *rand.Rand, w *strings.Builder, depth int) {
	w.WriteByte('[')
	for i := range rng.IntN(4) {
		if i > 0 {
			w.WriteByte(',')
		}
		writeValue(rng, w, depth-1)
	}
	w.WriteByte(']')
}

func writeObject(rng *rand.Rand, w *strings.Builder, depth int) {
	w.WriteByte('{')
	for i := range rng.IntN(5) {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, " %s :", strings.Replace(randomString(rng), `"`, fmt.Sprintf(`"%d`, i), 1)) // no key twice
		writeValue(rng, w, depth-1)
	}
	w.WriteByte('}')
}

// randomString is a JSON string with what makes strings hard to skip.
func randomString(rng *rand.Rand) string {
	parts := []string{`\"`, `\\`, `\\\"`, `\n`, `\u00e9`, `\ud83d\ude00`, "é", "{", "}", "[", "]", ",", ":", "a", "usage", `\"usage\":{`}
	var s strings.Builder
	s.WriteByte('"')
	for range rng.IntN(6) {
		s.WriteString(parts[rng.IntN(len(parts))])
	}
	s.WriteByte('"')
	return s.String()
}

// The walker finds the members and elements that encoding/json finds.
func TestWalkingAgreesWithEncodingJSON(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var w strings.Builder
		writeObject(rng, &w, 5)
		checkWalk(t, []byte(w.String()))
	}
}

func checkWalk(t *testing.T, b []byte) {
	t.Helper()
	switch strings.TrimLeft(string(b), " \t\r\n")[0] {
	case '{':
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(b, &want), "%s", b)
		got := map[string]json.RawMessage{}
		members(b, func(key, value []byte) {
			got[text([]byte(`"`+string(key)+`"`))] = value
			checkWalk(t, value)
		})
		require.Equal(t, want, got, "%s", b)
	case '[':
		var want []json.RawMessage
		require.NoError(t, json.Unmarshal(b, &want), "%s", b)
		got := []json.RawMessage{}
		elements(b, func(value []byte) {
			got = append(got, value)
			checkWalk(t, value)
		})
		require.Equal(t, want, got, "%s", b)
	case '"':
		var want string
		require.NoError(t, json.Unmarshal(b, &want), "%s", b)
		require.Equal(t, want, text(b))
		require.Equal(t, want != "", nonEmptyString(b))
	default:
		var want *int
		err := json.Unmarshal(b, &want)
		n, ok := wholeNumber(b)
		require.Equal(t, err == nil && want != nil, ok, "%s", b)
		if ok {
			require.Equal(t, *want, n)
		}
	}
}

// Depth costs no stack, and no text makes the walk more than linear.
func TestWalkingIsLinearWhateverTheText(t *testing.T) {
	const size = 128 << 10
	for name, text := range map[string]string{
		"100,000 arrays":       `{"choices":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"100,000 objects":      `{"choices":[` + strings.Repeat(`{"delta":`, 100_000) + `1` + strings.Repeat("}", 100_000) + `]}`,
		"arrays without end":   `{"choices":` + strings.Repeat("[", size),
		"objects without end":  `{"choices":[{"delta":` + strings.Repeat(`{"delta":`, size/9),
		"backslashes":          `{"id":"` + strings.Repeat(`\`, size) + `"}`,
		"escaped quotes":       `{"id":"` + strings.Repeat(`\"`, size/2) + `"}`,
		"quotes without end":   `{"id":"` + strings.Repeat(`\"`, size/2),
		"backslashes, no end":  `{"id":"` + strings.Repeat(`\\`, size/2),
		"many strings":         `{"choices":[` + strings.Repeat(`"\\",`, size/5) + `1]}`,
		"many members":         `{` + strings.Repeat(`"usage":{},`, size/11) + `"a":1}`,
		"many choices":         `{"choices":[` + strings.Repeat(`{"index":1},`, size/12) + `{}]}`,
		"many tool calls":      `{"choices":[{"delta":{"tool_calls":[` + strings.Repeat(`{"function":{}},`, size/16) + `{}]}}]}`,
		"spaces":               `{"id"` + strings.Repeat(" ", size) + `:1}`,
		"nothing but brackets": strings.Repeat("[{", size/2),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			for _, d := range dialects {
				a := Answer{dialect: d, sure: true}
				a.read(Event{Data: []byte(text)})
				assert.LessOrEqual(t, len(a.finish), maxChoices)
				assert.Equal(t, tokens{}, a.usage)
			}
			var v values
			v.push([]byte(text), func(Event) {})
			ReadRequest("/v1/chat/completions", []byte(text))
			ReadBody(nil, Exchange{}, []byte(text))
			whole(Event{Data: []byte(text)})
			assert.Less(t, time.Since(start), 4*time.Second)
		})
	}
}
