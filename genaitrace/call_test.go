package genaitrace_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestEveryTimeOfACallIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		sent := time.Now()
		time.Sleep(2 * time.Millisecond)
		_, call := r.StartCall(t.Context(), genaitrace.Request{Model: "m", Stream: true, Arrived: sent})
		for _, chunk := range []struct {
			after time.Duration
			kind  genaitrace.ChunkKind
		}{
			{98 * time.Millisecond, genaitrace.NoOutput}, // a role
			{50 * time.Millisecond, genaitrace.Output},   // reasoning
			{30 * time.Millisecond, genaitrace.Visible},
			{20 * time.Millisecond, genaitrace.Visible},
			{10 * time.Millisecond, genaitrace.NoOutput}, // usage
		} {
			time.Sleep(chunk.after)
			call.Chunk(chunk.kind)
		}
		time.Sleep(90 * time.Millisecond)
		call.End()

		s := r.span("chat m")
		assert.Equal(t, trace.SpanKindClient, s.SpanKind())
		assert.Equal(t, 0.1, s.float(genaiconv.ResponseTimeToFirstChunkKey))
		assert.Equal(t, int64(150e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(180e6), s.nanos(semconv.GenAIFirstVisibleMsKey))
		assert.Equal(t, int64(200e6), s.nanos(semconv.GenAILastTokenMsKey), "usage is no output")
		assert.Equal(t, int64(5), s.int(semconv.GenAIChunkCountKey))
		assert.Equal(t, int64(3), s.int(semconv.GenAIChunkOutputCountKey))
		assert.Equal(t, int64(50e6), s.nanos(semconv.GenAIChunkGapMaxMsKey))
		assert.False(t, s.has(semconv.AIResponseDelayMsKey), "the official key says the same")
		event := s.event(semconv.EventFirstToken)
		assert.Equal(t, 150*time.Millisecond, event.Time.Sub(sent))
		assert.Equal(t, []attribute.KeyValue{semconv.LLMTTFTMs(150)}, event.Attributes)

		line, err := genaitrace.DecodeTimeline(s.text(semconv.GenAIChunkTimelineKey))
		require.NoError(t, err)
		assert.Equal(t, 5, line.Ticks)
		require.Len(t, line.Gaps, 4)
		for i, want := range []int{50, 30, 20, 10} {
			assert.InEpsilon(t, time.Duration(want)*time.Millisecond, line.Gaps[i], 0.03)
		}

		assert.Equal(t, 0.1, r.once(genaiconv.ClientInferenceTimeToFirstChunkName))
		assert.Equal(t, 0.3, r.once(genaiconv.ClientInferenceDurationName), "from sending to the end")
		assert.Equal(t, 0.15, r.once(semconv.GenAITimeToFirstTokenName))
		perChunk := r.point(genaiconv.ClientInferenceTimePerOutputChunkName)
		assert.Equal(t, uint64(4), perChunk.Count, "one value for each chunk after the first")
		assert.InDelta(t, 0.11, perChunk.Sum, 1e-12)
		assert.Empty(t, r.points(genaiconv.ServerTimeToFirstTokenName), "the model runs elsewhere")
	})
}

