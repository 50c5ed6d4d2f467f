package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	lognoop "go.opentelemetry.io/otel/log/noop"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// testKey is the key of hashes in tests.
var testKey = []byte("0123456789abcdef0123456789abcdef")

// observed is a Tracer whose spans, metrics and log records are captured.
func observed(t testing.TB, options ...genaitrace.Option) (*genaitrace.Tracer, func() *capture.Capture) {
	t.Helper()
	rec := capture.NewRecorder(capture.WithoutSource())
	tr := genaitrace.New(append([]genaitrace.Option{
		genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider()),
		genaitrace.WithLoggerProvider(rec.LoggerProvider()), genaitrace.WithHashKey(testKey),
	}, options...)...)
	return tr, func() *capture.Capture {
		got, err := rec.Capture(context.Background())
		require.NoError(t, err)
		return got
	}
}

// logText renders log records: the event, its severity, the name of its span, how long
// after the start of that it came, and its attributes.
func logText(c *capture.Capture) string {
	var b strings.Builder
	for _, l := range c.Logs {
		var of *capture.Span
		for _, s := range c.Spans {
			if s.SpanID == l.SpanID && s.TraceID == l.TraceID {
				of = s
			}
		}
		fmt.Fprintf(&b, "%s %d", l.EventName, l.Severity)
		if of != nil {
			fmt.Fprintf(&b, " on %s at +%v", of.Name, l.Time.Sub(of.Start))
		}
		b.WriteByte('\n')
		lines := make([]string, 0, len(l.Attributes))
		for _, kv := range l.Attributes {
			lines = append(lines, fmt.Sprintf("    %s = %s\n", kv.Key, kv.Value.String()))
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

func logsNamed(c *capture.Capture, event string) (found []*capture.Log) {
	for _, l := range c.Logs {
		if l.EventName == event {
			found = append(found, l)
		}
	}
	return found
}

func say(role genaiconv.Role, text string) genaiconv.Message {
	return genaiconv.Message{Role: role, Parts: genaiconv.Parts{genaiconv.TextPart{Content: text}}}
}

func TestWhatAnswersLeaveInTheLogs(t *testing.T) {
	for _, level := range []content.Level{content.Off, content.Hash, content.Redacted, content.Full} {
		t.Run(level.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, captured := observed(t, genaitrace.WithContent(level))
				ctx, call := tr.StartCall(t.Context(), genaitrace.Request{Provider: "vllm", Model: "m1", Stream: true})
				in := genaitrace.Input{
					Instructions: genaiconv.Parts{genaiconv.TextPart{Content: "Be brief."}},
					Messages:     []genaiconv.Message{say(genaiconv.RoleUser, "I am jane@example.com")},
					Tools:        []genaiconv.ToolDefinition{{Name: "clock", Parameters: map[string]any{"type": "object"}}},
				}
				call.SetPrompt(tr.DescribePrompt(genaitrace.PromptText{Messages: in.Messages, Tokens: 300}))
				call.SetInput(in)
				_, inf := tr.StartInference(ctx, genaitrace.Request{Model: "m1"})
				inf.SetInput(in)
				time.Sleep(20 * time.Millisecond)
				_, decode := inf.StartDecode(ctx)
				for range 3 {
					decode.Token()
					call.Chunk(genaitrace.Visible)
					time.Sleep(10 * time.Millisecond)
				}
				inf.ContentBlocked("pii-email", "privacy")
				inf.SetOutput([]genaiconv.Message{say(genaiconv.RoleAssistant, "Hello.")})
				inf.Fail(errors.New("jane@example.com is blocked"))
				call.SetOutput([]genaiconv.Message{say(genaiconv.RoleAssistant, "Hello.")})
				call.SetUsage(genaitrace.Usage{InputTokens: new(300), OutputTokens: new(3)})
				call.SetResponse("chatcmpl-1", "m1-awq")
				call.SetFinish("content_filter")
				call.End()
				golden(t, "logs_"+level.String(), logText(captured()))
			})
		})
	}
}

func TestARecordBelongsToItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, captured := observed(t, genaitrace.WithContent(content.Full))
		_, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		call.SetInput(genaitrace.Input{Messages: []genaiconv.Message{say(genaiconv.RoleUser, "x")}})
		time.Sleep(time.Second)
		call.Fail(typedError("device_lost"))
		got := captured()
		require.Len(t, got.Spans, 1)
		require.Len(t, got.Logs, 3)
		for _, l := range got.Logs {
			assert.Equal(t, got.Spans[0].TraceID, l.TraceID, l.EventName)
			assert.Equal(t, got.Spans[0].SpanID, l.SpanID, l.EventName)
			assert.Equal(t, got.Spans[0].End, l.Time, l.EventName)
		}
	})
}

// Wherever the counts are from: here from prefill and from the token clock.
func TestARecordHasTheTokensOfItsSpan(t *testing.T) {
	tr, captured := observed(t)
	ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{Model: "m"})
	_, p := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 12, Cached: new(4)})
	p.End()
	_, d := inf.StartDecode(ctx)
	d.Tokens(3)
	inf.End()

	got := captured()
	records := logsNamed(got, semconv.EventGenAICompletion)
	require.Len(t, records, 1)
	var of *capture.Span
	for _, s := range got.Spans {
		if s.SpanID == records[0].SpanID {
			of = s
		}
	}
	for key, want := range map[attribute.Key]int64{
		genaiconv.UsageInputTokensKey: 12, genaiconv.UsageCacheReadInputTokensKey: 4, genaiconv.UsageOutputTokensKey: 3,
	} {
		for what, attrs := range map[string]capture.Attributes{"span": of.Attributes, "record": records[0].Attributes} {
			assert.Contains(t, attrs, key.Int64(want), what)
		}
	}
}

func TestWhatIsSaidCloserWins(t *testing.T) {
	text := []genaiconv.Message{say(genaiconv.RoleUser, "a question")}
	for _, c := range []struct {
		name, variable string
		options        []genaitrace.Option
		call           *content.Level
		span, event    bool
	}{
		{name: "nothing"},
		{name: "variable", variable: "SPAN_AND_EVENT", span: true, event: true},
		{name: "variable, spans", variable: "span_only", span: true},
		{name: "variable, events", variable: "EVENT_ONLY", event: true},
		{name: "variable, older", variable: "true", event: true},
		{name: "variable, none", variable: "NO_CONTENT"},
		{name: "tracer over variable", variable: "SPAN_AND_EVENT", options: []genaitrace.Option{genaitrace.WithContent(content.Off)}},
		{name: "tracer's level, variable's place", variable: "SPAN_ONLY", options: []genaitrace.Option{genaitrace.WithContent(content.Full)}, span: true},
		{name: "tracer's place, variable's level", variable: "SPAN_ONLY", options: []genaitrace.Option{genaitrace.WithContentPlace(content.OnEvents)}, event: true},
		{name: "tracer", options: []genaitrace.Option{genaitrace.WithContent(content.Full), genaitrace.WithContentPlace(content.OnEventsAndSpans)}, span: true, event: true},
		{name: "call over tracer, off", options: []genaitrace.Option{genaitrace.WithContent(content.Full)}, call: new(content.Off)},
		{name: "call over tracer, on", options: []genaitrace.Option{genaitrace.WithContent(content.Off)}, call: new(content.Full), event: true},
		{name: "call over variable", variable: "EVENT_ONLY", call: new(content.Off)},
		{name: "call, no level", variable: "EVENT_ONLY", call: new(content.Level(77))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(content.Variable, c.variable)
			tr, captured := observed(t, c.options...)
			ctx := t.Context()
			if c.call != nil {
				ctx = genaitrace.ContextWithContent(genaitrace.ContextWithContent(ctx, content.Hash), *c.call)
			}
			_, err := genaitrace.Do(ctx, tr, genaitrace.Request{Model: "m"}, func(ctx context.Context) (int, error) {
				genaitrace.CallFromContext(ctx).SetInput(genaitrace.Input{Messages: text})
				return 1, nil
			})
			require.NoError(t, err)
			got := captured()
			assert.Equal(t, c.span, got.Spans[0].Attributes.Has(genaiconv.InputMessagesKey), "on the span")
			details := logsNamed(got, genaiconv.EventClientInferenceOperationDetails)
			assert.Equal(t, c.event, len(details) == 1, "on an event")
			for _, l := range details {
				v, _ := l.Attributes.Get(genaiconv.InputMessagesKey)
				assert.Equal(t, attribute.SLICE, v.Type())
			}
			if c.span {
				v, _ := got.Spans[0].Attributes.Get(genaiconv.InputMessagesKey)
				assert.Equal(t, `[{"role":"user","parts":[{"type":"text","content":"a question"}]}]`, v.AsString())
			}
		})
	}
}

