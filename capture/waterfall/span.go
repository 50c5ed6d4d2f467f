package waterfall

import (
	"fmt"
	"math"
	"time"
)

// Span is one span of a trace, in a form that any source can fill.
type Span struct {
	// TraceID, SpanID and ParentID are opaque: only equality matters. A span
	// without a parent has an empty ParentID, or one of zeros only.
	TraceID, SpanID, ParentID string

	Name string
	// Kind is the span kind as it is to be printed, such as SERVER.
	Kind string
	// Role is the genai.span.role. When empty, the attribute of that name counts.
	Role string

	// Start and End bound the span. A zero End means that the span has not ended.
	Start, End time.Time

	// Error is the description of a failed span; empty means that it did not fail.
	Error string

	Events []Event
	// Timeline is when its tokens came, or at a caller its chunks; nil where that is
	// not known. The page draws it.
	Timeline *Timeline
	// Attributes holds the span's attributes. Numbers may have any Go integer or
	// float type.
	Attributes map[string]any
}

// Event is one event of a span.
type Event struct {
	Name string
	Time time.Time
}

// Timeline holds the times of a stream, as genaitrace.DecodeTimeline reads them from
// a span.
type Timeline struct {
	// Unit is what came: tokens or chunks.
	Unit string
	// First is when the first one came.
	First time.Time
	// Gaps holds the times from one to the next, or where Stride is above 1 from one
	// group of that many to the next.
	Gaps   []time.Duration
	Stride int
}

// firstToken is the event that the bar of a span marks.
const firstToken = "first_token"

// roleInference is the role of one call to a model, at either of its ends.
const roleInference = "inference"

// The attributes that the facts are read from. Where there are several, the
// first one that the span carries counts.
var (
	keyRole       = []string{"genai.span.role"}
	keyHTTPStatus = []string{"http.response.status_code"}
	keyRPCStatus  = []string{"rpc.response.status_code"}
	keyTTFT       = []string{"llm.ttft_ms"}
	keyLastToken  = []string{"genai.last_token_ms"}
	keyTokenCount = []string{"genai.token.count"}
	keyInput      = []string{"gen_ai.usage.input_tokens", "ai.tokens.input"}
	keyOutput     = []string{"gen_ai.usage.output_tokens", "ai.tokens.output"}
	keyCached     = []string{"gen_ai.usage.cache_read.input_tokens", "ai.tokens.cached"}
)

// ttftParts are the parts of the time to first token, in the order in which a
// request meets them.
var ttftParts = []struct{ name, key string }{
	{"queue", "genai.ttft.queue_ms"},
	{"load", "genai.ttft.load_ms"},
	{"tokenize", "genai.ttft.tokenize_ms"},
	{"schedule", "genai.ttft.schedule_ms"},
	{"prefill", "genai.ttft.prefill_ms"},
	{"emit", "genai.ttft.emit_ms"},
	{"preempted", "genai.ttft.preempted_ms"},
	{"unattributed", "genai.ttft.unattributed_ms"},
}

// number returns the first of keys that holds a finite number of zero or more.
func (s *Span) number(keys ...string) (float64, bool) {
	for _, key := range keys {
		f, ok := toFloat(s.Attributes[key])
		if ok && f >= 0 && !math.IsInf(f, 1) {
			return f, true
		}
	}
	return 0, false
}

func (s *Span) role() string {
	if s.Role != "" {
		return s.Role
	}
	role, _ := s.Attributes[keyRole[0]].(string)
	return role
}

// refusal is the HTTP or gRPC status of a call that did not go well. A span of a
// server need not count that as its own error.
func (s *Span) refusal() string {
	if code, ok := s.number(keyHTTPStatus...); ok && code >= 400 {
		return fmt.Sprintf("%.0f", code)
	}
	if code, _ := s.Attributes[keyRPCStatus[0]].(string); code != "OK" {
		return code
	}
	return ""
}

func (s *Span) firstToken() (time.Time, bool) {
	for _, e := range s.Events {
		if e.Name == firstToken && !e.Time.IsZero() {
			return e.Time, true
		}
	}
	return time.Time{}, false
}

func toFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case float32:
		return float64(n), true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case int32:
		return float64(n), true
	case int16:
		return float64(n), true
	case int8:
		return float64(n), true
	case uint:
		return float64(n), true
	case uint64:
		return float64(n), true
	case uint32:
		return float64(n), true
	case uint16:
		return float64(n), true
	case uint8:
		return float64(n), true
	default:
		return 0, false
	}
}
