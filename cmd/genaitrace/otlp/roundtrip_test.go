package otlp

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

func TestWhatIsWrittenIsReadBackTheSame(t *testing.T) {
	for _, format := range []Format{JSON, JSONLines, Protobuf} {
		t.Run(format.String(), func(t *testing.T) {
			for seed := range uint64(30) {
				want := newSource(seed).capture(1 + int(seed%12))
				var file bytes.Buffer
				require.NoError(t, Write(&file, want, format))
				got, err := Read("f", &file)
				require.NoError(t, err, "seed %d", seed)
				require.Equal(t, sorted(want), sorted(got), "seed %d", seed)
			}
		})
	}
}

func TestAFileIsWrittenAsItsEndingSays(t *testing.T) {
	want := sorted(newSource(1).capture(20))
	for name, begins := range map[string]string{
		"a.json":      `{"resource`,
		"a.jsonl":     `{"resource`,
		"a.ndjson":    `{"resource`,
		"a.pb":        "\x00",
		"a.binpb":     "\x00",
		"a.otlp":      `{"resource`,
		"A.JSON.GZ":   "\x1f\x8b",
		"a.pb.gz":     "\x1f\x8b",
		"a.jsonl.gz":  "\x1f\x8b",
		"a.unknown":   `{"resource`,
		"no-ending":   `{"resource`,
		"dots.pb.txt": `{"resource`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, WriteFile(path, want))
			assert.Contains(t, head(t, path), begins)
			got, err := ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, want, sorted(got))
		})
	}
}

func TestASpanThatHasNotEndedIsReadBackSo(t *testing.T) {
	span := &capture.Span{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Name: "open", Start: time.Unix(1_800_000_000, 0).UTC()}
	for _, format := range []Format{JSON, JSONLines, Protobuf} {
		got := rewrite(t, &capture.Capture{Spans: []*capture.Span{span}}, format)
		require.Len(t, got.Spans, 1)
		assert.False(t, got.Spans[0].Ended())
		assert.Equal(t, span, got.Spans[0])
	}
}

func TestAnEmptyCaptureIsWrittenAndRead(t *testing.T) {
	for _, format := range []Format{JSON, JSONLines, Protobuf} {
		assert.Equal(t, &capture.Capture{}, rewrite(t, &capture.Capture{}, format))
	}
}

func TestAStreamIsWrittenInPieces(t *testing.T) {
	c := &capture.Capture{Spans: modelCalls(2*batch + 1).Spans, Logs: newSource(1).capture(1).Logs}
	var lines bytes.Buffer
	require.NoError(t, Write(&lines, c, JSONLines))
	assert.Equal(t, 3+1, bytes.Count(lines.Bytes(), []byte{'\n'}))
}

func TestSpansOfOneGroupShareResourceAndScope(t *testing.T) {
	var c capture.Capture
	for i := range 2*batch + 10 {
		c.Spans = append(c.Spans, &capture.Span{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{byte(i), byte(i >> 8), 1},
			Resource: &capture.Resource{Attributes: capture.Attributes{attribute.String("service.name", "gateway")}},
			Scope:    &capture.Scope{Name: "s"},
		})
	}
	got := rewrite(t, &c, JSONLines)
	require.Len(t, got.Spans, len(c.Spans))
	for _, s := range got.Spans {
		assert.Same(t, got.Spans[0].Resource, s.Resource, "within an export and between them")
		assert.Same(t, got.Spans[0].Scope, s.Scope)
	}
}

func TestWhatOTLPCannotSayBecomesUnknown(t *testing.T) {
	c := &capture.Capture{Spans: []*capture.Span{{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Kind: 99,
		Start: time.Unix(-1, 0), End: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC),
		ParentOrigin: capture.OriginRemote, // without a parent
		Source:       capture.Source{File: "a.go", Line: 1},
		Attributes: capture.Attributes{
			attribute.StringSlice("empty", nil),
			attribute.String("invalid", "a\xffb"),
			attribute.String("twice", "1"),
			attribute.String("twice", "2"),
		},
	}}}
	got := rewrite(t, c, Protobuf)
	assert.Equal(t, &capture.Capture{Spans: []*capture.Span{{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		Attributes: capture.Attributes{
			attribute.Slice("empty"),
			attribute.String("invalid", "a\uFFFDb"),
			attribute.String("twice", "2"),
		},
	}}}, got)
}

func TestNumbersThatJSONCannotSaySurvive(t *testing.T) {
	for _, text := range []string{"NaN", "Infinity", "-Infinity"} {
		c := &capture.Capture{Metrics: []*capture.Metric{{Name: "m", Kind: capture.KindGauge, Points: []capture.Point{{Value: parse(text)}}}}}
		for _, format := range []Format{JSON, Protobuf} {
			got := rewrite(t, c, format)
			assert.Equal(t, attribute.Float64Value(parse(text)).String(), attribute.Float64Value(got.Metrics[0].Points[0].Value).String())
		}
	}
}

func TestWritingRefusesWhatItDoesNotKnow(t *testing.T) {
	err := Write(new(bytes.Buffer), &capture.Capture{Metrics: []*capture.Metric{{Name: "queue", Kind: "meter"}}}, JSON)
	assert.EqualError(t, err, `otlp: metric "queue": Kind is "meter"; expected one of the kinds of package capture`)

	err = Write(new(bytes.Buffer), &capture.Capture{}, Format(9))
	assert.EqualError(t, err, "otlp: unknown Format(9); expected JSON, JSONLines or Protobuf")
}

func rewrite(t *testing.T, c *capture.Capture, format Format) *capture.Capture {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, Write(&file, c, format))
	got, err := Read("f", &file)
	require.NoError(t, err)
	return got
}
