package wire

import (
	"bytes"
	"encoding/json"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// ReadRequest reads the facts of a request from its JSON body. A body that was
// cut tells what stands before the cut.
func ReadRequest(body []byte) genaitrace.Request {
	var r RequestReader
	_, _ = r.Write(body)
	return r.Request()
}

// A RequestReader reads the facts of a request (model, stream, token limit,
// sampling) from its JSON body as that is written to it, split anywhere. It keeps
// a few hundred bytes at most: messages are skipped, and nothing of a prompt is
// kept. The zero value is ready; it is for one goroutine.
type RequestReader struct {
	request genaitrace.Request
	usage   bool // asked for in a stream
	state   requestState
	key     string // of the member that is being read, if it is one of interest
	kept    []byte // what is being read of a key or a value
	tooLong bool

	depth   int  // of the value that is being skipped
	quoted  bool // inside a string
	escaped bool // after a backslash
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

// Request returns what was read so far.
func (r *RequestReader) Request() genaitrace.Request { return r.request }

// ExpectsUsage reports whether the answer will tell its token usage: a whole
// answer does, a stream where the request asks for it
// (stream_options.include_usage).
func (r *RequestReader) ExpectsUsage() bool { return r.usage || !r.request.Stream }

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
		r.forget()
		switch c {
		case '"':
			r.state = inText
			r.keep([]byte{c})
		case '{', '[':
			r.state, r.depth = inNested, 1
			r.keep([]byte{c})
		case ',', '}', ']', ':':
			r.state = over
		default:
			r.state = inNumber
			r.keep([]byte{c})
		}
	case r.state == wantComma && c == ',':
		r.state = wantKey
	default:
		r.state = over
	}
}

// readString reads a key or a text up to its closing quote, which it keeps of a
// text.
func (r *RequestReader) readString(p []byte) (rest []byte) {
	end, closed := r.closingQuote(p)
	if r.state == inKey {
		r.keep(p[:end])
		if closed {
			r.key, r.state = keyOfInterest(r.kept), wantColon
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

// skipNested passes over the rest of an object or array, and keeps it where it is
// of interest.
func (r *RequestReader) skipNested(p []byte) (rest []byte) {
	rest = r.endOfNested(p)
	r.keep(p[:len(p)-len(rest)])
	if r.state == wantComma {
		r.note()
	}
	return rest
}

func (r *RequestReader) endOfNested(p []byte) (rest []byte) {
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
			r.depth++
		case '}', ']':
			if r.depth--; r.depth == 0 {
				r.state = wantComma
				return p[i+1:]
			}
		}
	}
	return nil
}

func (r *RequestReader) forget() { r.kept, r.tooLong = r.kept[:0], false }

func (r *RequestReader) keep(part []byte) {
	if r.tooLong || len(r.kept)+len(part) > maxText {
		r.tooLong = true
		return
	}
	if r.state == inKey || r.key != "" {
		r.kept = append(r.kept, part...)
	}
}

// keyOfInterest returns the key where it is one that note reads.
func keyOfInterest(key []byte) string {
	for _, k := range [...]string{"model", "stream", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stream_options"} {
		if string(key) == k {
			return k
		}
	}
	return ""
}

// note takes over the value that was read.
func (r *RequestReader) note() {
	if r.tooLong {
		return
	}
	switch r.key {
	case "model":
		r.request.Model = text(r.kept)
	case "stream":
		r.request.Stream = string(r.kept) == "true"
	case "max_tokens", "max_completion_tokens":
		if n, ok := count(r.kept); ok && n > 0 {
			r.request.MaxTokens = n
		}
	case "temperature":
		r.request.Temperature = number(r.kept)
	case "top_p":
		r.request.TopP = number(r.kept)
	case "stream_options":
		members(r.kept, 0, func(key []byte, start, end int) {
			if string(key) == "include_usage" {
				r.usage = string(r.kept[start:end]) == "true"
			}
		})
	}
}

// number is the number that value holds; NaN and the like are none in JSON.
func number(value []byte) (f *float64) {
	if json.Unmarshal(value, &f) != nil {
		return nil
	}
	return f
}
