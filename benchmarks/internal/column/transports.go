package column

import (
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// transports are the columns whose client is net/http.
func transports() []Column {
	return []Column{
		{Name: "bare", Client: plain(OpenAI)},
		{Name: "otelhttp", Bare: "bare", Client: plain(OpenAI), Transport: otelHTTP, Metrics: true},
		{
			Name: "handwritten", Bare: "bare", Client: plain(OpenAI), FirstToken: sinceStart(semconv.LLMTTFTMsKey, time.Millisecond),
			Transport: func(base http.RoundTripper, t Telemetry) http.RoundTripper { return newHandwritten(base, t) },
		},
		{
			Name: "event-per-token", Bare: "bare", Client: plain(OpenAI), FirstToken: sinceStart(semconv.LLMTTFTMsKey, time.Millisecond),
			Transport: func(base http.RoundTripper, t Telemetry) http.RoundTripper { return newEventPerToken(base, t) },
		},
		{
			Name: "otelgenai", Bare: "bare", Client: plain(OpenAI), Transport: ours, FirstToken: ourFirstToken,
			Ours: true, Metrics: true,
		},
		{Name: "bare-messages", API: Anthropic, Client: plain(Anthropic)},
		{
			Name: "otelgenai-messages", API: Anthropic, Bare: "bare-messages", Client: plain(Anthropic),
			Transport: ours, FirstToken: ourFirstToken, Ours: true, Metrics: true,
		},
	}
}

func otelHTTP(base http.RoundTripper, t Telemetry) http.RoundTripper {
	return otelhttp.NewTransport(base, otelhttp.WithTracerProvider(t.Traces), otelhttp.WithMeterProvider(t.Metrics),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}

func ours(base http.RoundTripper, t Telemetry) http.RoundTripper {
	return genaihttp.NewTransport(base, genaihttp.WithTracerProvider(t.Traces), genaihttp.WithMeterProvider(t.Metrics))
}

// plain is an application that reads the body of an answer as it comes, and decodes
// what it asked to be encoded.
func plain(api API) func(http.RoundTripper, Telemetry) Client {
	request := [...]string{
		`{"model":"gpt-fx","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"claude-fx","max_tokens":4096,"messages":[{"role":"user","content":"hello"}],"stream":true}`,
	}[api]
	return func(rt http.RoundTripper, _ Telemetry) Client {
		return func(ctx context.Context, url string, header http.Header) (Stream, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+api.Path(), strings.NewReader(request))
			if err != nil {
				return nil, err
			}
			req.Header.Set("Content-Type", "application/json")
			for key, values := range header {
				req.Header[key] = values
			}
			resp, err := rt.RoundTrip(req) //nolint:bodyclose // whoever reads the stream closes it
			if err != nil {
				return nil, err
			}
			s := &body{ReadCloser: resp.Body, reader: resp.Body}
			if resp.Header.Get("Content-Encoding") == "gzip" {
				s.reader = &gunzip{from: resp.Body}
			}
			return s, nil
		}
	}
}

// A body is a Stream of what each read returns.
type body struct {
	io.ReadCloser

	reader io.Reader
	buffer [4 << 10]byte
	n      int
	err    error
}

func (b *body) Next() bool {
	if b.err != nil {
		return false
	}
	b.n, b.err = b.reader.Read(b.buffer[:])
	return b.n > 0 || b.err == nil
}

func (b *body) Text() string { return string(b.buffer[:b.n]) }

// A gunzip decodes from its first read on: making a gzip.Reader reads.
type gunzip struct {
	from    io.Reader
	decoder *gzip.Reader
	err     error
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.decoder == nil && g.err == nil {
		g.decoder, g.err = gzip.NewReader(g.from)
	}
	if g.err != nil {
		return 0, cmp.Or(g.err, io.EOF)
	}
	return g.decoder.Read(p)
}
