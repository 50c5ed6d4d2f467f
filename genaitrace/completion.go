package genaitrace

import (
	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// logEnd returns the records of a call that has ended: what it was, what failed, and,
// where content goes on events, everything. c.mu is held.
func (c *Call) logEnd(stats *clockStats, how outcome, errType string, err error, message string, end int64) (entries []logEntry) {
	if c.gateway {
		return nil // the record is that of the call that it makes
	}
	at := c.when(end)
	if c.t.logs.enabled(c.ctx, completionEvent) {
		attrs := c.appendFacts(make([]attribute.KeyValue, 0, 32), errType)
		attrs = append(attrs, semconv.GenAISpanRole(c.req.callRole()))
		attrs = c.prompt.appendReference(attrs)
		attrs = appendChain(attrs, c.ctx)
		attrs = c.appendTiming(attrs, stats)
		if c.terminal != "" {
			attrs = append(attrs, semconv.GenAIStreamTerminal(c.terminal))
		}
		attrs = c.stops.appendTo(attrs)
		entries = append(entries, logEntry{completionEvent, at, c.t.words.Rewrite(attrs)})
	}
	if how.isError() && c.t.logs.enabled(c.ctx, callExceptionEvent) {
		attrs := c.t.appendException(nil, errType, err, message)
		entries = append(entries, logEntry{callExceptionEvent, at, attrs})
	}
	if c.content != nil && c.content.place&content.OnEvents != 0 && c.t.logs.enabled(c.ctx, detailsEvent) {
		attrs := c.appendFacts(make([]attribute.KeyValue, 0, 32), errType)
		if stats.ticks > 0 {
			attrs = append(attrs, genaiconv.ResponseTimeToFirstChunk(seconds(stats.first)))
		}
		attrs = c.content.appendTo(c.t.words.Rewrite(attrs), content.OnEvents)
		entries = append(entries, logEntry{detailsEvent, at, attrs})
	}
	return entries
}

// appendFacts appends what the request and the answer say.
func (c *Call) appendFacts(attrs []attribute.KeyValue, errType string) []attribute.KeyValue {
	attrs = append(attrs, FactsFromContext(c.ctx)...)
	attrs = append(attrs, genaiconv.OperationName(c.req.Operation))
	attrs = c.req.appendFacts(attrs)
	attrs = appendResponse(attrs, c.responseID, c.response, c.finish)
	attrs = c.usage.appendTo(attrs, c.inner)
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
	}
	return attrs
}

// appendResponse appends what is known of the answer.
func appendResponse(attrs []attribute.KeyValue, id, model string, finish []string) []attribute.KeyValue {
	if id != "" {
		attrs = append(attrs, genaiconv.ResponseID(id))
	}
	if model != "" {
		attrs = append(attrs, genaiconv.ResponseModel(model))
	}
	if len(finish) > 0 {
		attrs = append(attrs, genaiconv.ResponseFinishReasons(finish...))
	}
	return attrs
}

// appendTiming appends how the answer streamed.
func (c *Call) appendTiming(attrs []attribute.KeyValue, stats *clockStats) []attribute.KeyValue {
	if stats.ticks == 0 {
		return attrs
	}
	if stats.outputs > 0 {
		attrs = append(attrs, semconv.LLMTTFTMs(ms(stats.firstOutput)), semconv.GenAILastTokenMs(ms(stats.lastOutput)))
	}
	if stats.visible > 0 {
		attrs = append(attrs, semconv.GenAIFirstVisibleMs(ms(stats.firstVisible)))
	}
	attrs = append(attrs, semconv.GenAIChunkCount(stats.ticks))
	if stats.ticks > 1 {
		attrs = append(attrs, semconv.GenAIChunkTimeline(stats.settle()))
	}
	return attrs
}

// logEnd returns the records of an inference that has ended.
func (inf *Inference) logEnd(how outcome, errType string, err error, end int64) (entries []logEntry) {
	at := inf.when(end)
	if inf.t.logs.enabled(inf.ctx, completionEvent) {
		attrs := append(make([]attribute.KeyValue, 0, 32), FactsFromContext(inf.ctx)...)
		attrs = inf.req.appendStart(attrs, semconv.GenAISpanRoleInference)
		attrs = appendResponse(attrs, inf.responseID, inf.response, inf.finish)
		tokens := inf.known()
		attrs = tokens.appendTo(attrs, inf.inner)
		attrs = inf.prompt.appendReference(attrs)
		attrs = appendChain(attrs, inf.ctx)
		if inf.tokens.count > 0 {
			attrs = append(attrs, semconv.LLMTTFTMs(ms(inf.tokens.first)), semconv.GenAILastTokenMs(ms(inf.tokens.last)),
				semconv.GenAITokenCount(inf.tokens.count))
			if first, ok := inf.tokens.firstAnswer(); ok {
				attrs = append(attrs, semconv.GenAIFirstVisibleMs(ms(first)))
			}
		}
		if how == cancelled {
			attrs = append(attrs, semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalClientCancelled))
		}
		attrs = inf.stops.appendTo(attrs)
		if errType != "" {
			attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
		}
		attrs = inf.content.appendTo(inf.t.words.Rewrite(attrs), content.OnEvents)
		entries = append(entries, logEntry{completionEvent, at, attrs})
	}
	if how.isError() && inf.t.logs.enabled(inf.ctx, exceptionEvent) {
		attrs := append(make([]attribute.KeyValue, 0, 4), semconv.GenAISpanRole(semconv.GenAISpanRoleInference))
		attrs = inf.t.appendException(attrs, errType, err, inf.t.exceptionMessage(inf.ctx, how, err))
		entries = append(entries, logEntry{exceptionEvent, at, attrs})
	}
	return entries
}

// appendTo appends why a stream stopped and what held it back.
func (n *stopNotes) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	if n.reason != "" {
		attrs = append(attrs, semconv.GenAIEarlyStopReason(n.reason))
	}
	if n.blocked == 0 {
		return attrs
	}
	attrs = append(attrs, semconv.GenAIGuardrailOutcome(semconv.GenAIGuardrailOutcomeBlock), semconv.GenAIGuardrailRuleID(n.rule))
	if n.label != "" {
		attrs = append(attrs, semconv.GenAIGuardrailLabel(n.label))
	}
	return attrs
}
