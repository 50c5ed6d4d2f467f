package reading

import (
	"strings"
	"testing"
	"time"

	"github.com/genaitrace/otelgenai/capture/waterfall"
)

func TestWrite(t *testing.T) {
	type attrs map[string]any
	span := func(name, role, kind string, took time.Duration, a attrs) waterfall.Span {
		return waterfall.Span{SpanID: name, Name: name, Role: role, Kind: kind, End: time.Time{}.Add(took), Attributes: a}
	}
	below := func(parent, failure string, s waterfall.Span) waterfall.Span {
		s.ParentID, s.Error = parent, failure
		return s
	}
	const ms = time.Millisecond
	gateway := span("POST /chat", "gateway", "SERVER", 900*ms, attrs{"llm.ttft_ms": 150.0})
	call := span("chat m", "inference", "CLIENT", 890*ms, attrs{
		"llm.ttft_ms": 140.0, "genai.last_token_ms": 640.0, "gen_ai.usage.output_tokens": int64(51),
	})
	for name, tt := range map[string]struct {
		trace []waterfall.Span
		want  string
	}{
		"nothing": {},
		"phases": {
			[]waterfall.Span{
				gateway, call,
				span("queue.wait", "queue", "INTERNAL", 20*time.Microsecond, nil),
				span("inference.prefill", "prefill", "INTERNAL", 130*ms, attrs{"ai.tokens.input": int64(709)}),
			},
			"\nThe answer began after 150.0 ms: 130.0 ms for reading a prompt of 709 tokens (prefill), <0.1 ms for waiting for the engine.\n" +
				"From then on 100.0 tokens came a second.\n",
		},
		"no phases": {
			[]waterfall.Span{gateway},
			"\nThe answer began after 150.0 ms; the server does not tell what it did until then.\n",
		},
		"a whole answer": {
			[]waterfall.Span{
				span("POST /chat", "gateway", "SERVER", 900*ms, nil), call,
				span("inference.prefill", "prefill", "INTERNAL", 130*ms, nil),
			},
			"\nThe model began to answer after 140.0 ms: 130.0 ms for reading the prompt (prefill).\n" +
				"From then on 100.0 tokens came a second.\n",
		},
		"searches": {
			[]waterfall.Span{
				gateway,
				span("retrieval docs", "retrieval", "INTERNAL", 9*ms, attrs{"genai.retriever.type": "hybrid"}),
				span("retrieval docs.words", "retrieval", "INTERNAL", 3*ms, attrs{"genai.retriever.type": "sparse"}),
				span("retrieval docs.vectors", "retrieval", "INTERNAL", 8*ms, attrs{"genai.retriever.type": "dense"}),
				span("rag.rerank", "rerank", "INTERNAL", 2*ms, nil),
			},
			"\nThe answer began after 150.0 ms: 9.0 ms for searching, 2.0 ms for reranking.\n" +
				"The searches ran side by side: retrieval docs.vectors took 8.0 ms, retrieval docs.words took 3.0 ms; the longer one counts.\n",
		},
		"a failure": {
			[]waterfall.Span{
				below("", "500", span("POST /chat", "gateway", "SERVER", 9*ms, nil)),
				below("POST /chat", "Internal", span("chat m", "inference", "CLIENT", 9*ms, nil)),
				below("chat m", "device_lost", span("inference.prefill", "prefill", "INTERNAL", 9*ms, nil)),
			},
			"\nIt failed in inference.prefill: device_lost.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := Write(&out, tt.trace); err != nil || out.String() != tt.want {
				t.Errorf("%v\n%s\nwant\n%s", err, out.String(), tt.want)
			}
		})
	}
}
