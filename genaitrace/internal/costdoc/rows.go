package main

// A row is one line of the table.
type row struct {
	what     string
	figure   term
	beside   term // nil: there is nothing to compare with
	besideIs string

	target  string // in words; empty: there is none
	reached func(figure, beside measure) bool
	// floor says what keeps a figure from its target, for a run that does not reach
	// it.
	floor string
}

// A measure is a term in one run.
type measure struct{ ns, allocs float64 }

// atMost asks for at most so many nanoseconds.
func atMost(ns float64) func(figure, beside measure) bool {
	return func(figure, _ measure) bool { return figure.ns <= ns }
}

// times asks for at most so many times what stands beside.
func times(factor float64) func(figure, beside measure) bool {
	return func(figure, beside measure) bool { return figure.ns <= factor*beside.ns }
}

// cheaper asks for so many times less than what stands beside.
func cheaper(factor float64) func(figure, beside measure) bool {
	return func(figure, beside measure) bool { return figure.ns*factor <= beside.ns }
}

// allocatesNoMore asks for no more allocations than what stands beside.
func allocatesNoMore(figure, beside measure) bool { return figure.allocs <= beside.allocs }

// perChunk is the share of one chunk of a stream of 500.
func perChunk(stream term) term { return stream.times(1. / 500) }

// operation is a row of BenchmarkOperation, beside the twin of that operation.
func operation(what, name, floor string) row {
	return row{
		what: what, figure: of(here + "Operation/" + name + "/otelgenai"),
		beside: of(here + "Operation/" + name + "/handwritten"), besideIs: twin,
		target: "1.3 ×", reached: times(1.3), floor: floor,
	}
}

// What operations of ours do and their twins do not.
const (
	handles = "the twin has no handle that ends once on every path, bounds no string, and knows the one set of attributes of each metric before"
	placed  = "the twin takes what was reported as it is; ours works out where each phase fits into the request, and cuts what does not"
)

const (
	here      = "genaitrace "
	transport = "genaihttp "
	inMemory  = transport + "StreamInMemory500/"
	twin      = "its twin by hand"
)

var bare = inMemory + "bare"

