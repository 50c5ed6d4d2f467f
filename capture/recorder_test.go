package capture_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/capture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func captured(t *testing.T, r *capture.Recorder) *capture.Capture {
	t.Helper()
	c, err := r.Capture(t.Context())
	require.NoError(t, err)
	return c
}

// only returns the only span of that name.
func only(t *testing.T, c *capture.Capture, name string) *capture.Span {
	t.Helper()
	spans := c.Named(name)
	require.Len(t, spans, 1, "spans named %q", name)
	return spans[0]
}

func TestASpanIsCapturedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capture.NewRecorder(capture.WithResource(resource.NewSchemaless(attribute.String("service.name", "gateway"))))
		tracer := r.TracerProvider().Tracer("tests", trace.WithInstrumentationVersion("v1"),
			trace.WithInstrumentationAttributes(attribute.Bool("x", true)), trace.WithSchemaURL("https://example.test/schema"))
		state, err := trace.ParseTraceState("vendor=1")
		require.NoError(t, err)
		remote := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
		})
		other := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{3}, SpanID: trace.SpanID{4}, TraceFlags: trace.FlagsSampled})

		begin := time.Now()
		ctx, root := tracer.Start(trace.ContextWithSpanContext(t.Context(), remote), "root",
			trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.Int("n", 1), attribute.StringSlice("list", []string{"a"})),
			trace.WithLinks(trace.Link{SpanContext: other, Attributes: []attribute.KeyValue{attribute.Bool("why", true)}}))
		time.Sleep(time.Second)
		root.AddEvent("first_token", trace.WithAttributes(attribute.Float64("ms", 1.5)))
		_, child := tracer.Start(ctx, "child")
		child.End()
		root.SetStatus(codes.Error, "device lost")
		time.Sleep(time.Second)
		root.End()

		c := captured(t, r)
		require.Len(t, c.Spans, 2)
		s := c.Spans[0]
		assert.Equal(t, "root", s.Name, "spans come in the order of their start")
		assert.Equal(t, trace.TraceID{1}, s.TraceID)
		assert.True(t, s.SpanID.IsValid())
		assert.Equal(t, trace.SpanID{2}, s.ParentID)
		assert.Equal(t, capture.OriginRemote, s.ParentOrigin)
		assert.Equal(t, "vendor=1", s.TraceState)
		assert.Equal(t, trace.FlagsSampled, s.Flags)
		assert.Equal(t, trace.SpanKindServer, s.Kind)
		assert.Equal(t, begin, s.Start)
		assert.Equal(t, 2*time.Second, s.Duration())
		assert.Equal(t, codes.Error, s.Status)
		assert.Equal(t, "device lost", s.StatusMessage)
		assert.Equal(t, capture.Attributes{attribute.Int("n", 1), attribute.StringSlice("list", []string{"a"})}, s.Attributes)
		assert.Equal(t, []capture.Event{{
			Name: "first_token", Time: begin.Add(time.Second), Attributes: capture.Attributes{attribute.Float64("ms", 1.5)},
		}}, s.Events)
		assert.Equal(t, []capture.Link{{
			TraceID: trace.TraceID{3}, SpanID: trace.SpanID{4}, Flags: trace.FlagsSampled,
			Attributes: capture.Attributes{attribute.Bool("why", true)},
		}}, s.Links)
		assert.Equal(t, "gateway", s.Resource.Service())
		assert.Equal(t, &capture.Scope{
			Name: "tests", Version: "v1", SchemaURL: "https://example.test/schema",
			Attributes: capture.Attributes{attribute.Bool("x", true)},
		}, s.Scope)

		below := c.Spans[1]
		assert.Equal(t, s.SpanID, below.ParentID)
		assert.Equal(t, capture.OriginLocal, below.ParentOrigin)
		assert.Same(t, s.Resource, below.Resource)
		assert.Same(t, s.Scope, below.Scope)
	})
}

func TestARootHasNoParentAndNoOrigin(t *testing.T) {
	r := capture.NewRecorder()
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "root")
	span.End()
	s := only(t, captured(t, r), "root")
	assert.False(t, s.ParentID.IsValid())
	assert.Equal(t, capture.OriginUnknown, s.ParentOrigin)
}