func TestAGatewayMeasuresFromItsOwnArrivalAndLeavesUsageToTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		time.Sleep(5 * time.Millisecond)
		ctx, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{
			Name: "POST /v1/chat/completions", Arrived: arrived,
			Attributes: []attribute.KeyValue{attribute.String("http.route", "/v1/chat/completions")},
			Options:    []trace.SpanStartOption{trace.WithAttributes(attribute.String("extra", "yes"))},
		})
		at, ok := genaitrace.ArrivalFromContext(ctx)
		assert.True(t, ok)
		assert.Equal(t, arrived, at)
		time.Sleep(5 * time.Millisecond)
		gateway.Chunk(genaitrace.NoOutput)
		time.Sleep(15 * time.Millisecond)
		gateway.Chunk(genaitrace.Visible)
		gateway.SetUsage(fullUsage())
		gateway.End()

		s := r.span("POST /v1/chat/completions")
		assert.Equal(t, trace.SpanKindServer, s.SpanKind())
		assert.Equal(t, "gateway", s.text(semconv.GenAISpanRoleKey))
		assert.Equal(t, "/v1/chat/completions", s.text("http.route"))
		assert.Equal(t, "yes", s.text("extra"))
		assert.Equal(t, int64(10e6), s.nanos(semconv.AIResponseDelayMsKey))
		assert.Equal(t, int64(25e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, 25*time.Millisecond, s.event(semconv.EventFirstToken).Time.Sub(arrived))
		for _, key := range keys(s.Attributes()) {
			assert.False(t, strings.HasPrefix(key, "gen_ai.usage."), key)
			assert.False(t, strings.HasPrefix(key, "ai.tokens."), key)
		}
		assert.False(t, s.has(semconv.GenAIChunkTimelineKey), "the timeline stands on the call's own span")

		assert.Equal(t, 0.025, r.once(semconv.GenAITimeToFirstTokenName))
		assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat", "genai.span.role": "gateway"},
			dims(r.point(semconv.GenAITimeToFirstTokenName).Attributes))
		assert.Empty(t, r.points(genaiconv.ClientInferenceDurationName))
	})
}

// A server's arrival is not when the server sends a request of its own.
func TestACallDoesNotCountFromTheArrivalOfTheRequestThatItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx := genaitrace.ContextWithArrival(t.Context(), time.Now())
		time.Sleep(time.Second)
		_, call := r.StartCall(ctx, genaitrace.Request{})
		time.Sleep(time.Millisecond)
		call.Chunk(genaitrace.Output)
		call.End()
		assert.Equal(t, int64(1e6), r.span("chat").nanos(semconv.LLMTTFTMsKey))
	})
}

func TestAStreamWithoutOutputHasAFirstChunkAndNoFirstToken(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	call.Chunk(genaitrace.NoOutput)
	call.End()
	s := r.span("chat")
	assert.True(t, s.has(genaiconv.ResponseTimeToFirstChunkKey))
	assert.False(t, s.has(semconv.LLMTTFTMsKey))
	assert.False(t, s.has(semconv.GenAIFirstVisibleMsKey))
	assert.False(t, s.has(semconv.GenAILastTokenMsKey))
	assert.Equal(t, int64(0), s.int(semconv.GenAIChunkOutputCountKey), "counted, and none")
	assert.Empty(t, s.Events())
	assert.Empty(t, r.points(semconv.GenAITimeToFirstTokenName))
	assert.Empty(t, r.points(genaiconv.ClientInferenceTimePerOutputChunkName))
}

func TestReasoningIsOutputAndNotVisible(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	call.Chunk(genaitrace.Output)
	call.End()
	assert.True(t, r.span("chat").has(semconv.LLMTTFTMsKey))
	assert.False(t, r.span("chat").has(semconv.GenAIFirstVisibleMsKey))
}

func TestACallThatIsNoStreamSaysNothingOfChunks(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	call.End()
	for _, key := range keys(r.span("chat").Attributes()) {
		assert.NotContains(t, key, "chunk")
		assert.NotContains(t, key, "ttft")
		assert.NotContains(t, key, "stream")
	}
	assert.Equal(t, uint64(1), r.point(genaiconv.ClientInferenceDurationName).Count)
	assert.Empty(t, r.points(genaiconv.ClientInferenceTimeToFirstChunkName))
}

// usageKeys returns the token counts of a span.
func usageKeys(s seen) map[string]int64 {
	m := map[string]int64{}
	for _, kv := range s.Attributes() {
		if k := string(kv.Key); strings.HasPrefix(k, "gen_ai.usage.") || strings.HasPrefix(k, "ai.tokens.") {
			m[k] = kv.Value.AsInt64()
		}
	}
	return m
}