var rows = []row{
	{
		what: "a token, recorded", figure: of(here + "Token/recording"),
		beside: of(here + "Token/addevent"), besideIs: "`AddEvent` with three attributes",
		target: "12 × cheaper", reached: cheaper(12),
		floor: "a token reads the clock once, which the last row has",
	},
	{
		what: "a token, metrics alone", figure: of(here + "Token/metricsonly"),
		beside: of(here + "Token/recording"), besideIs: "a token, recorded",
		target: "no more", reached: times(1.05),
		floor: "it is the same code, a tenth faster in one process and a tenth slower in the next",
	},
	{
		what: "a token where nothing records", figure: of(here + "Token/notrecording"),
		target: "3 ns", reached: atMost(3),
	},
	{
		what: "an inference of 500 tokens, less 500 tokens", figure: of(here+"Inference500/otelgenai").plus(here+"Token/recording", -500),
		beside: of(here + "Inference500/handwritten"), besideIs: twin + ", without tokens",
		target: "1.3 ×", reached: times(1.3),
		floor: "the twin leaves out what the token clock works out at the end of decode: the timeline, packed, and the quantiles of 499 gaps",
	},
	{
		what: "an inference of 2 tokens", figure: of(here + "Operation/inference/otelgenai"),
		beside: of(here + "Operation/inference/handwritten"), besideIs: twin,
		target: "1.3 ×", reached: times(1.3),
		floor: "the twin leaves out the timeline and the quantiles of the gaps",
	},
	operation("an inference of 4 passes, with what the engine knows", "engine",
		handles+"; ours also ends each pass with its phase"),
	operation("five spans of a gateway before its call", "gatewaywork", handles),
	operation("a turn of an agent: a plan, a search, a check, two tools", "agent", handles+"; ours also counts the calls of the run"),
	operation("an inference with a load, a preemption and two steps, of 2 tokens", "preempted",
		"the twin has neither a token clock nor a log that keeps the costliest steps"),
	operation("an inference whose engine reports two phases", "reported", placed),
	operation("a call whose engine reports two phases, with one chunk", "reportedcall",
		placed+"; and a call is in the context, for whoever feeds it"),
	operation("a batch of 8 inferences", "batch8",
		"an inference of ours has room for its phases and their times from the start, which these eight leave empty"),
	operation("a retrieval: a vector, a search, a rerank", "rag", handles),
	operation("a call of a tool", "tool", handles),
	operation("an agent made elsewhere, and a look into its memory", "remote", handles),
	operation("a guardrail and an evaluation", "judgements", handles),
	operation("a group of 4 tasks", "group4",
		"a task of ours also stands a panic, marks that it outlives the span above, and has one of a bounded number of names"),
	operation("a call with one answer", "call", handles+"; and a call is in the context, for whoever feeds it"),
	{
		what: "a chunk of a streamed call", figure: perChunk(of(here + "Operation/stream500/otelgenai")),
		beside: perChunk(of(here + "Operation/stream500/handwritten")), besideIs: twin,
		target: "2 ×", reached: times(2),
		floor: "both have the SDK's record of `time_per_output_chunk`, most of either",
	},
	{
		what: "a chunk at the entry of a gateway", figure: perChunk(of(here + "Operation/gateway500/otelgenai")),
		beside: perChunk(of(here + "Operation/gateway500/handwritten")), besideIs: twin,
	},
	{
		what: "an inference of 500 tokens where nothing records", figure: of(here + "Inference500/notrecording"),
		beside: of(here + "Inference500/notrecordingstart"), besideIs: "otel's own start of its span, not sampled",
		target: "no allocation more", reached: allocatesNoMore,
	},
	{
		what: "a streamed call where nothing records", figure: of(here + "Operation/stream500/notrecording"),
		beside: of(here + "Operation/stream500/notrecordingstart"), besideIs: "otel's own start of its span, not sampled",
		target: "no allocation more", reached: allocatesNoMore,
	},
	{
		what: "a chunk through the HTTP transport, in memory", figure: perChunk(of(inMemory+"otelgenai").plus(bare, -1)),
		beside: perChunk(of(inMemory+"handwritten").plus(bare, -1)), besideIs: "TTFT and usage by two byte searches",
		target: "2 ×", reached: times(2),
		floor: "the SDK's record of `time_per_output_chunk`, one a chunk, takes longer than both byte searches; the next two rows have it on both sides, and on none",
	},
	{
		what: "the same", figure: perChunk(of(inMemory+"otelgenai").plus(bare, -1)),
		beside: perChunk(of(inMemory+"handwrittenperchunk").plus(bare, -1)), besideIs: "the same with that record",
		target: "2 ×", reached: times(2),
	},
	{
		what: "the same where a view drops that record", figure: perChunk(of(inMemory+"otelgenainoperchunk").plus(bare, -1)),
		beside: perChunk(of(inMemory+"handwritten").plus(bare, -1)), besideIs: "without it",
		target: "2 ×", reached: times(2),
	},
	{
		what: "the same where nothing records", figure: perChunk(of(inMemory+"notrecording").plus(bare, -1)),
		target: "10 ns", reached: atMost(10),
		floor: "what the call costs by itself is shared among its 500 chunks",
	},
	{
		what: "a chat of 500 chunks over loopback HTTP", figure: of(transport + "Stream500/otelgenai"),
		beside: of(transport + "Stream500/handwritten"), besideIs: "TTFT and usage by two byte searches",
		target: "1.1 ×", reached: times(1.10),
		floor: "what it adds is 500 times the rows above; the rest is the network's, which differs from round to round",
	},
	{
		what: "a chunk in the parser, of the shape of the one before", figure: perChunk(of("wire Framing/common")),
		target: "120 ns", reached: atMost(120),
		floor: "it looks at some 260 bytes and reads the clock once, which the last row has",
	},
	{what: "one reading of the clock", figure: of(here + "Token/clock")},
}
