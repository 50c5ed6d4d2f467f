package wire

import (
	"net/http"
	"strings"
)

// An Exchange is what is known of a request and its answer before the answer's
// body comes. The zero value knows nothing: then the body itself has to tell.
type Exchange struct {
	// Path is the path of the request's URL.
	Path string
	// Request and Response are the headers.
	Request, Response http.Header
	// Status is that of the answer; zero means 200.
	Status int
	// Dialect is how the answer is read. nil means to find out.
	Dialect Dialect
	// Decoders undo content encodings besides gzip and deflate, by their names in
	// small letters, such as "br".
	Decoders map[string]Decoder
}

// A framing is how a body is split into events.
type framing uint8

const (
	unframed    framing = iota // a whole answer, or nothing that can be read
	serverSent                 // server-sent events
	jsonLines                  // a document a line
	jsonValues                 // documents in an array
	awsMessages                // AWS event-stream
	unknown                    // the first byte has to tell
)

// Streamed reports whether the body is a stream of events that can be read: its
// content type says so, and no content encoding hides it: gzip and deflate do not,
// nor does one that has a decoder.
func (x Exchange) Streamed() bool { return x.framing() != unframed }

// Document reports whether the body is a whole answer that can be read.
func (x Exchange) Document() bool {
	return !x.isHidden() && isJSON(x.Response) && x.framing() == unframed
}

func (x Exchange) framing() framing {
	if x.Response == nil {
		return unknown
	}
	if x.isHidden() {
		return unframed
	}
	switch mediaType(x.Response) {
	case "text/event-stream":
		return serverSent
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/stream+json":
		return jsonLines
	case "application/vnd.amazon.eventstream":
		return awsMessages
	case "application/json":
		if strings.HasSuffix(x.Path, ":streamGenerateContent") && x.Status < http.StatusBadRequest {
			return jsonValues // Gemini's stream without "alt=sse"
		}
	}
	return unframed
}

// likely is the dialect to expect where none was chosen: what the framing, the
// headers or the path say. Only the framing leaves no doubt.
func (x Exchange) likely() (d Dialect, sure bool) {
	switch {
	case x.framing() == awsMessages:
		return Bedrock, true
	case x.Request.Get("Anthropic-Version") != "":
		return Anthropic, false
	case x.Request.Get("X-Goog-Api-Key") != "":
		return Gemini, false
	case x.Response.Get("X-Compute-Type") != "":
		return TGI, false
	}
	e, _ := FindEndpoint(x.Path)
	return e.likely, false
}

func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";") // its parameters may be no good
	return strings.ToLower(strings.TrimSpace(t))
}

func isJSON(h http.Header) bool {
	t := mediaType(h)
	return t == "application/json" || strings.HasSuffix(t, "+json")
}
