package genaimcp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
	"github.com/genaitrace/otelgenai/semconv/mcpconv"
)

// maxDistinct is how many distinct names of tools, prompts, methods and errors a
// process uses in names of spans and in metrics.
const maxDistinct = 100

// series bounds what others choose.
type series struct{ methods, sent, received, errors *bound.Set }

func newSeries() series {
	set := func() *bound.Set { return &bound.Set{Limit: maxDistinct} }
	return series{set(), set(), set(), set()}
}

func (s series) targets(sending bool) *bound.Set {
	if sending {
		return s.sent
	}
	return s.received
}

// spanName is "{method} {target}". What a stranger asks for stays out of it until it was
// answered once; see [series.answered].
func (s series) spanName(method, target string, sending bool) string {
	if !s.methods.Admits(method) {
		return "mcp"
	}
	if target == "" || !sending && !s.received.Has(target) || !s.targets(sending).Admits(target) {
		return method
	}
	return method + " " + target
}

// answered notes that a target exists, and returns the name that a span has because of
// it; empty where it has it already.
func (s series) answered(method, target string, sending, ok bool) string {
	if sending || !ok || target == "" || s.received.Has(target) {
		return ""
	}
	return s.admit(method, target)
}

func (s series) admit(method, target string) string {
	if !s.received.Admits(target) || !s.methods.Admits(method) {
		return ""
	}
	return method + " " + target
}

// record writes the metric of the message.
func (m *message) record(took time.Duration, errType, code string) {
	duration, s := m.i.received, m.i.series
	if m.sending {
		duration = m.i.sent
	}
	if !duration.Enabled(m.ctx) {
		return
	}
	name := func(target string) string {
		if m.sending || s.received.Has(target) {
			return s.targets(m.sending).Value(target)
		}
		return bound.Other
	}
	attrs := make([]attribute.KeyValue, 0, 10)
	attrs = append(attrs, mcpconv.MethodNameKey.String(s.methods.Value(m.method)))
	if m.tool != "" {
		attrs = append(attrs, genaiconv.ToolName(name(m.tool)), genaiconv.OperationName(genaiconv.OperationNameExecuteTool))
	}
	if m.prompt != "" {
		attrs = append(attrs, genaiconv.PromptName(name(m.prompt)))
	}
	if m.version != "" {
		attrs = append(attrs, mcpconv.ProtocolVersion(m.version))
	}
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(s.errors.Value(errType)))
	}
	if code != "" {
		attrs = append(attrs, otelsemconv.RPCResponseStatusCode(s.errors.Value(code)))
	}
	attrs = append(attrs, m.transport...)
	if m.sending {
		attrs = append(attrs, m.i.peer...)
	}
	duration.Record(m.ctx, took.Seconds(), metric.WithAttributes(attrs...))
}
