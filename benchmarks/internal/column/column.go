package column

import (
	"context"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// API is the API that a model server speaks.
type API int

const (
	// OpenAI is that of chat completions, with server-sent events.
	OpenAI API = iota
	// Anthropic is that of messages.
	Anthropic
)

func (a API) String() string { return [...]string{"openai", "anthropic"}[a] }

// Path is where the API is asked for a chat.
func (a API) Path() string { return [...]string{"/v1/chat/completions", "/v1/messages"}[a] }

// A Telemetry is where a column records.
type Telemetry struct {
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider
}

// A Column is one way of instrumenting a streamed chat.
type Column struct {
	Name string
	API  API

	// Bare is the column that does the same without instrumentation; "" where this
	// one is such.
	Bare string

	// Ours is whether the instrumentation is that of this repository; Metrics, whether
	// it records metrics too.
	Ours, Metrics bool

	// Library is whether the client is somebody's library, which decides itself what
	// it asks for and reads.
	Library bool

	// Transport instruments the transport; nil does not.
	Transport func(base http.RoundTripper, t Telemetry) http.RoundTripper

	// Client makes the client that uses the transport.
	Client func(rt http.RoundTripper, t Telemetry) Client

	// FirstToken reads from an ended span when the first token came, where the request
	// was given to the transport at sent. Nil: the instrumentation does not say.
	FirstToken func(s sdktrace.ReadOnlySpan, sent time.Time) (time.Time, bool)

	// StopReason is the key of the one finish reason, where the official key is not
	// written.
	StopReason attribute.Key
}

// A Client asks for one streamed chat of the server at url.
type Client func(ctx context.Context, url string, header http.Header) (Stream, error)

// A Stream is an answer as its application sees it.
type Stream interface {
	// Next waits for the next piece: what one read returns, or an event. At the end,
	// and after an error, it is false.
	Next() bool
	// Text is the piece that Next found.
	Text() string
	// Close ends the stream, wherever it is.
	Close() error
}

// All returns the columns, bare ones first.
func All() []Column { return slices.Concat(transports(), openAIs(), anthropics()) }

// Wire returns the client of a column on a base transport. A non-nil watch wraps what
// its transport gives to its client.
func (c Column) Wire(base http.RoundTripper, t Telemetry, watch func(http.RoundTripper) http.RoundTripper) Client {
	if c.Transport != nil {
		base = c.Transport(base, t)
	}
	if watch != nil {
		base = watch(base)
	}
	return c.Client(base, t)
}
