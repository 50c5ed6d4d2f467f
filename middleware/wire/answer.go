package wire

import (
	"bytes"
	"encoding/json"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// An Answer gathers what the answer of a model tells, event after event. A
// [Dialect] fills it.
type Answer struct {
	dialect Dialect // nil while it is not known
	foreign bool    // it is none of this package
	sure    bool    // it was chosen, or recognised
	guesses int     // events that it was not recognised by
	panics  int     // events that it panicked at

	id, model  string
	usage      tokens
	implied    tokens   // counts that stand elsewhere, for where there is no usage
	cacheApart bool     // the input tokens of usage exclude those of the cache
	finish     []string // by choice
	errType    string
	times      EngineTimes

	begun    bool // an event came that is no heartbeat
	known    bool // something of the dialect was seen
	endless  bool // the dialect has no end mark
	finished bool
	choices  uint16 // those that were seen, a bit each
	closed   uint16 // those that have finished
	done     bool   // the end mark came
	failed   bool

	// Of the event that is being read:
	data    []byte
	kinds   Kind
	plain   bool // it tells nothing but a piece of output
	outputs int
	holes   []hole

	shape     shape
	decoded   []byte                      // an event that came in base64
	generated []int                       // tokens so far, by choice, of a cumulative text
	piece     func(kind Kind, raw []byte) // for tests: sees each piece of output
}

// A Kind says what an event carries. The kinds add up: one event can carry
// several.
type Kind uint16

// What an event can carry. The methods of [Answer] for usage and errors note those
// by themselves.
const (
	KindContent   Kind = 1 << iota // answer text
	KindRefusal                    // text that declines to answer
	KindReasoning                  // reasoning, or a summary of it
	KindTool                       // name or arguments of a tool call
	KindToken                      // a generated token that stands for no text
	KindRole                       // the frame of a message, without output
	KindUsage                      // token counts
	KindPing                       // a heartbeat
	KindError                      // a failure
	KindDone                       // the end of the answer
)

// chunk is how the token clock sees it.
func (k Kind) chunk() genaitrace.ChunkKind {
	switch {
	case k&(KindContent|KindRefusal) != 0:
		return genaitrace.Visible
	case k&(KindReasoning|KindTool|KindToken) != 0:
		return genaitrace.Output
	}
	return genaitrace.NoOutput
}

const (
	// maxChoices bounds the finish reasons that are kept.
	maxChoices = 16
	// maxGuesses bounds how many events are looked at to recognise a dialect.
	maxGuesses = 64
)

var doneMark = []byte("[DONE]")

// read reads one event of a stream. chunk is false for end marks, heartbeats before
// the answer and what comes after its end.
func (a *Answer) read(e Event) (kind genaitrace.ChunkKind, chunk bool) {
	if a.done {
		return genaitrace.NoOutput, false
	}
	if kinds, ok := a.shape.fits(e.Name, e.Data); ok && !e.failed {
		return kinds.chunk(), true
	}
	if !a.begun {
		e.Data = bytes.TrimPrefix(e.Data, bom)
	}
	e.Data = bytes.TrimSpace(e.Data)
	switch {
	case len(e.Data) == 0 && !e.failed:
		return genaitrace.NoOutput, false
	case bytes.Equal(e.Data, doneMark):
		a.done, a.known = true, true
		return genaitrace.NoOutput, false
	}
	a.readJSON(e)
	if a.kinds == KindPing && !a.begun {
		return genaitrace.NoOutput, false // before the answer it is no part of it
	}
	a.begun = true
	return a.kinds.chunk(), true
}

// readJSON has the dialect read one document: an event, or a whole answer.
func (a *Answer) readJSON(e Event) {
	a.begin(e.Data)
	if e.failed {
		a.readFailure(e)
		return
	}
	if !a.sure && a.guesses < maxGuesses {
		a.guesses++
		if d := recognise(e.Data); d != nil {
			a.dialect, a.sure = d, true
		} else if isHeartbeat(e.Data) {
			a.note(KindPing)
			return
		}
	}
	d := a.dialect
	if d == nil {
		d = OpenAI
	}
	if !a.foreign {
		d.Read(a, e)
	} else if !a.ask(d, e) {
		return
	}
	if string(e.Name) == "error" && !a.failed {
		a.readError(e.Data)
	}
	a.learn(e.Name)
}

// isHeartbeat reports whether an event is one of those that Anthropic and OpenAI send,
// and many others too: it tells no dialect.
func isHeartbeat(b []byte) bool {
	switch text(valueIn(b, "type")) {
	case "ping", "keepalive":
		return true
	}
	return false
}

// ask has somebody else's dialect read an event, and reports whether it did without a
// panic. What it noted before one stands.
func (a *Answer) ask(d Dialect, e Event) (ok bool) {
	defer func() {
		if recover() != nil {
			a.panics++
			ok = false
		}
	}()
	d.Read(a, e)
	return true
}

// learn keeps the shape of the event, if it is a plain one of one line.
func (a *Answer) learn(name []byte) {
	if !a.foreign && a.piece == nil && a.plain && a.outputs == 1 && len(a.data) <= maxShape && bytes.IndexByte(a.data, '\n') < 0 {
		a.shape.learn(Event{Name: name, Data: a.data}, a.holes, a.kinds)
	}
}

// begin forgets what was known of the event before.
func (a *Answer) begin(data []byte) {
	a.data, a.kinds, a.plain, a.outputs, a.holes = data, 0, true, 0, a.holes[:0]
}

// readDocument reads a whole answer. Some servers put it into an array; one of
// several answers (a batch) is none that can be told apart.
func (a *Answer) readDocument(b []byte) {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, bom))
	if len(b) == 0 || b[0] != '[' || a.foreign {
		a.readJSON(Event{Data: b})
		return
	}
	count := 0
	elements(b, func([]byte) { count++ })
	elements(b, func(value []byte) {
		d := recognise(value)
		if d == Gemini || count == 1 && (d != nil || valueIn(value, "error") != nil) {
			a.readJSON(Event{Data: value})
		}
	})
}