// Backends add up gen_ai.usage.* over all spans, so one model call writes it
// once.
func TestUsageIsWrittenOnceATrace(t *testing.T) {
	official := map[string]int64{
		"gen_ai.usage.input_tokens": 2456, "gen_ai.usage.output_tokens": 3, "gen_ai.usage.cache_read.input_tokens": 1024,
		"gen_ai.usage.cache_write.input_tokens": 512, "gen_ai.usage.reasoning.output_tokens": 0,
	}
	house := map[string]int64{
		"ai.tokens.input": 2456, "ai.tokens.output": 3, "ai.tokens.cached": 1024,
		"ai.tokens.cache_write": 512, "ai.tokens.reasoning": 0,
	}
	remote := func(ctx context.Context) context.Context {
		state, err := trace.ParseTraceState("ot=th:8")
		require.NoError(t, err)
		return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
		}))
	}
	marked := func(ctx context.Context) context.Context {
		sc := trace.SpanContextFromContext(propagation.ContextWithCallerMark(remote(ctx)))
		require.True(t, propagation.HasCallerMark(sc))
		return trace.ContextWithRemoteSpanContext(ctx, sc.WithRemote(true))
	}
	for name, tt := range map[string]struct {
		around func(context.Context, *recording) (context.Context, func())
		want   map[string]int64
	}{
		"at the root": {
			func(ctx context.Context, _ *recording) (context.Context, func()) { return ctx, func() {} }, official,
		},
		"below a remote caller": {
			func(ctx context.Context, _ *recording) (context.Context, func()) { return remote(ctx), func() {} }, official,
		},
		"below a remote caller that reports it": {
			func(ctx context.Context, _ *recording) (context.Context, func()) { return marked(ctx), func() {} }, house,
		},
		"below a gateway": {
			func(ctx context.Context, r *recording) (context.Context, func()) {
				ctx, g := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /"})
				return ctx, g.End
			}, official,
		},
		"below a gateway whose caller reports it": {
			func(ctx context.Context, r *recording) (context.Context, func()) {
				ctx, g := r.StartGateway(marked(ctx), genaitrace.GatewayRequest{Name: "POST /"})
				return ctx, g.End
			}, house,
		},
		"inside a live call": {
			func(ctx context.Context, r *recording) (context.Context, func()) {
				ctx, c := r.StartCall(ctx, genaitrace.Request{Operation: "outer"})
				return ctx, c.End
			}, house,
		},
		"after a call has ended": {
			func(ctx context.Context, r *recording) (context.Context, func()) {
				ctx, c := r.StartCall(ctx, genaitrace.Request{Operation: "outer"})
				c.End()
				return ctx, func() {}
			}, official,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx, endAround := tt.around(t.Context(), r)
			_, inf := r.StartInference(ctx, genaitrace.Request{})
			inf.SetUsage(fullUsage())
			inf.End()
			_, call := r.StartCall(ctx, genaitrace.Request{})
			call.SetUsage(fullUsage())
			call.End()
			endAround()
			assert.Equal(t, tt.want, usageKeys(r.span(semconv.SpanInferenceGenerate)))
			assert.Equal(t, tt.want, usageKeys(r.span("chat")))
		})
	}
}

