package waterfall_test

import (
	"fmt"
	"os"
	"time"

	"github.com/genaitrace/otelgenai/capture/waterfall"
)

func ExampleRender() {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

	spans := []waterfall.Span{
		{
			SpanID: "1", Name: "inference.generate", Role: "inference", Start: at(0), End: at(500),
			Attributes: map[string]any{
				"llm.ttft_ms": 200, "genai.last_token_ms": 480, "genai.token.count": 29,
				"genai.ttft.queue_ms": 50, "genai.ttft.prefill_ms": 150,
			},
		},
		{SpanID: "2", ParentID: "1", Name: "queue.wait", Start: at(0), End: at(50)},
		{SpanID: "3", ParentID: "1", Name: "inference.prefill", Start: at(50), End: at(200)},
		{
			SpanID: "4", ParentID: "1", Name: "inference.decode", Start: at(200), End: at(500),
			Events: []waterfall.Event{{Name: "first_token", Time: at(200)}},
		},
	}
	if err := waterfall.Render(os.Stdout, spans, waterfall.Options{Width: 72}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4 spans · 500.0 ms · ◆ first token
	// inference.generate    ██████████████████████████████████████  500.0 ms
	// ├─ queue.wait         ████                                     50.0 ms
	// ├─ inference.prefill      ███████████                         150.0 ms
	// └─ inference.decode                  ◆██████████████████████  300.0 ms
	//
	// seen by                          TTFT  per token  tokens/s
	// engine   inference.generate  200.0 ms    10.0 ms     100.0
	//
	// where the TTFT of inference.generate went
	//   queue            50.0 ms   25 %  █████████
	//   prefill         150.0 ms   75 %           ████████████████████████████
}