func TestOptionsOfContentSayWhatIsWrong(t *testing.T) {
	for want, option := range map[string]genaitrace.Option{
		"WithContent: Level(9) is no level":      genaitrace.WithContent(9),
		"WithContentPlace: Place(8) is no place": genaitrace.WithContentPlace(8),
		"WithContentLimit: limit is 1":           genaitrace.WithContentLimit(1),
		`redactor "x" has no function`:           genaitrace.WithRedactors(content.Redactor{Name: "x"}),
		"2 bytes, want at least 16":              genaitrace.WithHashKey([]byte("ab")),
		"add WithHashKey":                        genaitrace.WithContent(content.Hash),
	} {
		require.ErrorContains(t, genaitrace.Validate(option), want)
	}
	require.NoError(t, genaitrace.Validate(genaitrace.WithContent(content.Hash), genaitrace.WithHashKey(testKey), genaitrace.WithLoggerProvider(nil)))
	t.Setenv(content.Variable, "everything")
	require.ErrorContains(t, genaitrace.Validate(), content.Variable)
	require.NoError(t, genaitrace.Validate(genaitrace.WithContent(content.Off)), "the option wins")
}

func TestARedactorThatFailsCostsTheContentAlone(t *testing.T) {
	for name, redact := range map[string]func(string) (string, error){
		"an error": func(s string) (string, error) { return s, errors.New(s) },
		"a panic":  func(s string) (string, error) { panic(s) },
	} {
		t.Run(name, func(t *testing.T) {
			errs := handled(t)
			tr, captured := observed(t, genaitrace.WithContent(content.Redacted), genaitrace.WithContentPlace(content.OnEventsAndSpans),
				genaitrace.WithRedactors(content.Redactor{Name: "broken", Redact: redact}))
			_, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
			call.SetInput(genaitrace.Input{Messages: []genaiconv.Message{say(genaiconv.RoleUser, "a secret")}})
			call.SetFinish("stop")
			call.End()
			got := captured()
			assert.Len(t, logsNamed(got, semconv.EventGenAICompletion), 1, "the rest is there")
			assertNowhere(t, got, "a secret")
			faults := got.Metric(semconv.GenAITelemetryFaultsName)
			require.Len(t, faults, 1)
			assert.Equal(t, string(semconv.GenAIFaultContent), faults[0].Points[0].Attributes.String(semconv.GenAIFaultKey))
			for _, err := range errs() {
				assert.NotContains(t, err.Error(), "secret")
			}
		})
	}
}

// assertNowhere looks for texts in all of a capture.
func assertNowhere(t *testing.T, c *capture.Capture, texts ...string) {
	t.Helper()
	all := everything(c)
	for _, text := range texts {
		assert.NotContains(t, all, text)
	}
}

// everything is all text of a capture.
func everything(c *capture.Capture) string {
	var b strings.Builder
	attrs := func(all capture.Attributes) {
		for _, kv := range all {
			fmt.Fprintf(&b, "%s=%s\n", kv.Key, kv.Value.String())
			if raw, ok := kv.Value.AsInterface().(string); ok {
				b.WriteString(raw)
			}
		}
	}
	origin := func(r *capture.Resource, s *capture.Scope) {
		if r != nil {
			attrs(r.Attributes)
		}
		if s != nil {
			b.WriteString(s.Name + "\n" + s.Version + "\n")
			attrs(s.Attributes)
		}
	}
	for _, s := range c.Spans {
		b.WriteString(s.Name + "\n" + s.StatusMessage + "\n" + s.TraceState + "\n")
		origin(s.Resource, s.Scope)
		attrs(s.Attributes)
		for _, e := range s.Events {
			b.WriteString(e.Name + "\n")
			attrs(e.Attributes)
		}
		for _, l := range s.Links {
			b.WriteString(l.TraceState + "\n")
			attrs(l.Attributes)
		}
	}
	for _, l := range c.Logs {
		b.WriteString(l.EventName + "\n" + l.SeverityText + "\n" + l.Body.String() + "\n")
		origin(l.Resource, l.Scope)
		attrs(l.Attributes)
	}
	for _, m := range c.Metrics {
		b.WriteString(m.Name + "\n" + m.Unit + "\n")
		origin(m.Resource, m.Scope)
		for _, p := range m.Points {
			attrs(p.Attributes)
			for _, e := range p.Exemplars {
				attrs(e.Attributes)
			}
		}
	}
	return b.String()
}

