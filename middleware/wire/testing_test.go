package wire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// An observer makes calls on the real SDK and returns what each recorded.
type observer struct {
	tracer *genaitrace.Tracer
	ended  []sdktrace.ReadOnlySpan // of the last call, itself at the end
}

func newObserver() *observer { return newObserverWithMeter(metricnoop.NewMeterProvider()) }

func newObserverWithMeter(mp metric.MeterProvider) *observer {
	o := &observer{}
	o.tracer = genaitrace.New(
		genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o))),
		genaitrace.WithMeterProvider(mp),
	)
	return o
}

func (*observer) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (o *observer) OnEnd(s sdktrace.ReadOnlySpan)                 { o.ended = append(o.ended, s) }
func (*observer) Shutdown(context.Context) error                  { return nil }
func (*observer) ForceFlush(context.Context) error                { return nil }

// call runs observe on a new call and returns the span that it recorded.
func (o *observer) call(observe func(*genaitrace.Call)) sdktrace.ReadOnlySpan {
	o.ended = nil
	_, call := o.tracer.StartCall(context.Background(), genaitrace.Request{Model: "m", Stream: true})
	observe(call)
	call.End()
	return o.ended[len(o.ended)-1]
}

func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]any {
	all := make(map[attribute.Key]any)
	for _, a := range s.Attributes() {
		all[a.Key] = a.Value.AsInterface()
	}
	return all
}

// describe renders everything of a span that a stream decides. In a bubble of
// testing/synctest no time passes, so the times take part.
func describe(s sdktrace.ReadOnlySpan) string {
	lines := []string{s.Status().Code.String()}
	for _, a := range s.Attributes() {
		lines = append(lines, fmt.Sprintf("%s=%v", a.Key, a.Value.AsInterface()))
	}
	for _, e := range s.Events() {
		lines = append(lines, "event "+e.Name)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