func TestWhatTheLimitsTookAwayIsCounted(t *testing.T) {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeCountLimit, limits.EventCountLimit, limits.LinkCountLimit = 1, 1, 1
	limits.AttributePerEventCountLimit, limits.AttributePerLinkCountLimit = 1, 1
	r := capture.NewRecorder(capture.WithSpanLimits(limits))
	three := trace.WithAttributes(attribute.Int("a", 1), attribute.Int("b", 2), attribute.Int("c", 3))
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s", three)
	for range 4 {
		span.AddEvent("e", three)
	}
	for i := range byte(5) {
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{i + 1}})
		span.AddLink(trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{attribute.Int("a", 1), attribute.Int("b", 2)}})
	}
	span.End()
	s := only(t, captured(t, r), "s")
	assert.Equal(t, []int{2, 3, 4}, []int{s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks})
	assert.Equal(t, 2, s.Events[0].DroppedAttributes)
	assert.Equal(t, 1, s.Links[0].DroppedAttributes)
}

func TestASpanThatHasNotEndedIsCaptured(t *testing.T) {
	r := capture.NewRecorder()
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "open")
	span.SetAttributes(attribute.Bool("set", true))
	before := captured(t, r)
	span.SetAttributes(attribute.Bool("later", true))
	span.End()
	after := captured(t, r)

	s := only(t, before, "open")
	assert.False(t, s.Ended())
	assert.Zero(t, s.Duration())
	assert.Equal(t, capture.Attributes{attribute.Bool("set", true)}, s.Attributes, "a capture does not change")
	assert.True(t, s.Source.Known())
	assert.True(t, only(t, after, "open").Ended())
}

func TestWhoeverChangesACaptureChangesThatOneAlone(t *testing.T) {
	r := capture.NewRecorder()
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s", trace.WithAttributes(attribute.Bool("a", true)))
	span.End()
	var record log.Record
	record.AddAttributes(attribute.Bool("a", true))
	r.LoggerProvider().Logger("").Emit(t.Context(), record)

	first := captured(t, r)
	first.Spans[0].Name, first.Spans[0].Attributes[0] = "changed", attribute.Bool("b", true)
	first.Logs[0].EventName, first.Logs[0].Attributes[0] = "changed", attribute.Bool("b", true)
	second := captured(t, r)
	assert.Equal(t, "s", second.Spans[0].Name)
	assert.True(t, second.Spans[0].Attributes.Has("a"))
	assert.Empty(t, second.Logs[0].EventName)
	assert.True(t, second.Logs[0].Attributes.Has("a"))
}

func TestSpansThatAreSampledOutDoNotAppear(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		r := capture.NewRecorder(capture.WithSampler(sdktrace.NeverSample()))
		_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
		span.End()
		assert.Empty(t, captured(t, r).Spans)
	})
	t.Run("recorded only", func(t *testing.T) {
		r := capture.NewRecorder(capture.WithSampler(sdktrace.AlwaysRecord(sdktrace.NeverSample())), capture.WithMax(1))
		for range 3 {
			_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
			assert.Empty(t, captured(t, r).Spans)
			span.End()
		}
		c := captured(t, r)
		assert.Empty(t, c.Spans)
		assert.Zero(t, c.Dropped, "and take no room")
	})
	t.Run("recorded only, and asked for", func(t *testing.T) {
		r := capture.NewRecorder(capture.WithSampler(sdktrace.AlwaysRecord(sdktrace.NeverSample())), capture.WithMax(1), capture.WithRecordOnly())
		for range 3 {
			_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
			span.End()
		}
		c := captured(t, r)
		assert.Len(t, c.Spans, 1)
		assert.Equal(t, 2, c.Dropped)
	})
	t.Run("the environment does not sample", func(t *testing.T) {
		t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
		r := capture.NewRecorder()
		_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
		span.End()
		assert.Len(t, captured(t, r).Spans, 1)
	})
}

func TestWhatIsBeyondTheBoundIsCounted(t *testing.T) {
	r := capture.NewRecorder(capture.WithMax(2))
	tracer := r.TracerProvider().Tracer("")
	var spans []trace.Span
	for i := range 5 {
		_, span := tracer.Start(t.Context(), fmt.Sprint(i))
		spans = append(spans, span)
	}
	for _, span := range spans {
		span.End()
	}
	for range 3 {
		r.LoggerProvider().Logger("").Emit(t.Context(), log.Record{})
	}
	c := captured(t, r)
	assert.Len(t, c.Spans, 2)
	assert.Len(t, c.Logs, 2)
	assert.Equal(t, 3+1, c.Dropped)
}

