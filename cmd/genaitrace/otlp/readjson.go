package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/genaitrace/otelgenai/capture"
)

// nextJSON reads the next document and decodes it.
func (r *Reader) nextJSON() (*capture.Capture, error) {
	if err := r.skipSpace(); err != nil {
		return nil, err
	}
	begin := r.at
	var scan jsonScan
	doc := r.message[:0]
	for done := false; !done; {
		chunk, err := r.chunk()
		if errors.Is(err, io.EOF) {
			found := diagnoseJSON(doc)
			if found == nil {
				found = &damage{offset: len(doc), text: "the document is cut off here"}
			}
			return nil, r.jsonError(begin, doc, found)
		}
		if err != nil {
			return nil, err
		}
		n, ended, found := scan.feed(chunk)
		doc = append(doc, chunk[:n]...)
		if found != nil {
			return nil, r.jsonError(begin, doc, found)
		}
		if len(doc) > r.limit {
			if found := diagnoseJSON(doc); found != nil && found.offset < len(doc) {
				return nil, r.jsonError(begin, doc, found) // what should have ended it is damaged
			}
			return nil, fmt.Errorf("%s:%d: the document is larger than %s: write one export a line (JSON lines), or raise the limit (WithMaxMessage)", r.name, begin.line, bytesOf(r.limit))
		}
		r.skip(n)
		done = ended
	}
	r.keepMemory(doc)
	all, found := scan.signals(doc)
	if found != nil {
		return nil, r.jsonError(begin, doc, found)
	}
	got, found := r.decoder.json(all, doc)
	if found != nil {
		return nil, r.jsonError(begin, doc, found)
	}
	return got, nil
}

// skipSpace moves on to the next document, and refuses what is none.
func (r *Reader) skipSpace() error {
	for {
		chunk, err := r.chunk()
		if err != nil {
			return err
		}
		rest := bytes.TrimLeft(chunk, space)
		r.skip(len(chunk) - len(rest))
		if len(rest) == 0 {
			continue
		}
		if rest[0] != '{' {
			return fmt.Errorf("%s:%d:%d: found %.20q; expected a JSON object", r.name, r.at.line, r.at.column, rest[:min(len(rest), 20)])
		}
		return nil
	}
}

// chunk returns what is buffered, at least a byte. It does not move on.
func (r *Reader) chunk() ([]byte, error) {
	if _, err := r.src.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, r.failed(err)
	}
	return r.src.Peek(r.src.Buffered())
}

// jsonError gives the line and the column of damage in a document.
func (r *Reader) jsonError(begin position, doc []byte, found *damage) error {
	begin.advance(doc[:min(found.offset, len(doc))])
	return fmt.Errorf("%s:%d:%d: %w", r.name, begin.line, begin.column, found)
}