// Note says what the event carries. Output is to be noted where there is some:
// an empty text is none.
func (a *Answer) Note(kinds Kind) {
	a.note(kinds)
	a.plain = false
}

// note is Note for what two events with the same members have in common.
func (a *Answer) note(kinds Kind) {
	a.kinds |= kinds
	a.known = true
	if kinds&KindDone != 0 {
		a.done = true
	}
}

// out notes the output that value is, a part of the event: a string with
// something in it, or the arguments of a tool as JSON.
func (a *Answer) out(kind Kind, value []byte) {
	switch {
	case nonEmptyString(value):
		a.hole(value[1:len(value)-1], output)
	case len(value) > 2 && (value[0] == '{' || value[0] == '['):
		a.plain = false
	default:
		return
	}
	a.note(kind)
	a.outputs++
	if a.piece != nil {
		a.piece(kind, value)
	}
}

// vary says that value, a part of the event, differs from event to event and
// tells nothing.
func (a *Answer) vary(value []byte) {
	switch c := value[0]; {
	case c == '"':
		a.hole(value[1:len(value)-1], anyText)
	case c == '-' || '0' <= c && c <= '9':
		a.hole(value, anyCount)
	}
}

// hole makes a hole in the shape of the event where value stands.
func (a *Answer) hole(value []byte, kind holeKind) {
	// The walkers slice a.data, and what they slice keeps its end of the array:
	// the capacities tell where.
	start := cap(a.data) - cap(value)
	if len(a.holes) == maxHoles || start < 0 || start+len(value) > len(a.data) {
		a.plain = false
		return
	}
	if n := len(a.holes); n > 0 && start < a.holes[n-1].end { // found by another walk
		a.plain = false
		return
	}
	a.holes = append(a.holes, hole{start, start + len(value), kind})
}

// SetResponse notes the identifier of the answer and the model that gives it.
// Empty is unknown; the first value counts.
func (a *Answer) SetResponse(id, model string) {
	if a.id == "" {
		a.id = id
	}
	if a.model == "" {
		a.model = model
	}
}

// setID and setModel are SetResponse without making a string in vain.
func (a *Answer) setID(value []byte) {
	if a.id == "" {
		a.id = text(value)
	}
}

func (a *Answer) setModel(value []byte) {
	if a.model == "" {
		a.model = text(value)
	}
}

// SetUsage notes token counts of the answer so far. Known fields replace those
// of earlier events, but a zero after a count tells nothing. The input includes
// cached tokens and the output reasoning: where an API counts them apart, its
// dialect adds them.
func (a *Answer) SetUsage(u genaitrace.Usage) {
	a.setUsage(tokensOf(u))
}

func (a *Answer) setUsage(t tokens) {
	a.usage.merge(t)
	a.Note(KindUsage)
}

