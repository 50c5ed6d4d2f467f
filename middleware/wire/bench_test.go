package wire_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// BenchmarkFraming is the observer alone: server-sent events and chat chunks of
// 260 bytes, one a push. common has the shape of the chunk before, as servers
// send them, and stamps each; nocall is the same without a call to stamp;
// parsed changes its shape each time.
func BenchmarkFraming(b *testing.B) {
	const chunks = 500
	event := func(i int, padding string) []byte {
		return fmt.Appendf(nil, `data: {"id":"chatcmpl-0123456789abcdef0123456789","object":"chat.completion.chunk","created":1767000000,`+
			`"model":"gpt-fx-2026-01-01","service_tier":"default","system_fingerprint":"fp_%s",`+
			`"choices":[{"index":0,"delta":{"content":" word%03d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", padding, i)
	}
	var same, changing [chunks][]byte
	for i := range chunks {
		same[i] = event(i, "0123456789")
		changing[i] = event(i, fmt.Sprintf("%010d", i))
	}
	run := func(b *testing.B, call *genaitrace.Call, events [][]byte) {
		b.ReportAllocs()
		s := wire.NewStream(call, wire.Exchange{})
		for b.Loop() {
			for _, e := range events {
				s.Push(e)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
		s.End(io.EOF)
		call.End()
	}
	start := func() *genaitrace.Call {
		_, call := newObserver().tracer.StartCall(context.Background(), genaitrace.Request{Stream: true})
		return call
	}
	b.Run("common", func(b *testing.B) { run(b, start(), same[:]) })
	b.Run("nocall", func(b *testing.B) { run(b, nil, same[:]) })
	b.Run("parsed", func(b *testing.B) { run(b, start(), changing[:]) })
}