// refusing is a logger provider whose processor takes nothing.
type refusing struct{ sdklog.Processor }

func (refusing) Enabled(context.Context, sdklog.EnabledParameters) bool { return false }
func (refusing) OnEmit(context.Context, *sdklog.Record) error           { panic("not enabled") }
func (refusing) Shutdown(context.Context) error                         { return nil }
func (refusing) ForceFlush(context.Context) error                       { return nil }

// Where no one takes log records, content that goes there is not even looked at.
func TestNothingIsDoneForLogsThatNobodyTakes(t *testing.T) {
	providers := map[string]genaitrace.Option{
		"none":     nil,
		"noop":     genaitrace.WithLoggerProvider(lognoop.NewLoggerProvider()),
		"empty":    genaitrace.WithLoggerProvider(sdklog.NewLoggerProvider()),
		"refusing": genaitrace.WithLoggerProvider(sdklog.NewLoggerProvider(sdklog.WithProcessor(refusing{}))),
	}
	in := genaitrace.Input{Messages: []genaiconv.Message{say(genaiconv.RoleUser, "a question")}}
	for name, provider := range providers {
		for _, level := range []content.Level{content.Off, content.Full} {
			tr := genaitrace.New(provider, genaitrace.WithContent(level),
				genaitrace.WithTracerProvider(sdktrace.NewTracerProvider()), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
			_, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
			require.NotNil(t, call)
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				call.SetInput(in)
				call.SetOutput(in.Messages)
			}), "%s, %v", name, level)
			call.End()

			quiet := genaitrace.New(provider, genaitrace.WithContent(level),
				genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
			_, call = quiet.StartCall(t.Context(), genaitrace.Request{Model: "m"})
			assert.Nil(t, call, "%s, %v", name, level)
		}
	}
}

// Log records come also where the span is not sampled, as metrics do.
func TestLogsComeWithoutASampledSpan(t *testing.T) {
	rec := capture.NewRecorder()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
		genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()), genaitrace.WithLoggerProvider(rec.LoggerProvider()))
	ctx, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
	_, inf := tr.StartInference(ctx, genaitrace.Request{Model: "m"})
	inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
	inf.End()
	call.ContentBlocked("", "")
	call.End()
	got, err := rec.Capture(t.Context())
	require.NoError(t, err)
	records := logsNamed(got, semconv.EventGenAICompletion)
	require.Len(t, records, 2)
	assert.Equal(t, "user", records[0].Attributes.String(semconv.GenAIEarlyStopReasonKey))
	assert.Equal(t, "_OTHER", records[1].Attributes.String(semconv.GenAIGuardrailRuleIDKey))
	assert.False(t, records[1].Flags.IsSampled())
}

// So do judgements, where nothing else records them.
func TestAnEvaluationIsLoggedWithoutASampledSpan(t *testing.T) {
	rec := capture.NewRecorder()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
		genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()), genaitrace.WithLoggerProvider(rec.LoggerProvider()))
	_, evaluation := tr.StartEvaluation(t.Context(), genaitrace.EvaluationRequest{Name: "Relevance"})
	evaluation.SetScore(0.5)
	evaluation.End()
	got, err := rec.Capture(t.Context())
	require.NoError(t, err)
	assert.Len(t, logsNamed(got, genaiconv.EventEvaluationResult), 1)
}

type panickingError struct{}

func (panickingError) Error() string { panic("message") }