func TestUnknownUsageIsAbsentAndAKnownZeroIsZero(t *testing.T) {
	for name, tt := range map[string]struct {
		usage []genaitrace.Usage
		want  map[string]int64
	}{
		"never told":       {nil, map[string]int64{}},
		"nothing known":    {[]genaitrace.Usage{{}}, map[string]int64{}},
		"a known zero":     {[]genaitrace.Usage{{OutputTokens: new(0)}}, map[string]int64{"gen_ai.usage.output_tokens": 0}},
		"later ones add":   {[]genaitrace.Usage{{InputTokens: new(7)}, {OutputTokens: new(3)}}, map[string]int64{"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3}},
		"later ones win":   {[]genaitrace.Usage{{InputTokens: new(7)}, {InputTokens: new(8)}}, map[string]int64{"gen_ai.usage.input_tokens": 8}},
		"unknown is later": {[]genaitrace.Usage{{InputTokens: new(7)}, {}}, map[string]int64{"gen_ai.usage.input_tokens": 7}},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			_, inf := r.StartInference(t.Context(), genaitrace.Request{})
			for _, u := range tt.usage {
				call.SetUsage(u)
				inf.SetUsage(u)
			}
			call.End()
			inf.End()
			assert.Equal(t, tt.want, usageKeys(r.span("chat")))
			assert.Equal(t, tt.want, usageKeys(r.span(semconv.SpanInferenceGenerate)))
			assert.Empty(t, r.faults())
		})
	}
}

func TestTheHandleDoesNotKeepTheCallersMemory(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	n, reasons := 7, []string{"stop"}
	call.SetUsage(genaitrace.Usage{InputTokens: &n})
	call.SetFinish(reasons...)
	n, reasons[0] = 8, "changed"
	call.End()
	assert.Equal(t, int64(7), r.span("chat").int(genaiconv.UsageInputTokensKey))
	assert.Equal(t, []string{"stop"}, r.span("chat").value(genaiconv.ResponseFinishReasonsKey).AsStringSlice())
}

