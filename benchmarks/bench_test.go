package benchmarks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// What a benchmark records: spans by AlwaysSample, a BatchSpanProcessor and an exporter
// that does nothing; metrics by the SDK and a reader that nobody asks.
type record struct {
	name           string
	spans, metrics bool
}

var records = []record{
	{"spans", true, false},
	{"nothing", false, false},
	{"spans+metrics", true, true},
	{"metrics", false, true},
}

// BenchmarkStream is one streamed chat in memory, one event a read. What a column costs
// a chunk is the difference from its bare column, by the number of chunks.
func BenchmarkStream(b *testing.B) { benchColumns(b, false) }

// BenchmarkLibrary is the same for the columns whose client is a library, which decodes
// each event and takes a hundred times as long.
func BenchmarkLibrary(b *testing.B) { benchColumns(b, true) }

func benchColumns(b *testing.B, library bool) {
	for _, r := range records {
		for _, chunks := range []int{500, 2000} {
			if r.metrics && chunks != 500 {
				continue
			}
			for _, c := range column.All() {
				if c.Library != library || (r.metrics && !c.Metrics) {
					continue
				}
				b.Run(fmt.Sprintf("record=%s/chunks=%d/column=%s", r.name, chunks, c.Name), func(b *testing.B) {
					benchStream(b, c, r, chunks)
				})
			}
		}
	}
}

func benchStream(b *testing.B, c column.Column, r record, chunks int) {
	client := c.Wire(inMemory(events(c.API, chunks)), telemetryOf(b, r), nil)
	readOne(b, client) // fills what is made once
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		readOne(b, client)
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
}

func telemetryOf(b *testing.B, r record) column.Telemetry {
	sampler := sdktrace.NeverSample()
	if r.spans {
		sampler = sdktrace.AlwaysSample()
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(nowhere{}))
	b.Cleanup(func() { _ = traces.Shutdown(context.Background()) })
	t := column.Telemetry{Traces: traces, Metrics: metricnoop.NewMeterProvider()}
	if r.metrics {
		t.Metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	}
	return t
}

type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

// BenchmarkExported is how many bytes of OTLP leave for one chat of 2,000 tokens,
// by the SDK's exporter and uncompressed.
func BenchmarkExported(b *testing.B) {
	for _, c := range column.All() {
		if c.Bare == "" {
			continue
		}
		b.Run("column="+c.Name, func(b *testing.B) {
			var sent int64
			client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				n, err := io.Copy(io.Discard, req.Body)
				sent += n
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, err
			})}
			exporter, err := otlptracehttp.New(b.Context(), otlptracehttp.WithHTTPClient(client),
				otlptracehttp.WithEndpointURL("http://collector.internal:4318/v1/traces"))
			require.NoError(b, err)
			traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
			chat := c.Wire(inMemory(events(c.API, 2000)), column.Telemetry{Traces: traces, Metrics: metricnoop.NewMeterProvider()}, nil)
			for b.Loop() {
				readOne(b, chat)
			}
			b.ReportMetric(float64(sent)/float64(b.N), "otlp-B/op")
		})
	}
}

// readOne asks for one chat and reads it to its end.
func readOne(b *testing.B, client column.Client) {
	stream, err := client(context.Background(), "http://engine.internal:8000", nil)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for stream.Next() {
		n++
	}
	_ = stream.Close()
	if n < 500 {
		b.Fatalf("%d pieces of an answer", n)
	}
}

// events are the events of one answer: a role, chunks of text of about 260 bytes (of
// Anthropic 120, as its are), and the end.
func events(api column.API, chunks int) [][]byte {
	w := wordsOf(api)
	const format = `data: {"id":"chatcmpl-0123456789abcdef0123456789","object":"chat.completion.chunk","created":1767000000,` +
		`"model":"gpt-fx-2026-01-01","service_tier":"default","system_fingerprint":"fp_0123456789",` +
		`"choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	all := [][]byte{[]byte(w.role)}
	for i := range chunks {
		if api == column.Anthropic {
			all = append(all, []byte(blockDelta(fmt.Sprintf(`"type":"text_delta","text":" word%d"`, i))))
		} else {
			all = append(all, fmt.Appendf(nil, format, i))
		}
	}
	for _, e := range w.finish {
		all = append(all, []byte(e))
	}
	return all
}

// inMemory is a transport whose answers give one event a read.
func inMemory(events [][]byte) http.RoundTripper {
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: &replay{events: events}, Request: req}, nil
	})
}

type replay struct {
	events [][]byte
	next   int
}

func (r *replay) Read(p []byte) (int, error) {
	if r.next == len(r.events) {
		return 0, io.EOF
	}
	n := copy(p, r.events[r.next])
	r.next++
	return n, nil
}

func (*replay) Close() error { return nil }
