package wire

import "encoding/base64"

// ObservePieces shows each piece of output that s reads, as JSON.
func ObservePieces(s *Stream, see func(kind Kind, raw []byte)) { s.answer.piece = see }

// FitsShape reports whether the only event of p is one that s need not parse.
func FitsShape(s *Stream, p []byte) (fits bool) {
	var f framer = &sse{}
	switch s.framer.(type) {
	case *ndjson:
		f = &ndjson{}
	case *eventStream:
		f = &eventStream{}
	}
	f.push(p, func(e Event) {
		data := e.Data
		if encoded := valueIn(data, "bytes"); len(encoded) > 2 {
			data, _ = base64.StdEncoding.DecodeString(string(encoded[1 : len(encoded)-1]))
		}
		_, fits = s.answer.shape.fits(e.Name, data)
	})
	return fits
}
