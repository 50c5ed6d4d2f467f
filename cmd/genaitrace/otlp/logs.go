package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

func (d *decoder) logs(to *capture.Capture, from plog.Logs) {
	for _, rl := range from.ResourceLogs().All() {
		resource := d.resource(rl.Resource(), rl.SchemaUrl())
		for _, sl := range rl.ScopeLogs().All() {
			scope := d.scope(sl.Scope(), sl.SchemaUrl())
			for _, l := range sl.LogRecords().All() {
				to.Logs = append(to.Logs, d.log(l, resource, scope))
			}
		}
	}
}

func (d *decoder) log(l plog.LogRecord, resource *capture.Resource, scope *capture.Scope) *capture.Log {
	severity := int(l.SeverityNumber())
	if severity < 0 || severity > int(plog.SeverityNumberFatal4) {
		severity = 0 // unknown
	}
	return &capture.Log{
		Time:              timeOf(l.Timestamp()),
		Observed:          timeOf(l.ObservedTimestamp()),
		Severity:          severity,
		SeverityText:      d.shared(l.SeverityText()),
		EventName:         d.shared(l.EventName()),
		Body:              d.value(l.Body()),
		Attributes:        d.attributes(l.Attributes()),
		DroppedAttributes: int(l.DroppedAttributesCount()),
		TraceID:           trace.TraceID(l.TraceID()),
		SpanID:            trace.SpanID(l.SpanID()),
		Flags:             trace.TraceFlags(l.Flags()),
		Resource:          resource,
		Scope:             scope,
	}
}

func encodeLogs(records []*capture.Log) plog.Logs {
	out := plog.NewLogs()
	groups := newGrouping(func(r *capture.Resource) plog.ResourceLogs {
		rl := out.ResourceLogs().AppendEmpty()
		putResource(rl.Resource(), rl.SetSchemaUrl, r)
		return rl
	}, func(rl plog.ResourceLogs, s *capture.Scope) plog.ScopeLogs {
		sl := rl.ScopeLogs().AppendEmpty()
		putScope(sl.Scope(), sl.SetSchemaUrl, s)
		return sl
	})
	for _, l := range records {
		putLog(groups.scope(l.Resource, l.Scope).LogRecords().AppendEmpty(), l)
	}
	return out
}

func putLog(to plog.LogRecord, l *capture.Log) {
	to.SetTimestamp(timestamp(l.Time))
	to.SetObservedTimestamp(timestamp(l.Observed))
	to.SetSeverityNumber(plog.SeverityNumber(l.Severity))
	to.SetSeverityText(l.SeverityText)
	to.SetEventName(l.EventName)
	putValue(to.Body(), l.Body)
	putAttributes(to.Attributes(), l.Attributes)
	to.SetDroppedAttributesCount(uint32Of(l.DroppedAttributes))
	to.SetTraceID(pcommon.TraceID(l.TraceID))
	to.SetSpanID(pcommon.SpanID(l.SpanID))
	to.SetFlags(plog.LogRecordFlags(l.Flags))
}