func TestTheMessageOfAnErrorIsContent(t *testing.T) {
	for level, want := range map[content.Level]string{
		content.Off: "", content.Hash: "", content.Redacted: "no answer for [REDACTED:email]", content.Full: "no answer for jane@example.com",
	} {
		tr, captured := observed(t, genaitrace.WithContent(level))
		_, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		call.Fail(errors.New("no answer for jane@example.com"))
		_, call = tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		call.Fail(panickingError{})
		_, call = tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		call.Fail(context.Canceled)
		got := logsNamed(captured(), genaiconv.EventClientInferenceException)
		require.Len(t, got, 2, "a cancellation is none")
		assert.Equal(t, want, got[0].Attributes.String("exception.message"), level)
		assert.Equal(t, "_OTHER", got[0].Attributes.String("exception.type"))
		assert.Equal(t, "genaitrace_test.panickingError", got[1].Attributes.String("exception.type"))
	}
}

func TestAPanicIsAnExceptionWithoutMessage(t *testing.T) {
	tr, captured := observed(t, genaitrace.WithContent(content.Full))
	assert.Panics(t, func() {
		_, _ = genaitrace.Do(t.Context(), tr, genaitrace.Request{Model: "m"}, func(context.Context) (int, error) { panic("a prompt") })
	})
	got := captured()
	records := logsNamed(got, genaiconv.EventClientInferenceException)
	require.Len(t, records, 1)
	assert.Equal(t, "panic", records[0].Attributes.String("exception.type"))
	assertNowhere(t, got, "a prompt")
}

func TestACallGoesOnWithThePromptChain(t *testing.T) {
	rec := capture.NewRecorder()
	tp := rec.TracerProvider()
	tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(rec.MeterProvider()), genaitrace.WithLoggerProvider(rec.LoggerProvider()))
	span := func(ctx context.Context, name string) (context.Context, trace.Span) {
		return tp.Tracer("app").Start(ctx, name)
	}

	ctx, root := span(t.Context(), "request")
	_, search := span(ctx, "search")
	search.End()
	rewriteCtx, rewrite := span(ctx, "rewrite")
	rewriteCtx = propagation.ContextWithHop(rewriteCtx, "rewrite", search.SpanContext().SpanID())
	rewrite.End()

	chain, _ := propagation.PromptChainFromContext(rewriteCtx)
	chain.ContextHash = "b7c4e19f02ad5310"
	callCtx := propagation.ContextWithPromptChain(ctx, chain)
	callCtx = genaitrace.ContextWith(callCtx, genaitrace.PromptName("support"))
	callCtx, call := tr.StartCall(callCtx, genaitrace.Request{Model: "m"})
	infCtx, inf := tr.StartInference(callCtx, genaitrace.Request{Model: "m"})
	inf.End()
	call.End()
	root.End()

	after, ok := propagation.PromptChainFromContext(infCtx)
	require.True(t, ok)
	require.Len(t, after.Hops, 3)
	assert.Equal(t, []string{"rewrite", "support", "support"}, []string{after.Hops[0].Name, after.Hops[1].Name, after.Hops[2].Name})
	assert.Equal(t, call.Span().SpanContext().SpanID(), after.Hops[1].SpanID)
	assert.Equal(t, []trace.SpanID{rewrite.SpanContext().SpanID()}, after.Hops[1].Causes)
	back := after.Backtrace(inf.Span().SpanContext().SpanID())
	require.Len(t, back, 3, "from the inference to the rewriting")

	got, err := rec.Capture(t.Context())
	require.NoError(t, err)
	called := got.Named("chat m")[0]
	var linked []trace.SpanID
	for _, l := range called.Links {
		linked = append(linked, l.SpanID)
	}
	assert.ElementsMatch(t, []trace.SpanID{search.SpanContext().SpanID(), rewrite.SpanContext().SpanID()}, linked)
	names, _ := called.Attributes.Get(semconv.GenAIPromptChainKey)
	assert.Equal(t, []string{"rewrite"}, names.AsStringSlice())
	assert.Equal(t, "b7c4e19f02ad5310", called.Attributes.String(semconv.GenAIContextHashKey))

	generated := got.Named("inference.generate")[0]
	assert.Len(t, generated.Links, 1, "to what caused the call; the call is its parent")
	names, _ = generated.Attributes.Get(semconv.GenAIPromptChainKey)
	assert.Equal(t, []string{"rewrite", "support"}, names.AsStringSlice())

	for _, l := range logsNamed(got, semconv.EventGenAICompletion) {
		of := called
		if l.SpanID == generated.SpanID {
			of = generated
		}
		want, _ := of.Attributes.Get(semconv.GenAIPromptChainKey)
		have, _ := l.Attributes.Get(semconv.GenAIPromptChainKey)
		assert.Equal(t, want.AsStringSlice(), have.AsStringSlice())
	}
}

