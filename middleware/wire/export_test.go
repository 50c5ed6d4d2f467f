package wire

// ObservePieces shows each piece of output that s reads, as JSON.
func ObservePieces(s *Stream, see func(kind Kind, raw []byte)) { s.answer.piece = see }

// ReadPieces shows each piece of output of a whole answer.
func ReadPieces(x Exchange, body []byte, see func(kind Kind, raw []byte)) {
	a := Answer{piece: see}
	a.dialect, a.sure = x.likely()
	a.readDocument(body)
}
