package benchmarks

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// pace is the time between two writes of a script.
const pace = 5 * time.Millisecond

// A script is a model server at work on one answer.
type script struct {
	words

	w    http.ResponseWriter
	gone <-chan struct{} // closed when the client has left

	newline string // of a line
	tight   bool   // no space after "data:"
	zip     *gzip.Writer

	plain, packed int // bytes written before and after encoding
	log           writeLog
}

// A writeLog is the truth about the first token of an answer.
type writeLog struct {
	began         time.Time // of its write; zero: there was none
	plain, packed int       // bytes of the body up to the end of that, before and after encoding
}

// newScript starts an answer to r.
func newScript(api column.API, w http.ResponseWriter, r *http.Request) *script {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	return &script{words: wordsOf(api), w: w, gone: r.Context().Done(), newline: "\n"}
}

// compress makes the answer one in gzip, as far as the client asked for it.
func (s *script) compress() {
	s.w.Header().Set("Content-Encoding", "gzip")
	s.zip = gzip.NewWriter(counted{s})
}

// A counted writes what gzip makes of an answer.
type counted struct{ *script }

func (c counted) Write(p []byte) (int, error) {
	c.packed += len(p)
	return c.w.Write(p)
}

// say writes events at once, and flushes them.
func (s *script) say(events ...string) {
	var text strings.Builder
	for _, e := range events {
		if s.tight {
			e = strings.ReplaceAll(e, "data: ", "data:")
		}
		text.WriteString(strings.ReplaceAll(e, "\n", s.newline))
	}
	s.write(text.String())
}

func (s *script) write(text string) {
	began := time.Now()
	if s.zip != nil {
		_, _ = io.WriteString(s.zip, text)
		_ = s.zip.Flush()
	} else {
		s.packed += len(text)
		_, _ = io.WriteString(s.w, text)
	}
	s.plain += len(text)
	_ = http.NewResponseController(s.w).Flush()
	if s.log.began.IsZero() && strings.Contains(text, `"hi"`) {
		s.log = writeLog{began, s.plain, s.packed}
	}
}

func (s *script) wait(times int) { time.Sleep(time.Duration(times) * pace) }

// usual is what most answers begin with: the role, a pause, and tokens.
func (s *script) usual() {
	s.say(s.role)
	s.wait(4)
	s.tokens()
}

func (s *script) tokens() {
	for range output {
		s.say(s.text)
		s.wait(1)
	}
}

func (s *script) whole() {
	s.usual()
	s.say(s.finish...)
}
