package genaitrace

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otellog "go.opentelemetry.io/otel/log"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// WithLoggerProvider sets where log records go. Default, and where lp is nil: the
// global provider at the time of [New], which is none unless somebody sets it.
func WithLoggerProvider(lp otellog.LoggerProvider) Option {
	return optionFunc(func(c config) config {
		if lp != nil {
			c.loggerProvider = lp
		}
		return c
	})
}

// A logEvent is a kind of log record, with the severity of the registry, and INFO where
// that has none.
type logEvent struct {
	name     string
	severity otellog.Severity
}

func newLogEvent(name string) *logEvent {
	event, _ := semconv.LookupEvent(name)
	return &logEvent{name, cmp.Or(otellog.Severity(event.Severity), otellog.SeverityInfo)}
}

var (
	completionEvent    = newLogEvent(semconv.EventGenAICompletion)
	signalEvent        = newLogEvent(semconv.EventGenAISignal)
	exceptionEvent     = newLogEvent(semconv.EventGenAIException)
	toolCallEvent      = newLogEvent(semconv.EventGenAIToolCall)
	detailsEvent       = newLogEvent(genaiconv.EventClientInferenceOperationDetails)
	callExceptionEvent = newLogEvent(genaiconv.EventClientInferenceException)
	toolExceptionEvent = newLogEvent(genaiconv.EventExecuteToolException)
	evaluationEvent    = newLogEvent(genaiconv.EventEvaluationResult)
)

// logs writes log records. The zero value writes none.
type logs struct{ logger otellog.Logger }

// enabled reports whether an event would go anywhere.
func (l logs) enabled(ctx context.Context, event *logEvent) bool {
	return l.logger != nil && l.logger.Enabled(ctx, otellog.EnabledParameters{Severity: event.severity, EventName: event.name})
}

// A logEntry is a log record that waits until no lock is held.
type logEntry struct {
	event *logEvent
	at    time.Time
	attrs []attribute.KeyValue
}

// emit writes a record that belongs to the span of ctx.
func (l logs) emit(ctx context.Context, e logEntry) {
	var r otellog.Record
	r.SetEventName(e.event.name)
	r.SetSeverity(e.event.severity)
	r.SetTimestamp(e.at)
	r.AddAttributes(e.attrs...)
	l.logger.Emit(ctx, r)
}

func (l logs) emitAll(ctx context.Context, entries []logEntry) {
	for i := range entries {
		l.emit(ctx, entries[i])
	}
}

// appendException appends what may be told of an error: the name of its Go type, or
// the error.type where that says nothing, its message where the content policy lets it
// pass, and the stack where that was asked for.
func (t *Tracer) appendException(attrs []attribute.KeyValue, errType string, err error, message string) []attribute.KeyValue {
	exceptionType := statusText(err)
	if exceptionType == "" {
		exceptionType = errType
	}
	attrs = append(attrs, otelsemconv.ExceptionType(exceptionType))
	if message != "" {
		attrs = append(attrs, otelsemconv.ExceptionMessage(message))
	}
	if t.stacks {
		attrs = append(attrs, otelsemconv.ExceptionStacktrace(stack()))
	}
	return attrs
}

// exceptionMessage is what the content policy lets through of an error's message, which
// may quote a prompt. A hash of it would be of no use.
func (t *Tracer) exceptionMessage(ctx context.Context, how outcome, err error) string {
	if !how.isError() || err == nil || err == errPanic { //nolint:errorlint // our own, which has no message to tell
		return ""
	}
	level, place := t.contentFor(ctx, noSpan, callExceptionEvent)
	if place&content.OnEvents == 0 || level < content.Redacted {
		return ""
	}
	message, failure := t.content.Text(level, textOf(err))
	if failure != nil {
		t.metrics.fault(ctx, semconv.GenAIFaultContent, failure)
	}
	return message
}

// textOf is the message of an error, empty where it panics.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return err.Error()
}
