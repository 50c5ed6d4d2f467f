package contract_test

import (
	"encoding/binary"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/internal/specimen"
)

// BenchmarkCheck checks a decoded capture of 6,000 spans that passes, with every
// rule of the profiles gateway and engine on, the search for personal data and
// secrets included. Decoding is measured in cmd/genaitrace/otlp.
func BenchmarkCheck(b *testing.B) {
	c, err := contract.Parse("bench.yaml", []byte("contract: genai.observability/v1\nname: bench\nextends: [builtin:gateway, builtin:engine]\nseverity: {metric.*: \"off\"}\n"))
	if err != nil {
		b.Fatal(err)
	}
	const spans = 6_000
	got := repeat(specimen.Recorded(b), spans)
	if r := c.Check(got); r.Failed(false) {
		b.Fatalf("the capture does not pass: %+v", r.Findings[0])
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Check(got)
	}
	b.ReportMetric(float64(b.N)*float64(len(got.Spans))/b.Elapsed().Seconds(), "spans/s")
}

// repeat returns copies of the traces of a capture, each with identifiers of its
// own, until there are n spans.
func repeat(from *capture.Capture, n int) *capture.Capture {
	got := &capture.Capture{}
	for round := uint64(1); len(got.Spans) < n; round++ {
		for _, s := range from.Spans {
			copied := *s
			binary.BigEndian.PutUint64(copied.TraceID[:8], round)
			copied.SpanID = renumber(s.SpanID, round)
			if s.ParentID.IsValid() {
				copied.ParentID = renumber(s.ParentID, round)
			}
			got.Spans = append(got.Spans, &copied)
		}
	}
	return got
}

func renumber(id trace.SpanID, round uint64) trace.SpanID {
	binary.BigEndian.PutUint32(id[:4], uint32(round))
	return id
}
