package genaitrace

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
)

// maxBlockEvents is how many content_blocked events a request gets.
const maxBlockEvents = 16

// stopNotes are the events that tell why a stream stopped or was held back.
type stopNotes struct {
	stopped bool
	reason  semconv.GenAIEarlyStopReasonAttr
	blocked int
	rule    string // of the first block
	label   string
}

func (n *stopNotes) earlyStop(span trace.Span, reason semconv.GenAIEarlyStopReasonAttr, at time.Time) {
	reason = semconv.GenAIEarlyStopReasonAttr(bound.String(string(reason), maxReason))
	if n.stopped || reason == "" {
		return
	}
	n.stopped, n.reason = true, reason
	if span.IsRecording() {
		span.AddEvent(semconv.EventEarlyStop, trace.WithTimestamp(at), trace.WithAttributes(semconv.GenAIEarlyStopReason(reason)))
	}
}

func (n *stopNotes) contentBlocked(span trace.Span, rule, label string) {
	if n.blocked >= maxBlockEvents {
		return
	}
	n.blocked++
	rule, label = boundCopy(rule, maxReason), boundCopy(label, maxReason)
	if rule == "" {
		rule = bound.Other
	}
	if n.blocked == 1 {
		n.rule, n.label = rule, label
	}
	if !span.IsRecording() {
		return
	}
	if label == "" {
		span.AddEvent(semconv.EventContentBlocked, trace.WithAttributes(semconv.GenAIGuardrailRuleID(rule)))
		return
	}
	span.AddEvent(semconv.EventContentBlocked, trace.WithAttributes(
		semconv.GenAIGuardrailRuleID(rule), semconv.GenAIGuardrailLabel(label)))
}

// EarlyStop records that generation stops before its natural end, as an event
// early_stop on the decode span where one is open. Only the first call counts, and
// an empty reason does not. Where Fail or EndErr ends the inference with a
// cancelled context or a passed deadline, that records itself.
func (inf *Inference) EarlyStop(reason semconv.GenAIEarlyStopReasonAttr) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if !inf.ended {
		inf.stops.earlyStop(inf.generating(), reason, time.Now())
	}
}

// ContentBlocked records that a safety rule held back what was generated, as an
// event content_blocked on the decode span where one is open; the first 16 of a
// request. rule identifies it (empty: _OTHER), label is the category that it
// stands for (empty: unknown). Neither may quote what was generated.
func (inf *Inference) ContentBlocked(rule, label string) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if !inf.ended {
		inf.stops.contentBlocked(inf.generating(), rule, label)
	}
}

// generating is the span that events about the output belong to. inf.mu is held.
func (inf *Inference) generating() trace.Span {
	span := inf.span
	for _, p := range inf.open {
		if p.decode != nil {
			span = p.span
		}
	}
	return span
}

// stopOn records the early stop that an outcome is, on a span that ends at that time.
// inf.mu is held, or the inference has ended.
func (inf *Inference) stopOn(span trace.Span, how outcome, at time.Time) {
	switch how {
	case cancelled:
		inf.stops.earlyStop(span, semconv.GenAIEarlyStopReasonDisconnect, at)
	case timedOut:
		inf.stops.earlyStop(span, semconv.GenAIEarlyStopReasonTimeout, at)
	case succeeded, failed:
	}
}

// EarlyStop records that the stream is stopped before its natural end, as an event
// early_stop; see [Inference.EarlyStop]. How the stream ended says
// [Call.SetTerminal].
func (c *Call) EarlyStop(reason semconv.GenAIEarlyStopReasonAttr) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done.Load() {
		c.stops.earlyStop(c.span, reason, time.Now())
	}
}

// ContentBlocked records that a safety rule held back part of the answer, as an
// event content_blocked; see [Inference.ContentBlocked].
func (c *Call) ContentBlocked(rule, label string) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done.Load() {
		c.stops.contentBlocked(c.span, rule, label)
	}
}