func TestASpanThatWasRefusedDoesNotComeBackWhenItEnds(t *testing.T) {
	r := capture.NewRecorder(capture.WithMax(1))
	tracer := r.TracerProvider().Tracer("")
	_, kept := tracer.Start(t.Context(), "kept")
	_, refused := tracer.Start(t.Context(), "refused")
	kept.End()
	r.Reset()
	refused.End()
	c := captured(t, r)
	assert.Empty(t, c.Spans)
	assert.Zero(t, c.Dropped)
}

func TestResetForgets(t *testing.T) {
	r := capture.NewRecorder()
	tracer := r.TracerProvider().Tracer("")
	_, open := tracer.Start(t.Context(), "open")
	_, ended := tracer.Start(t.Context(), "ended")
	ended.End()
	r.LoggerProvider().Logger("").Emit(t.Context(), log.Record{})
	r.Reset()
	assert.Empty(t, captured(t, r).Spans)
	open.End()
	_, next := tracer.Start(t.Context(), "next")
	next.End()
	c := captured(t, r)
	require.Len(t, c.Spans, 1, "a span that was open is forgotten for good")
	assert.Equal(t, "next", c.Spans[0].Name)
	assert.Empty(t, c.Logs)
}

// lateProcessor passes on ended spans alone, as samplers at the tail do.
type lateProcessor struct{ sdktrace.SpanProcessor }

func (lateProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func TestAProcessorInBetweenMayPassOnEndedSpansAlone(t *testing.T) {
	r := capture.NewRecorder(capture.WithMax(1))
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(lateProcessor{r.SpanProcessor()}))
	for range 2 {
		_, span := tp.Tracer("").Start(t.Context(), "late")
		span.End()
	}
	c := captured(t, r)
	s := only(t, c, "late")
	assert.True(t, s.Ended())
	assert.False(t, s.Source.Known())
	assert.Equal(t, 1, c.Dropped)
}

func TestSeveralProvidersShareARecorder(t *testing.T) {
	r := capture.NewRecorder()
	ctx := t.Context()
	for _, service := range []string{"gateway", "engine"} {
		about := resource.NewSchemaless(attribute.String("service.name", service))
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.SpanProcessor()), sdktrace.WithResource(about))
		mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.MetricReader()), sdkmetric.WithResource(about))
		lp := sdklog.NewLoggerProvider(sdklog.WithProcessor(r.LogProcessor()), sdklog.WithResource(about))
		var span trace.Span
		ctx, span = tp.Tracer("").Start(ctx, service)
		defer span.End()
		counter, err := mp.Meter("").Int64Counter("requests")
		require.NoError(t, err)
		counter.Add(ctx, 1)
		lp.Logger("").Emit(ctx, log.Record{})
		require.NoError(t, lp.Shutdown(ctx))
	}
	c := captured(t, r)
	require.Len(t, c.Traces(), 1)
	require.Len(t, c.Spans, 2)
	require.Len(t, c.Metric("requests"), 2)
	require.Len(t, c.Logs, 2)
	for i, s := range c.Spans {
		assert.Same(t, s.Resource, c.Metrics[i].Resource)
		assert.Same(t, s.Resource, c.Logs[i].Resource)
	}
	assert.NotSame(t, c.Spans[0].Resource, c.Spans[1].Resource)
}

func TestALogRecordIsCapturedWhole(t *testing.T) {
	r := capture.NewRecorder()
	ctx, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
	defer span.End()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var record log.Record
	record.SetTimestamp(at)
	record.SetObservedTimestamp(at.Add(time.Second))
	record.SetSeverity(log.SeverityWarn)
	record.SetSeverityText("warning")
	record.SetEventName("genai.stop")
	record.SetBody(attribute.MapValue(attribute.String("reason", "length")))
	record.AddAttributes(attribute.String("a", "b"))
	r.LoggerProvider().Logger("tests").Emit(ctx, record)

	c := captured(t, r)
	require.Len(t, c.Logs, 1)
	got := *c.Logs[0]
	assert.Equal(t, "tests", got.Scope.Name)
	assert.Same(t, c.Spans[0].Resource, got.Resource)
	got.Scope, got.Resource = nil, nil
	assert.Equal(t, capture.Log{
		Time: at, Observed: at.Add(time.Second), Severity: 13, SeverityText: "warning", EventName: "genai.stop",
		Body:       attribute.MapValue(attribute.String("reason", "length")),
		Attributes: capture.Attributes{attribute.String("a", "b")},
		TraceID:    c.Spans[0].TraceID, SpanID: c.Spans[0].SpanID, Flags: trace.FlagsSampled,
	}, got)
}

