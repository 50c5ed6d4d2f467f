package genaitrace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// toolContent is what a tool was given and gave back, as it may be written.
type toolContent struct {
	place             content.Place
	arguments, result content.Value
}

// SetArguments notes what the tool is given, as far as the content policy lets it
// ([WithContent]); by default it is not read. It is any value that JSON has a form for,
// or a string of JSON, as models give it. On events it goes on genai.tool_call.
func (t Tool) SetArguments(arguments any) {
	t.setContent(arguments, func(c *toolContent) *content.Value { return &c.arguments })
}

// SetResult notes what the tool gave back; see [Tool.SetArguments].
func (t Tool) SetResult(result any) {
	t.setContent(result, func(c *toolContent) *content.Value { return &c.result })
}

// KeepsContent reports whether SetArguments and SetResult would keep something; see
// [Call.KeepsContent].
func (t Tool) KeepsContent() bool {
	if t.Operation == nil || t.t == nil {
		return false
	}
	_, place := t.t.contentFor(t.ctx, t.span, toolCallEvent)
	return place != 0
}

func (t Tool) setContent(v any, of func(*toolContent) *content.Value) {
	if t.Operation == nil || t.t == nil {
		return
	}
	level, place := t.t.contentFor(t.ctx, t.span, toolCallEvent)
	if place == 0 {
		return
	}
	value, err := t.t.content.Any(level, v)
	value = t.t.sanitized(t.ctx, value, err)
	if !value.Present() {
		return
	}
	t.learn(func() {
		if t.end.content == nil {
			t.end.content = &toolContent{}
		}
		t.end.content.place |= place
		*of(t.end.content) = value
	})
}

// appendTo appends the content that has this place.
func (c *toolContent) appendTo(attrs []attribute.KeyValue, place content.Place) []attribute.KeyValue {
	if c == nil || c.place&place == 0 {
		return attrs
	}
	for _, kept := range [...]struct {
		key   attribute.Key
		value content.Value
	}{{genaiconv.ToolCallArgumentsKey, c.arguments}, {genaiconv.ToolCallResultKey, c.result}} {
		switch {
		case !kept.value.Present():
		case place == content.OnSpans:
			attrs = append(attrs, kept.key.String(kept.value.JSON()))
		default:
			attrs = append(attrs, attribute.KeyValue{Key: kept.key, Value: kept.value.Structured()})
		}
	}
	if c.arguments.Truncated || c.result.Truncated {
		attrs = append(attrs, semconv.GenAIContentTruncated(true))
	}
	return attrs
}

// log writes the record of a call whose content goes on events.
func (e *toolEnd) log(o *Operation, end operationEnd) {
	if e.content == nil || e.content.place&content.OnEvents == 0 || !o.t.logs.enabled(o.ctx, toolCallEvent) {
		return
	}
	attrs := append(make([]attribute.KeyValue, 0, 9), genaiconv.OperationName(genaiconv.OperationNameExecuteTool))
	for _, known := range [...]attribute.KeyValue{
		genaiconv.ToolName(e.series.values[0]), genaiconv.ToolCallID(e.callID), genaiconv.ToolType(e.series.values[1]),
		genaiconv.AgentName(e.series.values[2]), semconv.GenAIToolStatus(e.status), otelsemconv.ErrorTypeKey.String(end.errType),
	} {
		if known.Value.AsString() != "" {
			attrs = append(attrs, known)
		}
	}
	attrs = e.content.appendTo(o.t.words.Rewrite(attrs), content.OnEvents)
	o.t.logs.emit(o.ctx, logEntry{toolCallEvent, o.base.Add(time.Duration(end.took)), attrs})
}

// SetQuery notes what was searched for: its keyed hash where the Tracer has a key
// ([WithHashKey]), and its text on the span where the content policy puts content
// there. The conventions have no event for a search.
func (r Retrieval) SetQuery(query string) {
	if r.Operation == nil || r.t == nil {
		return
	}
	if hash := r.t.Hash(query); hash != "" {
		r.note(semconv.GenAIRetrieverQueryHash(hash))
	}
	r.noteText(genaiconv.RetrievalQueryTextKey, query)
}

// SetQuery notes what a memory was searched for, on the span where the content policy
// puts content there: the conventions have no event for it.
func (m Memory) SetQuery(query string) { m.noteText(genaiconv.MemoryQueryTextKey, query) }

