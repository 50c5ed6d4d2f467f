package genaitrace_test

import (
	"context"
	"fmt"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// The last chunk of a stream says how long the engine worked.
func ExampleCall_RecordPhases() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	sent := time.Now().Add(-300 * time.Millisecond) // of a request that is over
	_, call := tr.StartCall(context.Background(), genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct", Stream: true, Arrived: sent})
	call.ChunkAt(genaitrace.Visible, sent.Add(100*time.Millisecond))
	call.RecordPhases(genaitrace.PhaseTimes{
		Queue:   genaitrace.ReportedSeconds(0.02575),
		Prefill: genaitrace.ReportedSeconds(0.0605),
		Decode:  new(150 * time.Millisecond),
	})
	call.EndAt(sent.Add(260 * time.Millisecond))

	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.StartTime.Sub(sent), s.EndTime.Sub(sent))
	}
	// Output:
	// queue.wait 13.75ms 39.5ms
	// inference.prefill 39.5ms 100ms
	// inference.decode 100ms 250ms
	// chat qwen2.5-7b-instruct 0s 260ms
}

// Requests come into a running batch and leave it; each stays in its own trace.
func ExampleTracer_StartBatch() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	_, batch := tr.StartBatch(context.Background(), genaitrace.BatchFacts{Model: "qwen2.5-7b-instruct"})
	var running []*genaitrace.Inference
	for range 3 {
		_, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
		batch.Join(inf)
		running = append(running, inf)
	}
	batch.Leave(running[0]) // put aside, for example
	for _, inf := range running {
		inf.End() // leaves too
	}
	batch.End()

	for _, s := range spans.GetSpans() {
		fmt.Print(s.Name, ": links to ", len(s.Links))
		for _, kv := range s.Attributes {
			if kv.Key == semconv.AIBatchSizeKey {
				fmt.Print(", size ", kv.Value.AsInt64())
			}
		}
		fmt.Println()
	}
	// Output:
	// inference.generate: links to 1
	// inference.generate: links to 1
	// inference.generate: links to 1
	// inference.batch: links to 3, size 3
}

// The engine runs out of cache, puts a request aside and computes it again.
func ExampleInference_Preempt() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	for round := range 2 {
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2456 + 2*round})
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		decode.Token()
		if round == 0 {
			inf.Preempt() // ends the decode phase
		}
	}
	inf.End()

	for _, s := range spans.GetSpans() {
		fmt.Print(s.Name)
		for _, e := range s.Events {
			fmt.Print(" *", e.Name)
		}
		fmt.Println()
	}
	// Output:
	// inference.prefill
	// inference.decode *phase.transition *first_token
	// inference.prefill
	// inference.decode *phase.transition
	// inference.generate *preempted
}
