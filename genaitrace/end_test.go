package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// typedError says its own error.type.
type typedError string

func (e typedError) Error() string     { return "secret prompt text" }
func (e typedError) ErrorType() string { return string(e) }

// An ender is any handle that ends.
type ender interface {
	End()
	EndAt(time.Time)
	Fail(error)
	EndErr(*error)
}

// handleKinds start one handle each, and name the span that the handle ends
// and the kind of what is around it.
var handleKinds = map[string]struct {
	span  string
	start func(ctx context.Context, r *recording) (handle ender, endRest func())
}{
	"Inference": {semconv.SpanInferenceGenerate, func(ctx context.Context, r *recording) (ender, func()) {
		_, inf := r.StartInference(ctx, genaitrace.Request{})
		return inf, func() {}
	}},
	"Phase": {semconv.SpanInferencePrefill, func(ctx context.Context, r *recording) (ender, func()) {
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
		return p, inf.End
	}},
	"Decode": {semconv.SpanInferenceDecode, func(ctx context.Context, r *recording) (ender, func()) {
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		return d, inf.End
	}},
	"Operation": {semconv.SpanAuthValidateToken, func(ctx context.Context, r *recording) (ender, func()) {
		_, o := r.StartAuth(ctx)
		return o, func() {}
	}},
	"Route": {semconv.SpanGatewayRoute, func(ctx context.Context, r *recording) (ender, func()) {
		_, route := r.StartRoute(ctx, "m")
		return route, func() {}
	}},
	"Retrieval": {"retrieval", func(ctx context.Context, r *recording) (ender, func()) {
		_, search := r.StartRetrieval(ctx, genaitrace.RetrievalRequest{})
		return search, func() {}
	}},
	"Rerank": {semconv.SpanRAGRerank, func(ctx context.Context, r *recording) (ender, func()) {
		_, rerank := r.StartRerank(ctx, "")
		return rerank, func() {}
	}},
	"Tool": {"execute_tool clock", func(ctx context.Context, r *recording) (ender, func()) {
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
		return tool, func() {}
	}},
	"AgentRun": {"invoke_agent", func(ctx context.Context, r *recording) (ender, func()) {
		_, run := r.StartAgent(ctx, genaitrace.Agent{})
		return run, func() {}
	}},
	"remote AgentRun": {"invoke_agent", func(ctx context.Context, r *recording) (ender, func()) {
		_, run := r.StartAgent(ctx, genaitrace.Agent{Remote: true})
		return run, func() {}
	}},
	"Workflow": {"invoke_workflow", func(ctx context.Context, r *recording) (ender, func()) {
		_, run := r.StartWorkflow(ctx, "")
		return run, func() {}
	}},
	"Plan": {"plan", func(ctx context.Context, r *recording) (ender, func()) {
		_, plan := r.StartPlan(ctx, "")
		return plan, func() {}
	}},
	"Memory": {"search_memory", func(ctx context.Context, r *recording) (ender, func()) {
		_, memory := r.StartMemory(ctx, genaitrace.MemoryAccess{Remote: true})
		return memory, func() {}
	}},
	"Evaluation": {semconv.SpanEvaluationRun, func(ctx context.Context, r *recording) (ender, func()) {
		_, evaluation := r.StartEvaluation(ctx, genaitrace.EvaluationRequest{})
		return evaluation, func() {}
	}},
	"Guardrail": {semconv.SpanGuardrailCheck, func(ctx context.Context, r *recording) (ender, func()) {
		_, check := r.StartGuardrail(ctx, genaitrace.GuardrailCheck{})
		return check, func() {}
	}},
	"Forward": {semconv.SpanModelForward, func(ctx context.Context, r *recording) (ender, func()) {
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		_, p := inf.StartForward(ctx, genaitrace.Forward{})
		return p, inf.End
	}},
	"Call": {"chat", func(ctx context.Context, r *recording) (ender, func()) {
		_, c := r.StartCall(ctx, genaitrace.Request{})
		return c, func() {}
	}},
	"Gateway": {"POST /", func(ctx context.Context, r *recording) (ender, func()) {
		_, c := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /"})
		return c, func() {}
	}},
}

