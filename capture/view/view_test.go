package view_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/capture/view"
	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// record returns the spans of a call of 30 chunks to an engine of 30 tokens, one each
// 20 ms after a first of 100 ms.
func record(t *testing.T, fail error) []waterfall.Span {
	t.Helper()
	rec := capture.NewRecorder()
	tr := genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()))
	ctx, call := tr.StartCall(context.Background(), genaitrace.Request{Model: "m", Stream: true})
	ctx, inf := tr.StartInference(ctx, genaitrace.Request{Model: "m", Stream: true})
	_, decode := inf.StartDecode(ctx)
	time.Sleep(100 * time.Millisecond)
	for range 30 {
		decode.Token()
		call.Chunk(genaitrace.Visible)
		time.Sleep(20 * time.Millisecond)
	}
	decode.End()
	inf.Fail(fail)
	inf.End()
	call.End()
	got, err := rec.Capture(context.Background())
	require.NoError(t, err)
	return view.Spans(got.Spans)
}

func TestSpansKeepWhatIsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := record(t, errors.New("device lost"))
		byRole := make(map[string]waterfall.Span)
		for _, s := range spans {
			byRole[s.Role+" "+s.Kind] = s
		}
		call, inf, decode := byRole["inference CLIENT"], byRole["inference INTERNAL"], byRole["decode INTERNAL"]
		assert.Equal(t, "chat m", call.Name)
		assert.Empty(t, call.ParentID)
		assert.Equal(t, call.SpanID, inf.ParentID)
		assert.Equal(t, inf.SpanID, decode.ParentID)
		assert.Equal(t, "_OTHER", inf.Error, "the type of the error, as no message is kept")
		assert.Empty(t, call.Error)
		assert.Equal(t, 700*time.Millisecond, decode.End.Sub(decode.Start))
		assert.InDelta(t, 100.0, inf.Attributes["llm.ttft_ms"], 1e-6)

		for unit, s := range map[string]waterfall.Span{"tokens": decode, "chunks": call} {
			require.NotNil(t, s.Timeline, unit)
			assert.Equal(t, unit, s.Timeline.Unit)
			assert.Equal(t, 100*time.Millisecond, s.Timeline.First.Sub(call.Start), unit)
			require.Len(t, s.Timeline.Gaps, 29, unit)
			for _, gap := range s.Timeline.Gaps {
				assert.InEpsilon(t, 20*time.Millisecond, gap, 0.03, unit)
			}
		}
	})
}

// A timeline that says nothing true is none.
func TestATimelineThatCannotBePlaced(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	packed := func() string {
		var text string
		synctest.Test(t, func(t *testing.T) {
			for _, s := range record(t, nil) {
				if found, ok := s.Attributes[string(semconv.GenAITokenTimelineKey)].(string); ok {
					text = found
				}
			}
		})
		return text
	}()
	require.NotEmpty(t, packed)
	first := capture.Event{Name: "first_token", Time: start.Add(time.Millisecond)}
	for name, s := range map[string]*capture.Span{
		"no event":            {Attributes: capture.Attributes{semconv.GenAITokenTimeline(packed)}},
		"an event of no time": {Attributes: capture.Attributes{semconv.GenAITokenTimeline(packed)}, Events: []capture.Event{{Name: "first_token"}}},
		"not packed":          {Attributes: capture.Attributes{semconv.GenAITokenTimeline("???")}, Events: []capture.Event{first}},
		"no first chunk":      {Attributes: capture.Attributes{semconv.GenAIChunkTimeline(packed)}},
		"negative":            {Attributes: capture.Attributes{semconv.GenAIChunkTimeline(packed), semconv.AIResponseDelayMs(-1)}},
		"no start":            {Attributes: capture.Attributes{semconv.GenAIChunkTimeline(packed), semconv.AIResponseDelayMs(1)}},
		"next century":        {Attributes: capture.Attributes{semconv.GenAIChunkTimeline(packed), semconv.AIResponseDelayMs(1e15)}},
		"of another type":     {Attributes: capture.Attributes{attribute.Int("genai.token.timeline", 1)}, Events: []capture.Event{first}},
	} {
		s.SpanID = trace.SpanID{1}
		if name != "no start" {
			s.Start = start
		}
		got := view.Spans([]*capture.Span{s})
		require.Len(t, got, 1)
		assert.Nil(t, got[0].Timeline, name)
	}
}

func TestACaptureAsWaterfallAndPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := record(t, nil)
		var text, page bytes.Buffer
		require.NoError(t, waterfall.Render(&text, spans, waterfall.Options{}))
		require.NoError(t, waterfall.RenderPage(&page, spans, waterfall.PageOptions{}))
		assert.Contains(t, text.String(), "inference.decode")
		assert.Contains(t, page.String(), "When the tokens of inference.decode came")
		assert.Contains(t, page.String(), "When the chunks of chat m came")
	})
}
