package genaitrace_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// together runs each function in a goroutine of its own, all from one start.
func together(fs ...func()) {
	var ready, done sync.WaitGroup
	ready.Add(len(fs))
	for _, f := range fs {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f()
		})
	}
	done.Wait()
}

// One goroutine generates while others do everything else, the end included.
func TestAnInferenceMayEndWhileAnotherGoroutineTicks(t *testing.T) {
	r := record(t)
	_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{})
	for range 100 {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Stream: true})
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		together(
			func() {
				for range 300 {
					d.Token()
				}
			},
			func() { inf.SetUsage(fullUsage()); inf.SetUsage(genaitrace.Usage{OutputTokens: new(3)}) },
			func() { inf.SetFinish("stop"); inf.SetResponse("id", "m") },
			func() { inf.SetAttributes(semconv.GenAIRequestID("r")); d.SetInputTokens(3) },
			func() { inf.EarlyStop(semconv.GenAIEarlyStopReasonUser) },
			func() { prefill.End() },
			func() {
				for range 10 {
					_, q := inf.StartQueue(ctx)
					q.SetInputTokens(1)
					q.End()
				}
			},
			func() { _, d2 := inf.StartDecode(ctx); d2.Token(); d2.Tick(genaitrace.Tick{Choice: 3}); d2.End() },
			func() {
				for range 5 {
					inf.Preempt()
					_, again := inf.StartPrefill(ctx, genaitrace.Prompt{})
					again.End()
				}
			},
			func() { inf.RecordPhases(allPhases()); inf.RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Hour)}) },
			func() { inf.ContentBlocked("rule", "") },
			func() { batch.Join(inf); batch.Leave(inf); batch.Join(inf) },
			func() { d.End() },
			func() { inf.End() },
			func() { inf.Fail(context.Canceled) },
		)
	}
	batch.End()
	assert.Equal(t, 100, r.total("gen_ai.server.request.duration"))
	requests := map[trace.SpanID]bool{}
	for _, s := range r.spans(semconv.SpanInferenceGenerate) {
		s.parts() // sum up
		requests[s.SpanContext().SpanID()] = true
	}
	assert.Len(t, requests, 100)
	for _, s := range r.recorder.Ended() {
		switch s.Name() {
		case semconv.SpanInferenceGenerate, semconv.SpanInferenceBatch:
			assert.False(t, s.Parent().IsValid(), s.Name())
		default:
			assert.True(t, requests[s.Parent().SpanID()], "parent of %s", s.Name())
		}
	}
}

func allPhases() genaitrace.PhaseTimes {
	return genaitrace.PhaseTimes{
		Queue: new(time.Millisecond), Load: new(time.Microsecond), Tokenize: new(time.Millisecond),
		Schedule: new(time.Nanosecond), Prefill: new(time.Microsecond), Decode: new(time.Hour),
	}
}

func TestACallMayEndWhileAnotherGoroutineReads(t *testing.T) {
	r := record(t)
	for range 100 {
		ctx, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		together(
			func() {
				for range 300 {
					call.Chunk(genaitrace.Visible)
				}
				call.ChunkAt(genaitrace.Visible, time.Now())
			},
			func() { call.SetUsage(fullUsage()) },
			func() { call.SetRequest(genaitrace.Request{Provider: "vllm", MaxTokens: 5}) },
			func() { call.SetFinish("stop"); call.SetResponse("id", "m") },
			func() { call.SetTerminal(semconv.GenAIStreamTerminalDone); call.SetErrorType("x") },
			func() { call.SetAttributes(semconv.GenAIRequestID("r")); call.Watch() },
			func() { call.RecordPhases(allPhases()) },
			func() { call.EarlyStop(semconv.GenAIEarlyStopReasonUser); call.ContentBlocked("rule", "label") },
			func() { genaitrace.CallFromContext(ctx).SetFinish("length") },
			func() { call.End() },
			func() { call.Fail(context.Canceled) },
		)
	}
	assert.Equal(t, 100, r.total("gen_ai.client.inference.duration"))
	assert.Len(t, r.spans("chat"), 100)
}

func TestATracerIsSharedByManyRequests(t *testing.T) {
	r := record(t)
	handled(t)
	const goroutines, requests = 8, 50
	fs := make([]func(), goroutines)
	for g := range fs {
		fs[g] = func() {
			for i := range requests {
				req := genaitrace.Request{
					Model:   fmt.Sprint("model-", (g+i)%150), // more than may be named
					Arrived: time.Now().Add(time.Duration(i%2) * time.Hour),
				}
				ctx, call := r.StartCall(t.Context(), req)
				ctx, inf := r.StartInference(ctx, req)
				_, d := inf.StartDecode(ctx)
				d.Token()
				call.Chunk(genaitrace.Visible)
				inf.End()
				call.End()
			}
		}
	}
	together(fs...)
	assert.Equal(t, goroutines*requests, r.total("gen_ai.server.request.duration"))
	assert.Equal(t, goroutines*requests, r.faults()[semconv.GenAIFaultArrival], "half of them, for call and inference")
}