func TestEveryWayToEndEndsOnceWithTheRightStatus(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	anError := errors.New("out of memory")

	for name, tt := range map[string]struct {
		ctx       context.Context
		end       func(ender)
		errorType string // empty: status Unset and no error.type
	}{
		"End":                      {nil, ender.End, ""},
		"EndAt the zero time":      {nil, func(h ender) { h.EndAt(time.Time{}) }, ""},
		"EndErr(nil)":              {nil, func(h ender) { h.EndErr(nil) }, ""},
		"EndErr of no error":       {nil, func(h ender) { h.EndErr(new(error)) }, ""},
		"EndErr of an error":       {nil, func(h ender) { h.EndErr(&anError) }, "_OTHER"},
		"Fail(nil)":                {nil, func(h ender) { h.Fail(nil) }, ""},
		"io.EOF":                   {nil, func(h ender) { h.Fail(io.EOF) }, "_OTHER"},
		"wrapped io.EOF":           {nil, func(h ender) { h.Fail(fmt.Errorf("read: %w", io.EOF)) }, "_OTHER"},
		"unexpected EOF":           {nil, func(h ender) { h.Fail(io.ErrUnexpectedEOF) }, "_OTHER"},
		"an error":                 {nil, func(h ender) { h.Fail(anError) }, "_OTHER"},
		"a typed error":            {nil, func(h ender) { h.Fail(typedError("rate_limited")) }, "rate_limited"},
		"a wrapped typed error":    {nil, func(h ender) { h.Fail(fmt.Errorf("call: %w", typedError("rate_limited"))) }, "rate_limited"},
		"an untyped typed error":   {nil, func(h ender) { h.Fail(typedError("")) }, "genaitrace_test.typedError"},
		"an error of a named type": {nil, func(h ender) { h.Fail(fmt.Errorf("dial: %w", &timeoutError{})) }, "*genaitrace_test.timeoutError"},
		"two joined errors":        {nil, func(h ender) { h.Fail(errors.Join(anError, anError)) }, "_OTHER"},
		"cancelled error":          {nil, func(h ender) { h.Fail(fmt.Errorf("rpc: %w", context.Canceled)) }, ""},
		"deadline error":           {nil, func(h ender) { h.Fail(fmt.Errorf("rpc: %w", context.DeadlineExceeded)) }, "timeout"},
		"cancelled context":        {cancelled, func(h ender) { h.Fail(anError) }, ""},
		"expired context":          {expired, func(h ender) { h.Fail(anError) }, "timeout"},
		"cancelled, but all sent":  {cancelled, ender.End, ""},
		"End, then Fail":           {nil, func(h ender) { h.End(); h.Fail(anError) }, ""},
		"Fail, then End":           {nil, func(h ender) { h.Fail(anError); h.End() }, "_OTHER"},
		"End twice":                {nil, func(h ender) { h.End(); h.End(); h.EndAt(time.Now()); h.EndErr(nil) }, ""},
	} {
		for kind, handle := range handleKinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				r := record(t)
				ctx := tt.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				h, endRest := handle.start(ctx, r)
				tt.end(h)
				s := r.span(handle.span)
				want := tt.errorType
				if name == "io.EOF" && (kind == "Call" || kind == "Gateway") {
					want = "" // how a stream ends well
				}
				s.assertStatus(want)
				assert.NotContains(t, s.Status().Description, "secret", "no message of an error on a span")
				assert.NotContains(t, s.Status().Description, "memory", "no message of an error on a span")
				endRest()
			})
		}
	}
}

type timeoutError struct{}

func (*timeoutError) Error() string { return "secret" }

func TestAPanicEndsTheSpanAndGoesOn(t *testing.T) {
	for kind, handle := range handleKinds {
		t.Run(kind, func(t *testing.T) {
			r := record(t)
			thrown := &struct{ reason string }{"secret"}
			assert.PanicsWithValue(t, thrown, func() {
				h, endRest := handle.start(t.Context(), r)
				defer endRest()
				var err error
				defer h.EndErr(&err)
				panic(thrown)
			})
			s := r.span(handle.span)
			s.assertStatus("panic")
			assert.Empty(t, s.Status().Description)
		})
	}
}

func TestAPanicPassesNestedDefersAndEndsEachSpanOnce(t *testing.T) {
	r := record(t)
	serve := func() (err error) {
		ctx, call := r.StartCall(t.Context(), genaitrace.Request{})
		defer call.EndErr(&err)
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		defer inf.EndErr(&err)
		ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		defer prefill.EndErr(&err)
		_, decode := inf.StartDecode(ctx)
		defer decode.EndErr(&err)
		defer decode.End() // a careless extra defer runs first, and wins
		panic("boom")
	}
	assert.PanicsWithValue(t, "boom", func() { _ = serve() })
	assert.Len(t, r.recorder.Ended(), 4)
	r.span(semconv.SpanInferenceDecode).assertStatus("")
	for _, name := range []string{"chat", semconv.SpanInferenceGenerate, semconv.SpanInferencePrefill} {
		r.span(name).assertStatus("panic")
	}
}

