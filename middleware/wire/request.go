package wire

import (
	"bytes"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// ReadRequest reads the facts of a request to path from its JSON body. A body
// that was cut tells what stands before the cut.
func ReadRequest(path string, body []byte) genaitrace.Request {
	r := NewRequestReader(path)
	_, _ = r.Write(body)
	return r.Request()
}

// A RequestReader reads the facts of a request (model, stream, token limit,
// sampling) from its path and its JSON body, as the body is written to it, split
// anywhere. The words of all APIs are known to it. It keeps a few hundred bytes at
// most: messages are skipped, and nothing of a prompt is kept. It is for one
// goroutine.
type RequestReader struct {
	facts facts
	state requestState
	inner bool   // inside a member that holds settings
	key   string // of the member that is being read, if it is one of interest
	kept  []byte // what is being read of a key or a value
	long  bool   // it is longer than anything of interest

	depth    int  // of the value that is being skipped
	elements int  // of the array that is being skipped
	quoted   bool // inside a string
	escaped  bool // after a backslash
}

type requestState uint8

const (
	wantObject requestState = iota
	wantFirstKey
	wantKey
	inKey
	wantColon
	wantValue
	inText
	inNumber // or a literal
	inNested
	wantComma
	over // the object ended, or the text is broken
)

// NewRequestReader returns a reader for a request to path, which may name the
// model or say that the answer is streamed. own are endpoints besides those that
// this package knows.
func NewRequestReader(path string, own ...Endpoint) *RequestReader {
	return &RequestReader{facts: newFacts(path, own)}
}

// Request returns what was read so far.
func (r *RequestReader) Request() genaitrace.Request { return r.facts.request() }

// Tools is how many tools the request offers to the model; what is not an array is
// none.
func (r *RequestReader) Tools() int { return r.facts.tools }

// ExpectsUsage reports whether the answer will tell its token usage: a whole
// answer does, OpenAI's streams where the request asks for it
// (stream_options.include_usage), other streams as a rule, Triton's answers never.
func (r *RequestReader) ExpectsUsage() bool { return r.facts.expectsUsage() }

// Write reads what follows in the body. It never fails.
func (r *RequestReader) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && r.state != over {
		switch r.state {
		case inKey, inText:
			p = r.readString(p)
			continue
		case inNested:
			p = r.skipNested(p)
			continue
		case inNumber:
			if c := p[0]; c > ' ' && c != ',' && c != '}' {
				r.keep(p[:1])
				break
			}
			r.note()
			r.state = wantComma
			continue // with the same byte
		default:
			if c := p[0]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				r.step(c)
			}
		}
		p = p[1:]
	}
	return n, nil
}

// step takes one byte that stands between keys and values, or begins one.
func (r *RequestReader) step(c byte) {
	switch {
	case r.state == wantObject && c == '{':
		r.state = wantFirstKey
	case (r.state == wantKey || r.state == wantFirstKey) && c == '"':
		r.state = inKey
		r.forget()
	case r.state == wantColon && c == ':':
		r.state = wantValue
	case r.state == wantValue:
		r.begin(c)
	case r.state == wantComma && c == ',':
		r.state = wantKey
	case (r.state == wantComma || r.state == wantFirstKey) && c == '}' && r.inner:
		r.state, r.inner = wantComma, false
	default:
		r.state = over
	}
}

// begin takes the first byte of a value.
func (r *RequestReader) begin(c byte) {
	r.forget()
	switch c {
	case '"':
		r.state = inText
		r.keep([]byte{c})
	case '{', '[':
		if c == '{' && !r.inner && r.key == settingsMember {
			r.state, r.inner = wantFirstKey, true
			return
		}
		r.state, r.depth, r.elements = inNested, 1, 0
	case ',', '}', ']', ':':
		r.state = over
	default:
		r.state = inNumber
		r.keep([]byte{c})
	}
}

// readString reads a key or a text up to its closing quote, which it keeps of a
// text.
func (r *RequestReader) readString(p []byte) (rest []byte) {
	end, closed := r.closingQuote(p)
	if r.state == inKey {
		r.keep(p[:end])
		if closed {
			r.key, r.state = r.keyOfInterest(), wantColon
			return p[end+1:]
		}
		return nil
	}
	if closed {
		r.keep(p[:end+1])
		r.note()
		r.state = wantComma
		return p[end+1:]
	}
	r.keep(p)
	return nil
}

// closingQuote finds the end of a string that p continues.
func (r *RequestReader) closingQuote(p []byte) (at int, closed bool) {
	i := 0
	if r.escaped && len(p) > 0 {
		i, r.escaped = 1, false
	}
	quote := -1
	for {
		if quote < i {
			if quote = bytes.IndexByte(p[i:], '"'); quote < 0 {
				quote = len(p)
			} else {
				quote += i
			}
		}
		slash := bytes.IndexByte(p[i:quote], '\\')
		if slash < 0 {
			return quote, quote < len(p)
		}
		if i += slash + 2; i > len(p) {
			r.escaped = true
			return len(p), false
		}
	}
}

// skipNested passes over the rest of an object or array, and counts the objects
// that are its elements.
func (r *RequestReader) skipNested(p []byte) (rest []byte) {
	for i := 0; i < len(p); i++ {
		if r.quoted {
			end, closed := r.closingQuote(p[i:])
			i += end
			r.quoted = !closed
			continue
		}
		switch p[i] {
		case '"':
			r.quoted = true
		case '{', '[':
			if r.depth == 1 {
				r.elements++
			}
			r.depth++
		case '}', ']':
			if r.depth--; r.depth == 0 {
				r.facts.noteArray(r.key, r.elements)
				r.state = wantComma
				return p[i+1:]
			}
		}
	}
	return nil
}

func (r *RequestReader) forget() { r.kept, r.long = r.kept[:0], false }

func (r *RequestReader) keep(part []byte) {
	if r.long || len(r.kept)+len(part) > maxText {
		r.long = true
		return
	}
	if r.state == inKey || r.key != "" {
		r.kept = append(r.kept, part...)
	}
}

// keyOfInterest returns the key that was read where somebody wants its value.
func (r *RequestReader) keyOfInterest() string {
	if r.long {
		return ""
	}
	key := wanted[string(r.kept)]
	if r.inner && (key == modelMember || key == settingsMember) {
		return "" // something else by the same name
	}
	return key
}

// note takes over the value that was read.
func (r *RequestReader) note() {
	if !r.long {
		r.facts.note(r.key, r.kept)
	}
}
