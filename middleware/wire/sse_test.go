package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEventsAreFramedAsTheStandardSays(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []string
		rest         string // an event that lacks its blank line
	}{
		{"LF", "data: a\n\ndata: b\n\n", []string{"a", "b"}, ""},
		{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}, ""},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, ""},
		{"mixed line ends", "data: a\r\n\rdata: b\n\r\ndata: c\r\n\ndata: d\r\r", []string{"a", "b", "c", "d"}, ""},
		{"LF before CR ends two lines", "data: a\n\rdata: b\n\r", []string{"a", "b"}, ""},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}, ""},
		{"only one byte order mark", "\ufeff\ufeffdata: a\n\ndata: b\n\n", []string{"b"}, ""},
		{"byte order mark later on", "data: a\n\n\ufeffdata: b\n\n", []string{"a"}, ""},
		{"byte order mark and nothing", "\ufeff\n\ndata: a\n\n", []string{"a"}, ""},
		{"comments", ": ping\n\n:\n\n:data: x\n\ndata: a\n: b\n\n", []string{"a"}, ""},
		{"several data lines", "data: a\ndata: b\ndata:\ndata: c\n\n", []string{"a\nb\n\nc"}, ""},
		{"no space", "data:a\n\n", []string{"a"}, ""},
		{"two spaces", "data:  a\n\n", []string{" a"}, ""},
		{"tab", "data:\ta\n\n", []string{"\ta"}, ""},
		{"trailing space", "data: a \n\n", []string{"a "}, ""},
		{"colons in the value", "data: a: b:c\n\n", []string{"a: b:c"}, ""},
		{"no colon", "data\n\ndata\ndata\n\n", []string{"\n"}, ""},
		{"empty data", "data:\n\ndata: \n\n", nil, ""},
		{"other fields", "event: message\nid: 7\nretry: 3000\nfoo: bar\ndata: a\nevent\n\nid: 8\n\n", []string{"a"}, ""},
		{"longer and shorter names", "datas: a\n\ndat: b\n\nDATA: c\n\n data: d\n\n", nil, ""},
		{"blank lines alone", "\n\n\r\r\r\n", nil, ""},
		{"no blank line at the end", "data: a\n\ndata: b\n", []string{"a"}, "b"},
		{"no line end at the end", "data: a\n\ndata: b", []string{"a"}, "b"},
		{"cut in a name", "data: a\n\nda", []string{"a"}, ""},
		{"NUL and invalid UTF-8", "data: \x00\xff\n\n", []string{"\x00\xff"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range len(tt.stream) + 1 {
				events, rest := frame(new(sse), []byte(tt.stream[:i]), []byte(tt.stream[i:]))
				assert.Equal(t, tt.want, events, "cut at byte %d", i)
				assert.Equal(t, tt.rest, rest, "cut at byte %d", i)
			}
		})
	}
}

// frame pushes pieces and returns the data of the events. The standard does not
// dispatch events without data; the parser hands them on empty, and the dialect
// takes them for heartbeats.
func frame(s *sse, pieces ...[]byte) (events []string, rest string) {
	for _, p := range pieces {
		s.push(p, func(e Event) {
			if len(e.Data) > 0 && !e.bare {
				events = append(events, string(e.Data))
			}
		})
	}
	if e, ok := s.finish(func(Event) {}); ok && !e.bare {
		rest = string(e.Data)
	}
	return events, rest
}

// frameSlowly is section 9.2.6 of the standard, written for the whole stream at
// once and to be compared with its text. It takes the field "error" for data, where
// that holds JSON.
func frameSlowly(stream string) (events []string, rest string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	buffer := ""
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data := strings.TrimSuffix(buffer, "\n"); data != "" {
				events = append(events, data)
			}
			buffer = ""
			continue
		}
		buffer += dataOf(line)
	}
	buffer += dataOf(lines[len(lines)-1])
	return events, strings.TrimSuffix(buffer, "\n")
}

// dataOf is what a line appends to the data buffer.
func dataOf(line string) string {
	field, value, _ := strings.Cut(line, ":")
	if field != "data" && (field != "error" || !strings.HasPrefix(strings.TrimPrefix(value, " "), "{")) {
		return ""
	}
	return strings.TrimPrefix(value, " ") + "\n"
}

// cut splits a stream into pieces of random length.
func cut(rng *rand.Rand, stream []byte) (pieces [][]byte) {
	longest := 1 + rng.IntN(40)
	for len(stream) > 0 {
		n := min(1+rng.IntN(longest), len(stream))
		pieces = append(pieces, stream[:n])
		stream = stream[n:]
	}
	return pieces
}

func TestFramingAgreesWithTheSlowParser(t *testing.T) {
	words := []string{
		"\n", "\n", "\n", "\r", "\r\n", "\r\n", "data", "data:", "data: ", "data: ", ":", " ", "a", "é", "\ufeff",
		"event: x", "id: 1", "[DONE]", `{"a":1}`, ": ping", "data: " + strings.Repeat("long", 20),
	}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var stream strings.Builder
		for range rng.IntN(60) {
			stream.WriteString(words[rng.IntN(len(words))])
		}
		wantEvents, wantRest := frameSlowly(stream.String())
		events, rest := frame(new(sse), cut(rng, []byte(stream.String()))...)
		require.Equal(t, wantEvents, events, "seed %d: %q", seed, stream.String())
		require.Equal(t, wantRest, rest, "seed %d: %q", seed, stream.String())
	}
}

// A hostile stream costs no more time than its length, and no more memory than
// an event.
func TestFramingIsLinearAndBounded(t *testing.T) {
	const size = 512 << 10
	for name, unit := range map[string]string{
		"CR":              "\r",
		"LF":              "\n",
		"CRLF":            "\r\n",
		"short lines, CR": "data: x\r",
		"no line end":     "x",
		"empty data":      "data\n",
		"comments":        ":\n",
	} {
		for _, piece := range []int{size, 1000} {
			t.Run(fmt.Sprintf("%s, %d bytes a push", name, piece), func(t *testing.T) {
				stream := bytes.Repeat([]byte(unit), size/len(unit))
				var s sse
				start := time.Now()
				for len(stream) > 0 {
					n := min(piece, len(stream))
					s.push(stream[:n], func(Event) {})
					stream = stream[n:]
				}
				assert.Less(t, time.Since(start), 3*time.Second)
				assert.LessOrEqual(t, cap(s.line)+cap(s.data), 4*MaxEvent)
			})
		}
	}
}
