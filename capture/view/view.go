package view

import (
	"cmp"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

const (
	errorType  = "error.type"
	firstToken = "first_token"
)

// Spans makes spans ready to be drawn, in their order. Packed timelines are decoded;
// one that cannot be read, or whose beginning no event and no attribute tells, is
// left out and stays an attribute.
func Spans(spans []*capture.Span) []waterfall.Span {
	out := make([]waterfall.Span, 0, len(spans))
	for _, s := range spans {
		out = append(out, span(s))
	}
	return out
}

func span(s *capture.Span) waterfall.Span {
	to := waterfall.Span{
		TraceID:    s.TraceID.String(),
		SpanID:     s.SpanID.String(),
		Name:       s.Name,
		Kind:       strings.ToUpper(s.Kind.String()),
		Start:      s.Start,
		End:        s.End,
		Attributes: make(map[string]any, len(s.Attributes)),
	}
	if s.ParentID.IsValid() {
		to.ParentID = s.ParentID.String()
	}
	for _, kv := range s.Attributes {
		to.Attributes[string(kv.Key)] = kv.Value.AsInterface()
	}
	to.Role = text(to, semconv.GenAISpanRoleKey)
	for _, e := range s.Events {
		to.Events = append(to.Events, waterfall.Event{Name: e.Name, Time: e.Time})
	}
	if s.Status == codes.Error {
		to.Error = cmp.Or(s.StatusMessage, text(to, errorType), "error")
	}
	to.Timeline = timeline(to)
	return to
}

// timeline reads when tokens came, or at a caller chunks.
func timeline(s waterfall.Span) *waterfall.Timeline {
	if packed := text(s, semconv.GenAITokenTimelineKey); packed != "" {
		for _, e := range s.Events {
			if e.Name == firstToken {
				return decode(packed, "tokens", e.Time)
			}
		}
	}
	if packed := text(s, semconv.GenAIChunkTimelineKey); packed != "" && !s.Start.IsZero() {
		if seconds, ok := number(s, genaiconv.ResponseTimeToFirstChunkKey); ok {
			return decode(packed, "chunks", s.Start.Add(fromSeconds(seconds)))
		}
		if ms, ok := number(s, semconv.AIResponseDelayMsKey); ok {
			return decode(packed, "chunks", s.Start.Add(fromSeconds(ms/1000)))
		}
	}
	return nil
}

func decode(packed, unit string, first time.Time) *waterfall.Timeline {
	line, err := genaitrace.DecodeTimeline(packed)
	if err != nil || first.IsZero() {
		return nil
	}
	return &waterfall.Timeline{Unit: unit, First: first, Gaps: line.Gaps, Stride: line.Stride}
}

func fromSeconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

func text(s waterfall.Span, key attribute.Key) string {
	value, _ := s.Attributes[string(key)].(string)
	return value
}

// number returns an attribute that can be a time after the start of a request: a
// finite one of 0 to a day, in seconds.
func number(s waterfall.Span, key attribute.Key) (float64, bool) {
	const day = 24 * 60 * 60
	f, ok := s.Attributes[string(key)].(float64)
	return f, ok && f >= 0 && f <= day*1000
}
