package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// BenchmarkDecode reads 6,000 spans of model calls, with 11 attributes and an event
// each.
func BenchmarkDecode(b *testing.B) {
	const spans = 6_000
	c := modelCalls(spans)
	for name, format := range map[string]Format{"json": JSON, "jsonlines": JSONLines, "protobuf": Protobuf} {
		b.Run(name, func(b *testing.B) {
			var file bytes.Buffer
			if err := Write(&file, c, format); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(file.Len()))
			b.ReportAllocs()
			for b.Loop() {
				in, n := NewReader("f", bytes.NewReader(file.Bytes())), 0
				for {
					got, err := in.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					n += len(got.Spans)
				}
				if n != spans {
					b.Fatalf("%d spans", n)
				}
			}
			b.ReportMetric(float64(b.N)*spans/b.Elapsed().Seconds(), "spans/s")
		})
	}
}

// modelCalls makes spans as a gateway records them, six a trace.
func modelCalls(n int) *capture.Capture {
	random := rand.New(rand.NewPCG(1, 1))
	resource := &capture.Resource{Attributes: capture.Attributes{attribute.String("service.name", "gateway"), attribute.String("service.version", "1.2.3")}}
	scope := &capture.Scope{Name: "github.com/genaitrace/otelgenai/genaitrace", Version: "0.3.0"}
	start := time.Unix(1_800_000_000, 0).UTC()
	c := new(capture.Capture)
	var root *capture.Span
	for i := range n {
		at := start.Add(time.Duration(i) * time.Millisecond)
		s := &capture.Span{
			Name: "chat qwen2.5-7b-instruct", Kind: trace.SpanKindClient, Flags: trace.FlagsSampled,
			Start: at, End: at.Add(time.Duration(random.IntN(1e9))),
			Attributes: capture.Attributes{
				attribute.String("gen_ai.operation.name", "chat"),
				attribute.String("gen_ai.provider.name", "vllm"),
				attribute.String("gen_ai.request.model", "qwen2.5-7b-instruct"),
				attribute.String("gen_ai.response.id", fmt.Sprintf("chatcmpl-%016x", random.Uint64())),
				attribute.Bool("gen_ai.request.stream", true),
				attribute.Int("gen_ai.usage.input_tokens", random.IntN(4000)),
				attribute.Int("gen_ai.usage.output_tokens", random.IntN(500)),
				attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}),
				attribute.Float64("llm.ttft_ms", random.Float64()*1000),
				attribute.Float64("llm.queue_wait_ms", random.Float64()*100),
				attribute.String("genai.span.role", "inference"),
			},
			Events:   []capture.Event{{Name: "first_token", Time: at.Add(time.Millisecond), Attributes: capture.Attributes{attribute.Int("index", 0)}}},
			Resource: resource, Scope: scope,
		}
		for j := range s.SpanID {
			s.SpanID[j] = byte(random.Uint32())
		}
		if i%6 == 0 {
			root = s
			for j := range s.TraceID {
				s.TraceID[j] = byte(random.Uint32())
			}
		} else {
			s.TraceID, s.ParentID, s.ParentOrigin = root.TraceID, root.SpanID, capture.OriginLocal
		}
		c.Spans = append(c.Spans, s)
	}
	return c
}
