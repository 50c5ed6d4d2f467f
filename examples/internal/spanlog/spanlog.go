// Package spanlog keeps the spans of a program in memory, so that it can draw the
// traces of its few requests.
package spanlog

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/semconv"
)

// A Recorder is an exporter of spans that keeps them all.
type Recorder struct {
	mu    sync.Mutex
	spans []waterfall.Span
}

// ExportSpans keeps spans.
func (r *Recorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range spans {
		r.spans = append(r.spans, convert(s))
	}
	return nil
}

// Shutdown does nothing: what was kept can still be drawn.
func (r *Recorder) Shutdown(context.Context) error { return nil }

// Ended returns the spans that have ended so far.
func (r *Recorder) Ended() []waterfall.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans[:len(r.spans):len(r.spans)]
}

// convert makes a span of the SDK ready for the waterfall.
func convert(s sdktrace.ReadOnlySpan) waterfall.Span {
	out := waterfall.Span{
		TraceID:    s.SpanContext().TraceID().String(),
		SpanID:     s.SpanContext().SpanID().String(),
		Name:       s.Name(),
		Kind:       strings.ToUpper(s.SpanKind().String()),
		Start:      s.StartTime(),
		End:        s.EndTime(),
		Attributes: make(map[string]any),
	}
	if s.Parent().IsValid() {
		out.ParentID = s.Parent().SpanID().String()
	}
	for _, kv := range s.Attributes() {
		out.Attributes[string(kv.Key)] = kv.Value.AsInterface()
	}
	out.Role, _ = out.Attributes[string(semconv.GenAISpanRoleKey)].(string)
	for _, e := range s.Events() {
		out.Events = append(out.Events, waterfall.Event{Name: e.Name, Time: e.Time})
	}
	if s.Status().Code == codes.Error {
		errorType, _ := out.Attributes[string(otelsemconv.ErrorTypeKey)].(string)
		out.Error = cmp.Or(s.Status().Description, errorType, "error")
	}
	return out
}
