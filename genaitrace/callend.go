package genaitrace

import (
	"io"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// end ends a call once. Its last words decide how: what the protocol said of the
// stream, then what the caller said, then what the context says.
func (c *Call) end(err error, flag endFlag, at time.Time) {
	if c == nil || c.t == nil || !c.done.CompareAndSwap(false, true) {
		return
	}
	defer c.underWay.leave(c.ctx)
	var entries []logEntry
	defer func() { c.t.logs.emitAll(c.ctx, entries) }() // once nothing is locked
	if err == io.EOF {                                  //nolint:errorlint // wrapped, it is the cause of something else
		err = nil // how a stream ends well
	}
	how, errType, err := judge(c.ctx, err, flag)
	stats, _ := c.clock.close()
	message := c.t.exceptionMessage(c.ctx, how, err) // before the lock: it may run code of the user's

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unwatch != nil {
		c.unwatch()
	}
	if flag != panicked {
		how = c.outcome(how)
	}
	if how.isError() {
		errType = c.failure(how, errType)
	} else {
		errType = ""
	}
	c.settle(how, stats)

	duration, at, wrong := endTime(at, c.began, stats.last, c.base, c.after)
	if wrong != nil {
		c.t.metrics.fault(c.ctx, semconv.GenAIFaultTime, wrong)
	}
	if c.span.IsRecording() && !c.unanswered(how, stats) {
		c.describe(stats, errType, duration)
		setStatus(c.span, how, err)
	}
	entries = c.logEnd(stats, how, errType, err, message, duration)
	c.spanEnd.end(c.span, at)
	c.run.callEnded(&c.usage)
	c.record(stats, how, errType, duration)
	stats.release()
}

// outcome is what the stream's own end says, else how.
func (c *Call) outcome(how outcome) outcome {
	switch c.terminal {
	case semconv.GenAIStreamTerminalError, semconv.GenAIStreamTerminalTruncated, semconv.GenAIStreamTerminalHTTPError:
		return failed
	case semconv.GenAIStreamTerminalTimeout:
		return timedOut
	case semconv.GenAIStreamTerminalClientCancelled:
		return cancelled
	}
	return how
}

// failure is the error.type: the protocol's word, else the terminal's, else the
// error's.
func (c *Call) failure(how outcome, errType string) string {
	switch {
	case c.errType != "":
		return c.errType
	case c.terminal == semconv.GenAIStreamTerminalTruncated:
		return errTypeTruncated
	case how == timedOut:
		return errTypeTimeout
	case errType != "":
		return errType
	}
	return bound.Other
}

// settle decides how the stream ended, where its reader did not say.
func (c *Call) settle(how outcome, stats *clockStats) {
	if c.terminal != "" || stats.ticks == 0 && how == succeeded {
		return
	}
	switch how {
	case cancelled:
		c.terminal = semconv.GenAIStreamTerminalClientCancelled
	case timedOut:
		c.terminal = semconv.GenAIStreamTerminalTimeout
	case failed:
		if stats.ticks > 0 { // else no stream began
			c.terminal = semconv.GenAIStreamTerminalError
		}
	case succeeded:
		c.terminal = semconv.GenAIStreamTerminalEOF
		if len(c.finish) > 0 {
			c.terminal = semconv.GenAIStreamTerminalFinish
		}
	}
}

// describe writes everything that is known only at the end, in one call.
func (c *Call) describe(stats *clockStats, errType string, end int64) {
	size := 12
	if stats.ticks > 0 {
		size = 24
	}
	attrs := make([]attribute.KeyValue, 0, size)
	attrs = appendResponse(attrs, c.responseID, c.response, c.finish)
	attrs = c.prompt.appendTo(attrs)
	attrs = c.content.appendTo(attrs, content.OnSpans)
	if c.gateway {
		attrs = c.limits.appendTo(attrs)
	} else {
		attrs = c.usage.appendTo(attrs, c.inner)
	}
	if stats.ticks > 0 {
		attrs = c.appendStream(attrs, stats)
	}
	if c.reported != nil {
		attrs = c.appendReported(attrs, stats, end)
	}
	if c.terminal != "" {
		attrs = append(attrs, semconv.GenAIStreamTerminal(c.terminal))
	}
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
	}
	if len(attrs) > 0 {
		c.span.SetAttributes(c.t.words.Rewrite(attrs)...)
	}
}

func (c *Call) appendStream(attrs []attribute.KeyValue, stats *clockStats) []attribute.KeyValue {
	if c.gateway {
		attrs = append(attrs, semconv.AIResponseDelayMs(ms(stats.first)))
	} else {
		attrs = append(attrs, genaiconv.ResponseTimeToFirstChunk(seconds(stats.first)))
	}
	if stats.outputs > 0 {
		attrs = append(attrs, semconv.LLMTTFTMs(ms(stats.firstOutput)), semconv.GenAILastTokenMs(ms(stats.lastOutput)))
		c.span.AddEvent(semconv.EventFirstToken, trace.WithTimestamp(c.when(stats.firstOutput)),
			trace.WithAttributes(semconv.LLMTTFTMs(ms(stats.firstOutput))))
	}
	if stats.visible > 0 {
		attrs = append(attrs, semconv.GenAIFirstVisibleMs(ms(stats.firstVisible)))
	}
	attrs = append(attrs, semconv.GenAIChunkCount(stats.ticks), semconv.GenAIChunkOutputCount(stats.outputs))
	if c.gateway {
		return attrs // the timeline stands on the call's own span
	}
	if stats.ticks > 1 {
		attrs = append(attrs, semconv.GenAIChunkTimeline(stats.settle()))
		attrs = c.appendStalls(attrs, stats)
	}
	return stats.appendGaps(attrs, semconv.GenAIChunkGapP50MsKey, semconv.GenAIChunkGapP95MsKey, semconv.GenAIChunkGapMaxMsKey)
}
