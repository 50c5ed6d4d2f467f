package wire

// values splits a sequence of JSON objects, however they are separated: the
// elements of an array that is written piece by piece, as Gemini streams without
// "alt=sse", or one after another.
type values struct {
	kept    []byte // the object that is not complete yet, owned
	depth   int    // of nesting; 0 between two objects
	quoted  bool   // inside a string
	escaped bool   // after a backslash
	tooLong bool   // the current object is dropped
	dropped int
}

// open reports whether an object has begun and not ended.
func (v *values) open() bool { return v.depth > 0 }

// reset gives up an object that never ends.
func (v *values) reset() {
	v.kept, v.depth = v.kept[:0], 0
	v.quoted, v.escaped, v.tooLong = false, false, false
}

func (*values) only([]byte) (name, data []byte, ok bool) { return nil, nil, false }

func (v *values) push(p []byte, dispatch func(Event)) {
	start := 0 // of the object, in p
	for i, c := range p {
		switch {
		case v.escaped:
			v.escaped = false
		case v.quoted:
			v.escaped = c == '\\'
			v.quoted = c != '"'
		case c == '{' || c == '[' && v.depth > 0:
			if v.depth == 0 {
				start = i
			}
			v.depth++
		case v.depth == 0: // between two objects
		case c == '"':
			v.quoted = true
		case c == '}' || c == ']':
			if v.depth--; v.depth == 0 {
				v.complete(p[start:i+1], dispatch)
			}
		}
	}
	if v.depth > 0 {
		v.keep(p[start:])
	}
}

// complete hands on the object that ends with part.
func (v *values) complete(part []byte, dispatch func(Event)) {
	if len(v.kept) > 0 || v.tooLong {
		v.keep(part)
		part = v.kept
	}
	if v.tooLong || len(part) > MaxEvent {
		v.dropped++
	} else {
		dispatch(Event{Data: part})
	}
	v.kept, v.tooLong = v.kept[:0], false
}

func (v *values) keep(part []byte) {
	if v.tooLong || len(v.kept)+len(part) > MaxEvent {
		v.kept, v.tooLong = v.kept[:0], true
		return
	}
	v.kept = append(v.kept, part...)
}

func (v *values) finish(func(Event)) (rest Event, ok bool) {
	if v.tooLong {
		v.dropped++
		return Event{}, false
	}
	return Event{Data: v.kept}, v.depth > 0
}

func (v *values) unread() int { return v.dropped }
