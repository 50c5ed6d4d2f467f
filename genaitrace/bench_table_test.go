package genaitrace_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A benchOperation is one request, recorded by us and by hand.
type benchOperation struct {
	name   string
	ours   func(*genaitrace.Tracer, genaitrace.Request)
	byHand func(*handwritten, genaitrace.Request)
	// start makes the spans that must be started also where nothing records, with
	// the attributes that a sampler must see.
	start   func(trace.Tracer, genaitrace.Request)
	request genaitrace.Request
	options []genaitrace.Option
}

// benchOperations are measured by BenchmarkOperation and held to be alike by
// TestBenchmarkOperationComparesLikeWithLike. A new operation needs a line here,
// its twin in handwritten, and a row in internal/costdoc.
var benchOperations = []benchOperation{
	{
		name:    "inference", // with its phases; of the tokens two
		ours:    func(tr *genaitrace.Tracer, req genaitrace.Request) { benchInference(tr, req, 2) },
		byHand:  func(h *handwritten, req genaitrace.Request) { h.inference(req, false) },
		start:   startInference,
		request: benchRequest(),
	},
	{
		name:    "call", // with one answer
		ours:    benchCall,
		byHand:  (*handwritten).call,
		start:   startCall,
		request: callRequest(),
	},
	{
		name:    "stream500", // a call with an answer of 500 chunks
		ours:    benchStream,
		byHand:  (*handwritten).stream,
		start:   startCall,
		request: callRequest(),
	},
	{
		name:   "gateway500", // the entry of a service that hands out such an answer
		ours:   func(tr *genaitrace.Tracer, _ genaitrace.Request) { benchGateway(tr) },
		byHand: func(h *handwritten, _ genaitrace.Request) { h.gateway() },
		start:  startGateway,
	},
	{
		name:    "gatewaywork", // authorization, rate limit, cache, template, route
		ours:    benchGatewayWork,
		byHand:  (*handwritten).gatewayWork,
		start:   startGatewayWork,
		request: benchRequest(),
	},
	{
		name:   "agent", // a turn with a plan, a search, a check and two tools
		ours:   benchAgent,
		byHand: (*handwritten).agentTurn,
		start:  startAgent,
	},
	{
		name:    "engine", // a prompt computed in four pieces, and what the engine knows
		ours:    benchEngine,
		byHand:  (*handwritten).engine,
		start:   startInference,
		request: benchRequest(),
	},
	{
		name:    "preempted", // a model loaded, a prompt computed twice, steps, two tokens
		ours:    benchPreempted,
		byHand:  (*handwritten).preempted,
		start:   startInference,
		request: benchRequest(),
		options: []genaitrace.Option{genaitrace.WithStepEvents(8)},
	},
	{
		name:    "reported", // the engine tells its phases afterwards
		ours:    benchReported,
		byHand:  (*handwritten).reported,
		start:   startInference,
		request: benchRequest(),
	},
	{
		name:    "reportedcall", // the same as its caller learns it
		ours:    benchReportedCall,
		byHand:  (*handwritten).reportedCall,
		start:   startCall,
		request: callRequest(),
	},
	{
		name:    "batch8", // eight requests in a batch
		ours:    benchBatched,
		byHand:  (*handwritten).batched,
		start:   startBatched,
		request: benchRequest(),
	},
	{
		name:   "rag", // a vector, a search, a new order
		ours:   benchRAG,
		byHand: (*handwritten).retrieve,
		start:  starting(workSpans.embed, workSpans.search, workSpans.rerank),
	},
	{
		name:   "tool",
		ours:   benchTool,
		byHand: (*handwritten).useTool,
		start:  starting(workSpans.tool),
	},
	{
		name:   "remote", // an agent made, its memory searched
		ours:   benchRemote,
		byHand: (*handwritten).remote,
		start:  starting(workSpans.create, workSpans.memory),
	},
	{
		name:    "judgements", // a safety check, an evaluation
		ours:    benchJudgements,
		byHand:  (*handwritten).judge,
		start:   starting(workSpans.check, workSpans.evaluate),
		request: benchRequest(),
	},
	{
		name:   "group4", // four tasks at one time
		ours:   benchGroup,
		byHand: (*handwritten).group,
		start:  startGroup,
	},
}

var inference500 = benchOperation{
	name:    "inference500",
	ours:    func(tr *genaitrace.Tracer, req genaitrace.Request) { benchInference(tr, req, benchTokens) },
	byHand:  func(h *handwritten, req genaitrace.Request) { h.inference(req, false) },
	start:   startInference,
	request: benchRequest(),
}

// Each function that records a span of the registry is in a benchmark beside its twin.
// That each of these has a row in docs/cost.md is tested beside the rows.
func TestEveryOperationIsInABenchmark(t *testing.T) {
	measured := map[string]bool{} // functions
	for _, o := range benchOperations {
		r := recordWith(t, o.options)
		o.ours(r.Tracer, o.request)
		for _, s := range r.recorder.Ended() {
			if span, ok := semconv.RecognizeSpan(s.Name(), s.SpanKind(), seen{s, t}.get); ok {
				measured[recordedBy(span.Type)] = true
			}
		}
	}
	for name := range pairings {
		if by := recordedBy(name); by != "" {
			assert.True(t, measured[by], "%s, which records %s, is in no benchmark", by, name)
		}
	}
}

// recordedBy is the function that records a span of the registry.
func recordedBy(span string) string {
	switch span {
	case semconv.SpanModelLoad:
		return "Inference.StartLoad"
	case semconv.SpanInferenceBatch:
		return "Tracer.StartBatch"
	}
	return pairings[span].by
}