// A panic must reach the caller also where nothing records.
func TestAPanicPassesANilHandle(t *testing.T) {
	for name, h := range map[string]ender{
		"Inference": (*genaitrace.Inference)(nil), "Phase": (*genaitrace.Phase)(nil),
		"Decode": (*genaitrace.Decode)(nil), "Call": (*genaitrace.Call)(nil),
		"Operation": (*genaitrace.Operation)(nil), "Route": genaitrace.Route{}, "CacheLookup": genaitrace.CacheLookup{},
	} {
		assert.PanicsWithValue(t, "boom", func() {
			defer h.EndErr(nil)
			panic("boom")
		}, name)
	}
}

func TestEndErrSeesTheErrorThatTheFunctionReturns(t *testing.T) {
	r := record(t)
	serve := func() (err error) {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		defer inf.EndErr(&err)
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		defer prefill.EndErr(&err)
		return typedError("device_lost")
	}
	require.Error(t, serve())
	r.span(semconv.SpanInferenceGenerate).assertStatus("device_lost")
	r.span(semconv.SpanInferencePrefill).assertStatus("device_lost")
}

func TestPhasesThatAreOpenEndWithTheirInference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, queue := inf.StartQueue(ctx)
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		_, decode := inf.StartDecode(ctx)
		time.Sleep(time.Millisecond)
		decode.Token()
		prefill.End()
		time.Sleep(time.Millisecond)
		inf.End()
		queue.End()
		decode.End()

		assert.Len(t, r.recorder.Ended(), 4)
		for _, name := range []string{semconv.SpanQueueWait, semconv.SpanInferenceDecode} {
			assert.Equal(t, r.span(semconv.SpanInferenceGenerate).EndTime(), r.span(name).EndTime())
		}
		assert.Equal(t, int64(1), r.span(semconv.SpanInferenceDecode).int(semconv.GenAITokenCountKey))
		assert.Equal(t, int64(1e6), r.span(semconv.SpanInferenceGenerate).nanos(semconv.LLMTTFTMsKey))
	})
}

func TestAClientThatLeavesIsAnEarlyStopAndNoError(t *testing.T) {
	for name, openDecode := range map[string]bool{"while decoding": true, "after decoding": false} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx, cancel := context.WithCancel(t.Context())
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			d.Token()
			stopped := semconv.SpanInferenceDecode
			if !openDecode {
				d.End()
				stopped = semconv.SpanInferenceGenerate
			}
			cancel()
			err := ctx.Err()
			inf.EndErr(&err)

			s := r.span(semconv.SpanInferenceGenerate)
			s.assertStatus("")
			r.span(semconv.SpanInferenceDecode).assertStatus("")
			assert.Equal(t, "client_cancelled", s.text(semconv.GenAIStreamTerminalKey))
			event := r.span(stopped).event(semconv.EventEarlyStop)
			assert.Equal(t, []attribute.KeyValue{semconv.GenAIEarlyStopReason(semconv.GenAIEarlyStopReasonDisconnect)}, event.Attributes)
			assert.Equal(t, uint64(1), r.point("gen_ai.server.time_to_first_token").Count, "the tokens were good")
			assert.NotContains(t, dims(r.point("gen_ai.server.request.duration").Attributes), "error.type")
		})
	}
}

func TestADeadlineThatPassesIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		<-ctx.Done()
		inf.Fail(errors.New("rpc error: code = DeadlineExceeded"))
		r.span(semconv.SpanInferenceGenerate).assertStatus("timeout")
		r.span(semconv.SpanInferenceDecode).assertStatus("timeout")
		event := r.span(semconv.SpanInferenceDecode).event(semconv.EventEarlyStop)
		assert.Equal(t, []attribute.KeyValue{semconv.GenAIEarlyStopReason(semconv.GenAIEarlyStopReasonTimeout)}, event.Attributes)
		assert.False(t, r.span(semconv.SpanInferenceGenerate).has(semconv.GenAIStreamTerminalKey))
	})
}

func TestOnlyTheFirstEarlyStopCounts(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	inf.EarlyStop(semconv.GenAIEarlyStopReasonLength)
	inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
	inf.Fail(context.Canceled)
	inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
	event := r.span(semconv.SpanInferenceDecode).event(semconv.EventEarlyStop)
	assert.Equal(t, []attribute.KeyValue{semconv.GenAIEarlyStopReason(semconv.GenAIEarlyStopReasonLength)}, event.Attributes)
	d.End()
}

func TestNothingChangesAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		d.End()
		inf.End()
		callCtx, call := r.StartCall(t.Context(), genaitrace.Request{})
		call.Chunk(genaitrace.Visible)
		require.Same(t, call, genaitrace.CallFromContext(callCtx))
		call.End()
		before, ended := r.tree(), r.ended.Load()

		time.Sleep(time.Second)
		useEverything(ctx, inf, d, call)
		assert.Equal(t, before, r.tree())
		assert.Equal(t, ended, r.ended.Load(), "no span starts below what has ended")
		assert.Nil(t, genaitrace.CallFromContext(callCtx))
		assert.Equal(t, uint64(1), r.point("gen_ai.server.request.duration").Count)
		assert.Equal(t, uint64(1), r.point("gen_ai.client.inference.duration").Count)
		assert.Equal(t, uint64(1), r.point("gen_ai.client.inference.time_to_first_chunk").Count)
	})
}

// useEverything calls every method of every handle.
func useEverything(ctx context.Context, inf *genaitrace.Inference, d *genaitrace.Decode, call *genaitrace.Call) {
	attr := attribute.String("late", "yes")
	for range 200 { // more than a window of the token clock
		d.Token()
		call.Chunk(genaitrace.Visible)
	}
	d.Tokens(3)
	d.TokenAt(time.Now())
	d.SetInputTokens(5)
	d.SetAttributes(attr)
	d.Span().AddEvent("late")

	_, q := inf.StartQueue(ctx)
	_, tk := inf.StartTokenize(ctx)
	_, s := inf.StartSchedule(ctx)
	_, p := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 1})
	_, d2 := inf.StartDecode(ctx)
	_, post := inf.StartPostprocess(ctx)
	for _, phase := range []*genaitrace.Phase{q, tk, s, p, post} {
		phase.SetInputTokens(5)
		phase.SetAttributes(attr)
		phase.Span().AddEvent("late")
		phase.End()
		phase.EndAt(time.Now())
		phase.Fail(io.ErrUnexpectedEOF)
		phase.EndErr(nil)
	}
	d2.Token()
	d2.End()

	inf.SetUsage(genaitrace.Usage{InputTokens: new(9)})
	inf.SetFinish("late")
	inf.SetResponse("late", "late")
	inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
	inf.SetAttributes(attr)
	inf.Span().AddEvent("late")
	call.ChunkAt(genaitrace.Visible, time.Now())
	call.SetRequest(genaitrace.Request{Model: "late"})
	call.SetUsage(genaitrace.Usage{InputTokens: new(9)})
	call.SetFinish("late")
	call.SetResponse("late", "late")
	call.SetTerminal(semconv.GenAIStreamTerminalError)
	call.SetErrorType("late")
	call.SetAttributes(attr)
	call.Span().AddEvent("late")
	call.Watch()
	useEngineFacts(ctx, inf)
	d.SetResources(genaitrace.Resources{BatchSize: new(9)})
	d.RecordStep(genaitrace.Step{ID: new(9)})
	_, pass := d.StartForward(ctx, genaitrace.Forward{})
	_, kernel := d.StartKernel(ctx, genaitrace.Kernel{})
	for _, h := range []ender{d, inf, call, pass, kernel} {
		h.End()
		h.EndAt(time.Now())
		h.Fail(io.ErrUnexpectedEOF)
		h.EndErr(nil)
	}
}

func TestWhereNothingRecordsEveryHandleIsNilAndWorks(t *testing.T) {
	var nilTracer *genaitrace.Tracer
	for name, tr := range map[string]*genaitrace.Tracer{
		"nil Tracer": nilTracer,
		"no-op providers": genaitrace.New(
			genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()),
			genaitrace.WithMeterProvider(metricnoop.NewMeterProvider())),
		"the globals, unset, and odd options": genaitrace.New(
			nil, genaitrace.WithTracerProvider(nil), genaitrace.WithMeterProvider(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, inf := tr.StartInference(t.Context(), fullRequest())
			assert.Nil(t, inf)
			ctx, d := inf.StartDecode(ctx)
			assert.Nil(t, d)
			ctx, gateway := tr.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /"})
			assert.Nil(t, gateway)
			ctx, call := tr.StartCall(ctx, fullRequest())
			assert.Nil(t, call)
			assert.Nil(t, genaitrace.CallFromContext(ctx))
			assert.Zero(t, call.Watch())

			useEverything(ctx, inf, d, call)
			for _, span := range []trace.Span{inf.Span(), d.Span(), call.Span(), (*genaitrace.Phase)(nil).Span()} {
				assert.False(t, span.IsRecording())
			}
		})
	}
}