func TestAfterAShutdownEverythingCanStillBeCaptured(t *testing.T) {
	r := capture.NewRecorder()
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
	span.End()
	counter, err := r.MeterProvider().Meter("").Int64Counter("requests")
	require.NoError(t, err)
	counter.Add(t.Context(), 3)
	r.LoggerProvider().Logger("").Emit(t.Context(), log.Record{})

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Shutdown(cancelled), context.Canceled)
	_, late := r.TracerProvider().Tracer("").Start(t.Context(), "late")
	late.End()
	counter.Add(t.Context(), 1)
	for range 2 {
		c := captured(t, r)
		assert.Len(t, c.Spans, 1)
		assert.Len(t, c.Logs, 1)
		require.Len(t, c.Metrics, 1)
		assert.InDelta(t, 3, c.Metrics[0].Points[0].Value, 0)
	}
}

func TestAFailingCallbackIsReportedAndTheRestCaptured(t *testing.T) {
	r := capture.NewRecorder()
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
	span.End()
	failed := errors.New("no device")
	_, err := r.MeterProvider().Meter("").Int64ObservableGauge("gpu",
		metricCallback(func() error { return failed }))
	require.NoError(t, err)
	counter, err := r.MeterProvider().Meter("").Int64Counter("requests")
	require.NoError(t, err)
	counter.Add(t.Context(), 1)

	c, err := r.Capture(t.Context())
	require.ErrorIs(t, err, failed)
	assert.Len(t, c.Spans, 1)
	assert.Len(t, c.Metric("requests"), 1)
}

func TestACallbackMayStartSpans(t *testing.T) {
	r := capture.NewRecorder()
	_, err := r.MeterProvider().Meter("").Int64ObservableGauge("gpu", metricCallback(func() error {
		_, span := r.TracerProvider().Tracer("").Start(t.Context(), "callback")
		span.End()
		return nil
	}))
	require.NoError(t, err)
	assert.Len(t, captured(t, r).Spans, 1)
}

// sameIDs gives every span the same identifiers.
type sameIDs struct{}

func (sameIDs) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	return trace.TraceID{1}, trace.SpanID{1}
}
func (sameIDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return trace.SpanID{1} }

func TestSpansWithOneIdentifierAreToldApart(t *testing.T) {
	r := capture.NewRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(sameIDs{}), sdktrace.WithSpanProcessor(r.SpanProcessor()))
	_, a := tp.Tracer("").Start(t.Context(), "a")
	_, b := tp.Tracer("").Start(t.Context(), "b")
	b.End()
	c := captured(t, r)
	assert.False(t, only(t, c, "a").Ended())
	assert.True(t, only(t, c, "b").Ended())
	a.End()
	assert.True(t, only(t, captured(t, r), "a").Ended())
}

func TestARecorderIsUsedConcurrently(t *testing.T) {
	r := capture.NewRecorder()
	tracer := r.TracerProvider().Tracer("")
	counter, err := r.MeterProvider().Meter("").Int64Counter("requests")
	require.NoError(t, err)
	const workers, each = 8, 50
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				ctx, span := tracer.Start(t.Context(), "s", trace.WithAttributes(attribute.Int("n", 1)))
				span.SetAttributes(attribute.Int("n", 2), attribute.Int("m", 3))
				counter.Add(ctx, 1)
				r.LoggerProvider().Logger("").Emit(ctx, log.Record{})
				span.AddEvent("e")
				span.End()
			}
		})
	}
	for range 20 {
		_, err := r.Capture(t.Context())
		require.NoError(t, err)
	}
	wg.Wait()
	c := captured(t, r)
	assert.Len(t, c.Spans, workers*each)
	assert.Len(t, c.Logs, workers*each)
	assert.InDelta(t, workers*each, c.Metric("requests")[0].Points[0].Value, 0)
}