func TestHowAStreamEnded(t *testing.T) {
	const (
		done      = semconv.GenAIStreamTerminalDone
		finish    = semconv.GenAIStreamTerminalFinish
		eof       = semconv.GenAIStreamTerminalEOF
		truncated = semconv.GenAIStreamTerminalTruncated
		streamErr = semconv.GenAIStreamTerminalError
		httpErr   = semconv.GenAIStreamTerminalHTTPError
		cancelled = semconv.GenAIStreamTerminalClientCancelled
		timeout   = semconv.GenAIStreamTerminalTimeout
	)
	failure := errors.New("connection reset")
	for name, tt := range map[string]struct {
		noted     semconv.GenAIStreamTerminalAttr // by SetTerminal
		errorType string                          // by SetErrorType
		finish    bool                            // a finish reason came
		chunks    int
		request   genaitrace.Request
		err       error // what Fail gets

		want     semconv.GenAIStreamTerminalAttr // empty: absent
		wantType string                          // empty: status Unset
	}{
		// What the reader of the stream noted decides.
		"done":             {noted: done, chunks: 2, want: done},
		"finish":           {noted: finish, chunks: 2, want: finish},
		"eof":              {noted: eof, chunks: 2, want: eof},
		"client_cancelled": {noted: cancelled, chunks: 2, want: cancelled},
		"truncated":        {noted: truncated, chunks: 2, want: truncated, wantType: "stream_truncated"},
		"error":            {noted: streamErr, chunks: 2, want: streamErr, wantType: "_OTHER"},
		"http_error":       {noted: httpErr, want: httpErr, wantType: "_OTHER"},
		"timeout":          {noted: timeout, chunks: 2, want: timeout, wantType: "timeout"},

		// The word of the protocol is the best error.type, and belongs to failures alone.
		"error with its word":          {noted: streamErr, errorType: "server_error", chunks: 2, want: streamErr, wantType: "server_error"},
		"http_error with its word":     {noted: httpErr, errorType: "429", want: httpErr, wantType: "429"},
		"truncated with a word":        {noted: truncated, errorType: "reset", chunks: 2, want: truncated, wantType: "reset"},
		"timeout with a word":          {noted: timeout, errorType: "idle", chunks: 2, want: timeout, wantType: "idle"},
		"done with a word":             {noted: done, errorType: "server_error", chunks: 2, want: done},
		"client_cancelled with a word": {noted: cancelled, errorType: "server_error", chunks: 2, want: cancelled},

		// A noted failure stays one, whatever Fail says later.
		"error, then cancelled":     {noted: streamErr, chunks: 2, err: context.Canceled, want: streamErr, wantType: "_OTHER"},
		"truncated, then cancelled": {noted: truncated, chunks: 2, err: context.Canceled, want: truncated, wantType: "stream_truncated"},
		"http_error, then deadline": {noted: httpErr, err: context.DeadlineExceeded, want: httpErr, wantType: "timeout"},
		"timeout, then an error":    {noted: timeout, chunks: 2, err: failure, want: timeout, wantType: "timeout"},
		// Reading on a stream that its client closed fails, and is no failure.
		"client_cancelled, then an error": {noted: cancelled, chunks: 2, err: failure, want: cancelled},
		"done, then an error":             {noted: done, chunks: 2, err: failure, want: done, wantType: "_OTHER"},

		// Where it noted nothing, the end of the call decides.
		"end after chunks":            {chunks: 2, want: eof},
		"end after a finish reason":   {chunks: 2, finish: true, want: finish},
		"end without chunks":          {},
		"end of a stream, no chunks":  {request: genaitrace.Request{Stream: true}},
		"finish reason, no stream":    {finish: true},
		"an error after chunks":       {chunks: 2, err: failure, want: streamErr, wantType: "_OTHER"},
		"an error before any chunk":   {request: genaitrace.Request{Stream: true}, err: failure, wantType: "_OTHER"},
		"an error without a stream":   {err: failure, wantType: "_OTHER"},
		"an error with a word":        {errorType: "server_error", err: failure, wantType: "server_error"},
		"cancelled after chunks":      {chunks: 2, err: context.Canceled, want: cancelled},
		"cancelled before any chunk":  {err: context.Canceled, want: cancelled},
		"a deadline after chunks":     {chunks: 2, err: context.DeadlineExceeded, want: timeout, wantType: "timeout"},
		"a deadline before any chunk": {err: context.DeadlineExceeded, want: timeout, wantType: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, call := r.StartCall(t.Context(), tt.request)
			for range tt.chunks {
				call.Chunk(genaitrace.Visible)
			}
			if tt.finish {
				call.SetFinish("stop")
			}
			if tt.noted != "" {
				call.SetTerminal(tt.noted)
				call.SetTerminal("too late")
			}
			if tt.errorType != "" {
				call.SetErrorType(tt.errorType)
				call.SetErrorType("too late")
			}
			call.Fail(tt.err)

			s := r.span("chat")
			s.assertStatus(tt.wantType)
			if tt.want == "" {
				assert.False(t, s.has(semconv.GenAIStreamTerminalKey), "genai.stream.terminal")
			} else {
				assert.Equal(t, string(tt.want), s.text(semconv.GenAIStreamTerminalKey))
			}
			got, failed := dims(r.point(genaiconv.ClientInferenceDurationName).Attributes)["error.type"]
			assert.Equal(t, tt.wantType != "", failed)
			if failed {
				assert.Equal(t, tt.wantType, got, "the metric says the same")
			}
		})
	}
}

func TestACallersMetricsHaveTheSpecifiedBucketsAndDimensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), fullRequest())
		for range 3 {
			time.Sleep(time.Millisecond)
			call.Chunk(genaitrace.Visible)
		}
		call.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
		call.SetErrorType("server_error")
		call.SetTerminal(semconv.GenAIStreamTerminalError)
		call.End()

		official := []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
		tokens := []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
		for name, tt := range map[string]struct {
			count   uint64
			buckets []float64
			extra   [2]string
		}{
			"gen_ai.client.inference.duration":              {1, official, [2]string{"error.type", "server_error"}},
			"gen_ai.client.inference.time_to_first_chunk":   {1, official, [2]string{}},
			"gen_ai.client.inference.time_per_output_chunk": {2, official, [2]string{}},
			"genai.time_to_first_token":                     {1, tokens, [2]string{"genai.span.role", "inference"}},
		} {
			p := r.point(name)
			want := map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm",
				"gen_ai.request.model": "qwen2.5-7b-instruct", "gen_ai.response.model": "qwen2.5-7b-instruct-awq",
				"server.address": "gpu-7.internal", "server.port": int64(8000),
			}
			if name == "gen_ai.client.inference.time_per_output_chunk" { // one value a chunk: what is required, no more
				for _, recommended := range []string{"gen_ai.response.model", "server.address", "server.port"} {
					delete(want, recommended)
				}
			}
			if tt.extra[0] != "" {
				want[tt.extra[0]] = tt.extra[1]
			}
			assert.Equal(t, want, dims(p.Attributes), name)
			assert.Equal(t, tt.buckets, p.Bounds, name)
			assert.Equal(t, tt.count, p.Count, name)
		}
	})
}