// The caller's own trace goes on where this package records nothing.
func TestWhereNothingRecordsTheContextKeepsItsSpan(t *testing.T) {
	r := record(t)
	ctx, foreign := r.startForeign(t.Context(), "foreign")
	tr := genaitrace.New(
		genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()),
		genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	ctx, inf := tr.StartInference(ctx, genaitrace.Request{})
	ctx, d := inf.StartDecode(ctx)
	d.End()
	assert.Equal(t, foreign.SpanContext(), trace.SpanContextFromContext(ctx))
	foreign.End()
}

// A handle that nobody started, like a nil one, does nothing.
func TestZeroHandlesDoNothing(t *testing.T) {
	ctx, inf := new(genaitrace.Tracer).StartInference(t.Context(), genaitrace.Request{})
	require.Nil(t, inf)
	_, call := new(genaitrace.Tracer).StartCall(ctx, genaitrace.Request{})
	require.Nil(t, call)

	zero := &genaitrace.Inference{}
	_, queue := zero.StartQueue(ctx)
	require.Nil(t, queue)
	_, decode := zero.StartDecode(ctx)
	require.Nil(t, decode)
	zero.SetUsage(genaitrace.Usage{InputTokens: new(1)})
	zero.SetAttributes()
	zero.EarlyStop("user")
	zero.End()

	phase := &genaitrace.Phase{}
	phase.SetInputTokens(1)
	phase.SetAttributes()
	phase.End()
	lone := &genaitrace.Decode{}
	lone.Token()
	lone.Tokens(2)
	lone.TokenAt(time.Now())
	lone.End()
	zeroCall := &genaitrace.Call{}
	zeroCall.Chunk(genaitrace.Visible)
	zeroCall.ChunkAt(genaitrace.Visible, time.Now())
	zeroCall.SetRequest(genaitrace.Request{Model: "m"})
	zeroCall.SetAttributes()
	zeroCall.End()
}

// brokenError is an error whose methods fail where it is a nil pointer, as most do.
type brokenError struct{ cause error }

func (e *brokenError) Error() string     { return e.cause.Error() }
func (e *brokenError) Unwrap() error     { return e.cause }
func (e *brokenError) ErrorType() string { return e.cause.Error() }

// badlyTypedError fails in ErrorType alone.
type badlyTypedError struct{}

func (badlyTypedError) Error() string     { return "secret prompt text" }
func (badlyTypedError) ErrorType() string { panic("type") }

// Nothing that telemetry asks of an error breaks the service.
func TestAnErrorWhoseMethodsPanicEndsEveryHandle(t *testing.T) {
	for want, err := range map[string]error{
		"*genaitrace_test.brokenError":    (*brokenError)(nil),
		"genaitrace_test.badlyTypedError": badlyTypedError{},
		"_OTHER":                          fmt.Errorf("wrapped: %w", badlyWrappedError{(*brokenError)(nil)}),
	} {
		for name, kind := range handleKinds {
			t.Run(want+"/"+name, func(t *testing.T) {
				r := record(t)
				h, endRest := kind.start(t.Context(), r)
				assert.NotPanics(t, func() { h.Fail(err) })
				endRest()
				r.span(kind.span).assertStatus(want)
			})
		}
	}
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	assert.NotPanics(t, func() {
		_, got := drain(genaitrace.RangeChunks(call, func(yield func(string, error) bool) { yield("", (*brokenError)(nil)) }, nil))
		assert.Equal(t, (*brokenError)(nil), got)
	})
	r.span("chat").assertStatus("*genaitrace_test.brokenError")
}

// badlyWrappedError can be printed.
type badlyWrappedError struct{ error }

func (badlyWrappedError) Error() string   { return "wrapped" }
func (b badlyWrappedError) Unwrap() error { return b.error }

// What is promoted from the phase would look into a decode phase that is not there.
func TestEveryMethodOfANilDecodeDoesNothing(t *testing.T) {
	d := reflect.ValueOf((*genaitrace.Decode)(nil))
	for i := range d.NumMethod() {
		method, name := d.Method(i), d.Type().Method(i).Name
		in := make([]reflect.Value, 0, method.Type().NumIn())
		for j := range method.Type().NumIn() {
			if method.Type().IsVariadic() && j == method.Type().NumIn()-1 {
				break
			}
			in = append(in, reflect.Zero(method.Type().In(j)))
		}
		assert.NotPanics(t, func() { method.Call(in) }, name)
	}
}