func TestWithoutAChainThereIsNone(t *testing.T) {
	tr, captured := observed(t)
	ctx, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
	call.End()
	_, ok := propagation.PromptChainFromContext(ctx)
	assert.False(t, ok)
	assert.Empty(t, captured().Spans[0].Links)
}

// Content that comes while the call ends is either on the record or nowhere.
func TestContentMayComeFromAnyGoroutine(t *testing.T) {
	tr, captured := observed(t, genaitrace.WithContent(content.Redacted), genaitrace.WithContentPlace(content.OnEventsAndSpans))
	messages := []genaiconv.Message{say(genaiconv.RoleUser, "hello")}
	for range 50 {
		ctx, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		_, inf := tr.StartInference(ctx, genaitrace.Request{Model: "m"})
		_, tool := tr.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
		var wait sync.WaitGroup
		for _, work := range []func(){
			func() { call.SetInput(genaitrace.Input{Messages: messages}) },
			func() { call.SetOutput(messages) },
			func() { call.SetPrompt(tr.DescribePrompt(genaitrace.PromptText{Messages: messages})) },
			func() { inf.SetInput(genaitrace.Input{Messages: messages}) },
			func() { inf.SetOutput(messages) },
			func() { tool.SetArguments("{}") },
			func() { tool.SetResult("noon") },
			func() { tr.RecordVerdict(ctx, genaitrace.Verdict{Type: semconv.GenAISignalTypeSafety}) },
			call.End, inf.End, tool.End,
		} {
			wait.Go(work)
		}
		wait.Wait()
	}
	got := captured()
	assert.Len(t, logsNamed(got, semconv.EventGenAICompletion), 100)
	assert.Len(t, got.Spans, 150)
}

// What another process says of the chain is no place for text either.
func TestAChainFromElsewhereBringsNoText(t *testing.T) {
	tr, captured := observed(t)
	ctx, gateway := tr.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /ask"})
	ctx = propagation.ContextWithHop(ctx, "jane@example.com asked")
	chain, _ := propagation.PromptChainFromContext(ctx)
	for hash, kept := range map[string]bool{
		"the prompt itself": false, "sha256:the prompt": false, "b7c4e19f02ad5310": true, "sha256:" + strings.Repeat("0a", 32): true,
	} {
		chain.ContextHash = hash
		_, call := tr.StartCall(propagation.ContextWithPromptChain(ctx, chain), genaitrace.Request{Model: "m"})
		call.End()
		spans := captured().Spans
		assert.Equal(t, kept, spans[len(spans)-1].Attributes.Has(semconv.GenAIContextHashKey), hash)
	}
	gateway.End()
	assertNowhere(t, captured(), "jane@example.com", "the prompt")
}

// The stack of a failure is where it happened, without arguments, where it is asked for.
func TestALoggedExceptionHasAStackOnRequest(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var options []genaitrace.Option
		if asked {
			options = append(options, genaitrace.WithStackTraces())
		}
		tr, captured := observed(t, options...)
		assert.Panics(t, func() {
			_, _ = genaitrace.Do(t.Context(), tr, genaitrace.Request{Model: "m"}, failInside)
		})
		records := logsNamed(captured(), genaiconv.EventClientInferenceException)
		require.Len(t, records, 1)
		stack := records[0].Attributes.String("exception.stacktrace")
		if !asked {
			assert.Empty(t, stack)
			continue
		}
		assert.True(t, strings.HasPrefix(stack, "github.com/genaitrace/otelgenai/genaitrace_test.failInside logs_test.go:"), stack)
		assert.LessOrEqual(t, len(stack), 1000)
		assert.NotContains(t, stack, "0x")
	}
}

func failInside(context.Context) (int, error) { panic("a prompt") }