// Beyond the resolution of the timeline each gap is still one value.
func TestTimePerOutputChunkHasOneValueAGapOfALongStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		const chunks = 5000
		for range chunks {
			time.Sleep(15 * time.Millisecond)
			call.Chunk(genaitrace.Visible)
		}
		call.End()
		p := r.point(genaiconv.ClientInferenceTimePerOutputChunkName)
		assert.Equal(t, uint64(chunks-1), p.Count)
		assert.InEpsilon(t, 0.015*(chunks-1), p.Sum, 0.03)
		assert.Equal(t, uint64(chunks-1), p.BucketCounts[1], "all of them between 10 and 20 ms")
	})
}

func TestWatchIsClaimedOnce(t *testing.T) {
	r := record(t)
	ctx, call := r.StartCall(t.Context(), genaitrace.Request{})
	assert.Same(t, call, genaitrace.CallFromContext(ctx))
	assert.True(t, call.Watch() > 0)
	assert.Zero(t, call.Watch(), "a retry is an attempt of its own")
	call.End()
	assert.Nil(t, genaitrace.CallFromContext(ctx))
	assert.Nil(t, genaitrace.CallFromContext(context.Background()))
}

func TestWhatSamplersReadIsThereWhenTheSpanStarts(t *testing.T) {
	r := record(t)
	_, inf := r.StartInference(t.Context(), fullRequest())
	_, call := r.StartCall(t.Context(), fullRequest())
	for _, started := range r.recorder.Started() {
		got := keys(started.Attributes())
		for _, key := range []string{
			"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "genai.span.role",
			"server.address", "server.port",
		} {
			assert.Contains(t, got, key, started.Name())
		}
	}
	call.End()
	inf.End()
}

// A transport learns of the request as its body passes.
func TestWhatIsLearnedOfTheRequestLaterCompletesTheCall(t *testing.T) {
	for name, tt := range map[string]struct {
		start, late genaitrace.Request
		span        string // name
		want        map[string]any
	}{
		"everything is new": {
			genaitrace.Request{}, fullRequest(), "chat qwen2.5-7b-instruct",
			map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "qwen2.5-7b-instruct",
				"server.address": "gpu-7.internal", "server.port": int64(8000),
			},
		},
		"what is known stays": {
			genaitrace.Request{Provider: "openai", Model: "gpt-4o", ServerAddress: "api.openai.com", ServerPort: 443}, fullRequest(), "chat gpt-4o",
			map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
				"server.address": "api.openai.com", "server.port": int64(443),
			},
		},
		"nothing is new": {
			genaitrace.Request{Model: "m"}, genaitrace.Request{}, "chat m",
			map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
		},
		"a broken string": {
			genaitrace.Request{}, genaitrace.Request{Model: "m\xff"}, "chat m\uFFFD",
			map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m\uFFFD"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, call := r.StartCall(t.Context(), tt.start)
			call.SetRequest(tt.late)
			call.End()
			call.SetRequest(genaitrace.Request{Model: "too late"})

			s := r.span(tt.span)
			assert.Equal(t, tt.want, dims(r.point(genaiconv.ClientInferenceDurationName).Attributes))
			for key, want := range tt.want {
				assert.Equal(t, want, s.value(attribute.Key(key)).AsInterface(), key)
			}
			assert.Equal(t, tt.late.Stream, s.has(genaiconv.RequestStreamKey))
			assert.Equal(t, tt.late.MaxTokens > 0, s.has(genaiconv.RequestMaxTokensKey))
		})
	}
}