// SetContents notes the records that were read or written, on the span where the content
// policy puts content there. It is any value that JSON has a form for, most often a list.
// How many there are says [Memory.SetRecords].
func (m Memory) SetContents(records any) {
	if m.Operation == nil || m.t == nil {
		return
	}
	level, place := m.t.contentFor(m.ctx, m.span, nil)
	if place&content.OnSpans == 0 {
		return
	}
	value, err := m.t.content.Any(level, records)
	if value = m.t.sanitized(m.ctx, value, err); !value.Present() {
		return
	}
	m.note(genaiconv.MemoryRecordsKey.String(value.JSON()))
	if value.Truncated {
		m.note(semconv.GenAIContentTruncated(true))
	}
}

// SetDescription notes what the model is told that the tool does, on the span where the
// content policy puts content there.
func (t Tool) SetDescription(text string) { t.noteText(genaiconv.ToolDescriptionKey, text) }

// noteText notes content that no event carries, as far as the content policy lets it.
func (o *Operation) noteText(key attribute.Key, text string) {
	if o == nil || o.t == nil {
		return
	}
	level, place := o.t.contentFor(o.ctx, o.span, nil)
	if place&content.OnSpans == 0 {
		return
	}
	text, err := o.t.content.Text(level, text)
	if err != nil {
		o.t.metrics.fault(o.ctx, semconv.GenAIFaultContent, err)
	}
	if text != "" {
		o.note(key.String(text))
	}
}

// SetInput notes what the agent is given: its instructions, the messages of the run and
// the tools that it may use, on the span where the content policy puts content there. The
// conventions have no event for it; that of each model call is [Call.SetInput].
func (r AgentRun) SetInput(in Input) {
	r.setContent(func(level content.Level) contentNotes { return r.t.sanitizeInput(r.ctx, level, &in) })
}

// SetOutput notes the messages of the run's answer; see [AgentRun.SetInput].
func (r AgentRun) SetOutput(messages []genaiconv.Message) {
	r.setContent(func(level content.Level) (notes contentNotes) {
		v, err := r.t.content.Messages(level, messages)
		notes.values[contentOutput] = r.t.sanitized(r.ctx, v, err)
		return notes
	})
}

func (r AgentRun) setContent(sanitize func(content.Level) contentNotes) {
	if r.Operation == nil || r.t == nil {
		return
	}
	level, place := r.t.contentFor(r.ctx, r.span, nil)
	if place&content.OnSpans == 0 {
		return
	}
	notes := sanitize(level)
	r.learn(func() { r.end.content = r.end.content.merge(notes, content.OnSpans) })
}

// SetExplanation notes why the judgement came out as it did, for the event
// gen_ai.evaluation.result, as far as the content policy lets it.
func (e Evaluation) SetExplanation(why string) {
	if e.Operation == nil || e.t == nil {
		return
	}
	if why = e.t.eventText(e.ctx, evaluationEvent, why); why != "" {
		e.learn(func() { e.end.why = why })
	}
}

// log writes the event of a judgement, or of one that failed.
func (e *evaluationEnd) log(o *Operation, end operationEnd) {
	if end.errType == "" && !e.scored && e.label == "" || !o.t.logs.enabled(o.ctx, evaluationEvent) {
		return
	}
	result := EvaluationResult{Name: e.request.Name, Label: e.label, Explanation: e.why}
	if e.scored {
		result.Score = new(e.score)
	}
	o.t.emitEvaluation(o.ctx, &result, end.errType, o.base.Add(time.Duration(end.took)))
}

// logException writes the record of an operation that failed. What has no role, such as a
// task, leaves it to what failed in it.
func (o *Operation) logException(end operationEnd, err error, took int64) {
	if !end.how.isError() || o.kind.role == "" {
		return
	}
	event := exceptionEvent
	if o.kind.role == semconv.GenAISpanRoleTool {
		event = toolExceptionEvent
	}
	if !o.t.logs.enabled(o.ctx, event) {
		return
	}
	var attrs []attribute.KeyValue
	if event == exceptionEvent {
		attrs = append(attrs, semconv.GenAISpanRole(o.kind.role))
	}
	attrs = o.t.appendException(attrs, end.errType, err, o.t.exceptionMessage(o.ctx, end.how, err))
	o.t.logs.emit(o.ctx, logEntry{event, o.base.Add(time.Duration(took)), attrs})
}
