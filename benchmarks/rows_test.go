package benchmarks

import (
	"net/http"
	"slices"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// A row is one thing that happens to a streamed chat, and what is true of it then.
type row struct {
	name   string
	only   []column.API // nil: every API
	header http.Header  // what the application asks for; its client must be net/http for that
	serve  func(s *script)
	use    func(v *visit) // nil: the answer is read to its end
	truth  func(w words) truth
}

// A truth is what an instrumentation may say of a row.
type truth struct {
	failed bool     // it is the server's failure
	finish []string // the reason to stop; nil: none came
	usage  usage    // of tokens; zero: none came
	silent bool     // the usage that came is not the answer's, so nothing is asked
}

type usage struct{ input, output int }

var openAIAlone = []column.API{column.OpenAI}

// rows are those that no recording has.
func rows() []row {
	return slices.Concat(streams(), departures(), failures(), framings())
}

// done is the truth of an answer that came whole.
func done(w words) truth {
	return truth{finish: w.reasons[:1], usage: usage{w.input, output}}
}

func toolCall(w words) truth {
	return truth{finish: w.reasons[1:], usage: usage{w.input, output}}
}

// cut is the truth of an answer that nobody awaited, or that did not end.
func cut(words) truth { return truth{silent: true} }

func failed(words) truth { return truth{failed: true, silent: true} }

// streams are answers that come whole.
func streams() []row {
	return []row{
		{name: "normal", serve: (*script).whole, truth: done},
		{name: "late headers", truth: done, serve: func(s *script) { s.wait(6); s.whole() }},
		{name: "tool call alone", truth: toolCall, serve: func(s *script) {
			s.say(s.role)
			s.wait(4)
			s.say(s.tool)
			s.wait(2)
			s.say(s.toolEnd...)
		}},
		{name: "reasoning first", truth: done, serve: func(s *script) {
			s.say(s.role)
			s.wait(4)
			s.say(s.reasoning)
			s.wait(4)
			s.tokens()
			s.say(s.finish...)
		}},
		{name: "heartbeats", truth: done, serve: func(s *script) {
			for range 3 {
				s.say(s.heartbeat)
				s.wait(2)
			}
			s.whole()
		}},
		{name: "unknown kind of delta first", only: []column.API{column.Anthropic}, truth: done, serve: func(s *script) {
			s.say(s.role)
			s.wait(1)
			s.say(blockDelta(`"type":"future_delta","future":"x"`))
			s.wait(4)
			s.tokens()
			s.say(s.finish...)
		}},
		{
			name: "cached tokens inside the input", only: openAIAlone,
			truth: func(words) truth { return truth{finish: []string{"stop"}, usage: usage{19, 40}} },
			serve: func(s *script) { s.usual(); s.say(chatDelta("", `"stop"`), chatUsage(19, 40, 8), doneMark) },
		},
		{
			name: "a later usage of zeros", only: openAIAlone,
			truth: func(words) truth { return truth{finish: []string{"stop"}, usage: usage{7, 1}} },
			serve: func(s *script) {
				s.usual()
				s.say(chatDelta("", `"stop"`), chatUsage(7, 1, 0))
				s.wait(1)
				s.say(chatUsage(0, 0, 0), doneMark)
			},
		},
		{
			name: "no end mark", only: openAIAlone,
			truth: func(words) truth { return truth{finish: []string{"stop"}} },
			serve: func(s *script) { s.usual(); s.say(chatDelta("", `"stop"`)) },
		},
	}
}

// departures are clients that leave.
func departures() []row {
	hang := func(s *script) { s.usual(); <-s.gone }
	return []row{
		{name: "client closes early", serve: hang, use: (*visit).closeEarly, truth: cut},
		{name: "client cancels", serve: hang, use: (*visit).cancelEarly, truth: cut},
		{name: "client abandons the body, then cancels", serve: hang, use: (*visit).abandon, truth: cut},
		{name: "client closes after a burst", use: (*visit).closeEarly, truth: cut, serve: func(s *script) {
			s.say(s.role)
			s.wait(4)
			for range 40 {
				s.say(s.text)
			}
			<-s.gone
		}},
	}
}

// failures are the server's.
func failures() []row {
	return []row{
		{name: "server drops the connection", truth: failed, serve: func(s *script) { s.usual(); panic(http.ErrAbortHandler) }},
		{name: "stream ends before its end", truth: failed, serve: (*script).usual},
		{name: "error inside the stream", truth: failed, serve: func(s *script) { s.usual(); s.say(s.broken) }},
		{name: "error, then the end mark", only: openAIAlone, truth: failed, serve: func(s *script) { s.usual(); s.say(s.broken, doneMark) }},
		{name: "429", truth: failed, serve: func(s *script) { s.refuse(http.StatusTooManyRequests, s.tooMany) }},
		{name: "502", truth: failed, serve: func(s *script) { s.refuse(http.StatusBadGateway, "<html>Bad gateway</html>") }},
	}
}

func (s *script) refuse(status int, body string) {
	s.w.Header().Set("Content-Type", "application/json")
	s.w.WriteHeader(status)
	s.write(body)
}

// framings are usual answers in unusual bytes.
func framings() []row {
	zipped := func(s *script) {
		s.compress()
		s.whole()
		_ = s.zip.Close()
	}
	lines := func(newline string) func(*script) {
		return func(s *script) { s.newline = newline; s.whole() }
	}
	return []row{
		{name: "gzip, decoded by the transport", serve: zipped, truth: done},
		{name: "gzip, decoded by the application", serve: zipped, truth: done, header: http.Header{"Accept-Encoding": {"gzip"}}},
		{name: "lines end with CRLF", serve: lines("\r\n"), truth: done},
		{name: "lines end with CR", serve: lines("\r"), truth: done},
		{name: "byte order mark", truth: done, serve: func(s *script) { s.write("\ufeff"); s.whole() }},
		{name: "no space after data:", truth: done, serve: func(s *script) { s.tight = true; s.whole() }},
		{name: "line of 200 kB", truth: done, serve: func(s *script) {
			s.say(s.role)
			s.wait(4)
			s.say(s.long)
			s.tokens()
			s.say(s.finish...)
		}},
	}
}