func TestWhatAGatewayLearnsIsADimensionAndDoesNotRenameItsSpan(t *testing.T) {
	r := record(t)
	_, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /"})
	gateway.SetRequest(genaitrace.Request{Model: "m"})
	gateway.Chunk(genaitrace.Visible)
	gateway.End()
	assert.False(t, r.span("POST /").has(genaiconv.RequestModelKey))
	assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "genai.span.role": "gateway"},
		dims(r.point(semconv.GenAITimeToFirstTokenName).Attributes))
}

func TestAFaultOfTheReaderIsCountedEachTimeAndReportedOnce(t *testing.T) {
	reported := handled(t)
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	unreadable := errors.New("event of 2 MiB")
	for range 3 {
		call.Fault(semconv.GenAIFaultParse, unreadable)
	}
	call.Fault(semconv.GenAIFaultPanic, errors.New("callback"))
	call.End()
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultParse: 3, semconv.GenAIFaultPanic: 1}, r.faults())
	require.Len(t, reported(), 2)
	assert.ErrorIs(t, reported()[0], unreadable)
}

// Client libraries give an empty reason with every chunk but the last.
func TestAnEmptyFinishReasonIsUnknown(t *testing.T) {
	for name, tt := range map[string]struct {
		tell     func(finish func(...string))
		want     []string
		terminal string
	}{
		"none":                 {func(finish func(...string)) { finish() }, nil, "eof"},
		"empty":                {func(finish func(...string)) { finish("") }, nil, "eof"},
		"empty, of each":       {func(finish func(...string)) { finish("", "") }, nil, "eof"},
		"empty before the end": {func(finish func(...string)) { finish(""); finish("stop") }, []string{"stop"}, "finish"},
		"empty after it":       {func(finish func(...string)) { finish("stop"); finish(""); finish() }, []string{"stop"}, "finish"},
		"empty of one":         {func(finish func(...string)) { finish("", "length") }, []string{"", "length"}, "finish"},
		"another":              {func(finish func(...string)) { finish("length", "stop"); finish("stop") }, []string{"stop"}, "finish"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			_, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, run := r.StartAgent(t.Context(), genaitrace.Agent{})
			call.Chunk(genaitrace.Visible)
			for _, finish := range []func(...string){call.SetFinish, inf.SetFinish, run.SetFinish} {
				tt.tell(finish)
			}
			run.End()
			inf.End()
			call.End()
			for _, name := range []string{"chat", semconv.SpanInferenceGenerate, "invoke_agent"} {
				s := r.span(name)
				if tt.want == nil {
					assert.False(t, s.has(genaiconv.ResponseFinishReasonsKey), name)
					continue
				}
				assert.Equal(t, tt.want, s.value(genaiconv.ResponseFinishReasonsKey).AsStringSlice(), name)
			}
			assert.Equal(t, tt.terminal, r.span("chat").text(semconv.GenAIStreamTerminalKey))
		})
	}
}

// A stream that is left before its end is not complete because of an empty reason.
func TestAStreamThatIsLeftWithAnEmptyFinishReasonIsAbandoned(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	observe := func(c *genaitrace.Call, _ string) genaitrace.ChunkKind {
		c.SetFinish("")
		return genaitrace.Visible
	}
	for range genaitrace.RangeChunks(call, yields("a", "b"), observe) {
		break
	}
	assert.Equal(t, "client_cancelled", r.span("chat").text(semconv.GenAIStreamTerminalKey))
}