// imply notes counts that stand outside of a usage object: they count where there
// is none.
func (a *Answer) imply(t tokens) {
	if t != (tokens{}) {
		a.implied.merge(t)
		a.plain = false
	}
}

// SetFinish notes why generation of a choice ended, in the words of the API.
// Choices count from 0; only the first 16 are kept. An empty reason says that it
// ended and not why.
func (a *Answer) SetFinish(choice int, reason string) {
	a.plain, a.known = false, true
	if choice < 0 || choice >= maxChoices {
		return
	}
	a.finished = true
	a.closed |= 1 << choice
	if reason == "" {
		return
	}
	for len(a.finish) <= choice {
		a.finish = append(a.finish, "")
	}
	a.finish[choice] = reason
}

// open notes that the answer has a choice of that index, which has to finish too.
func (a *Answer) open(choice int) {
	if choice >= 0 && choice < maxChoices {
		a.choices |= 1 << choice
	}
}

// SetError notes that the answer failed. errType is the API's word for it, which
// becomes error.type; empty is unknown. Only the first failure counts.
func (a *Answer) SetError(errType string) {
	a.Note(KindError)
	if a.failed {
		return
	}
	a.failed, a.errType = true, errType
}

// SetTimes notes what the engine tells of its own durations; known fields replace
// those of earlier events.
func (a *Answer) SetTimes(t EngineTimes) {
	if t.known() {
		a.times.merge(t)
		a.plain = false
	}
}

// SetNoEndMark says that a stream of this API has no end mark and no finish
// reasons: it ends well where its bytes end.
func (a *Answer) SetNoEndMark() { a.endless = true }

// errTypeStream is the error.type of an error that does not say more.
const errTypeStream = "stream_error"

// readError reads an error: a plain message, or an object with a code, a type or
// a status. The code is the most exact of them where it is a word; a number is the
// last resort, and all that some gateways send.
func (a *Answer) readError(b []byte) {
	switch string(b) {
	case "", "null", "false", `""`:
		return
	}
	var word, kind, status, number string
	members(b, func(key, value []byte) {
		switch string(key) {
		case "code":
			if word = text(value); word == "" {
				if _, ok := wholeNumber(value); ok {
					number = string(value)
				}
			}
		case "type":
			kind = text(value)
		case "status": // Google's
			status = text(value)
		}
	})
	a.SetError(firstOf(word, kind, status, number))
}

// readFailure reads an event whose framing says that it is a failure. Its name is
// the type of an AWS exception.
func (a *Answer) readFailure(e Event) {
	if len(e.Name) > 0 && len(e.Name) <= maxText {
		a.SetError(string(e.Name))
		return
	}
	a.readError(e.Data)
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// reasons returns the finish reasons of the choices that have one.
func (a *Answer) reasons() []string {
	kept := make([]string, 0, len(a.finish))
	for _, r := range a.finish {
		if r != "" {
			kept = append(kept, r)
		}
	}
	return kept
}

// report hands over what does not depend on how the answer ended: nothing of a stream
// that was no answer as far as anybody knows.
func (a *Answer) report(call *genaitrace.Call) {
	if a.dialect == nil {
		return
	}
	call.SetResponse(a.id, a.model)
	a.usage.fill(a.implied)
	if u := a.usage.total(a.cacheApart); u != (genaitrace.Usage{}) {
		call.SetUsage(u)
	}
	if reasons := a.reasons(); len(reasons) > 0 {
		call.SetFinish(reasons...)
	}
}

// terminal says how a stream ended, which is clean where its bytes ended by
// themselves and after a whole event. Of a stream that told nothing, or in words of
// nobody's, it only knows that.
func (a *Answer) terminal(clean bool) semconv.GenAIStreamTerminalAttr {
	switch {
	case a.failed:
		return semconv.GenAIStreamTerminalError
	case a.done:
		return semconv.GenAIStreamTerminalDone
	case !clean:
		return semconv.GenAIStreamTerminalTruncated
	case a.finished && a.choices&^a.closed == 0:
		return semconv.GenAIStreamTerminalFinish
	case a.endless, !a.known, a.dialect == nil:
		return semconv.GenAIStreamTerminalEOF
	}
	return semconv.GenAIStreamTerminalTruncated
}

// whole reports whether an event that lacks its end is complete.
func whole(e Event) bool {
	d := bytes.TrimSpace(e.Data)
	return bytes.Equal(d, doneMark) || json.Valid(d)
}
