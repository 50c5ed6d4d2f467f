package genaitrace

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

var (
	evaluationOperation = newOperationKind(semconv.SpanEvaluationRun, semconv.GenAISpanRoleEvaluation, "")
	guardrailOperation  = newOperationKind(semconv.SpanGuardrailCheck, semconv.GenAISpanRoleGuardrail, "")
)

// An EvaluationRequest holds what is known of an evaluation when it starts.
type EvaluationRequest struct {
	// Name is what is judged, such as "Relevance": one of few. Empty is _OTHER.
	Name string
	// Model is the model whose output is judged; empty is unknown.
	Model string
}

// An Evaluation judges an output.
type Evaluation struct {
	*Operation

	end *evaluationEnd
}

// StartEvaluation starts the judgement of an output (evaluation.run).
//
// Metric: genai.evaluations, of those that come to a result.
func (t *Tracer) StartEvaluation(ctx context.Context, req EvaluationRequest) (context.Context, Evaluation) {
	if t == nil || t.metrics == nil {
		return ctx, Evaluation{}
	}
	req.Name, req.Model = bound.String(req.Name, maxName), bound.String(req.Model, maxName)
	if req.Name == "" {
		req.Name = bound.Other
	}
	attrs := append(evaluationOperation.attributes(ctx, 3), genaiconv.EvaluationName(req.Name))
	if req.Model != "" {
		attrs = append(attrs, genaiconv.RequestModel(req.Model))
	}
	ctx, span, began := t.startSpan(ctx, evaluationOperation.name, trace.SpanKindInternal, attrs)
	if !span.IsRecording() && !t.metrics.work.evaluations.Enabled(ctx) && !t.logs.enabled(ctx, evaluationEvent) {
		return ctx, Evaluation{}
	}
	operation, end := newWork(t, ctx, span, began, &evaluationOperation, evaluationEnd{request: req})
	return ctx, Evaluation{operation, end}
}

var errEvaluation = errors.New("evaluation: score that is no finite number dropped")

// SetScore notes the score, in the measure of the evaluation. One that is no finite
// number is dropped and counted.
func (e Evaluation) SetScore(score float64) {
	if e.Operation == nil {
		return
	}
	if !isFinite(&score) {
		e.t.metrics.fault(e.ctx, semconv.GenAIFaultCount, errEvaluation)
		return
	}
	e.learn(func() { e.end.score, e.end.scored = score, true })
}

// SetLabel notes the result in a word, such as "pass": one of few. An empty value is
// unknown and changes nothing.
func (e Evaluation) SetLabel(label string) {
	if e.Operation != nil && label != "" {
		label = bound.String(label, maxReason)
		e.learn(func() { e.end.label = label })
	}
}

// evaluationEnd is what an evaluation adds to its end.
type evaluationEnd struct {
	request EvaluationRequest
	label   string
	score   float64
	scored  bool
	why     string // as far as the content policy lets it
}

func (e *evaluationEnd) settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue) {
	if end.how != succeeded {
		e.scored, e.label = false, "" // what fails has no result
		return end, attrs
	}
	if e.scored {
		attrs = append(attrs, genaiconv.EvaluationScoreValue(e.score))
	}
	if e.label != "" {
		attrs = append(attrs, genaiconv.EvaluationScoreLabel(e.label))
	}
	return end, attrs
}

func (e *evaluationEnd) record(o *Operation, end operationEnd) {
	e.log(o, end)
	m := &o.t.metrics.work
	if !e.scored && e.label == "" || !m.evaluations.Enabled(o.ctx) {
		return
	}
	series := workSeries{evaluationWork, [maxWorkKeys]string{e.request.Name, e.label, e.request.Model}}
	m.evaluations.Add(o.ctx, 1, m.sets.of(series).add...)
}

// A GuardrailCheck holds what is known of a safety check when it starts. Zero values are
// unknown and leave no attribute. What is checked is content and has no place here.
type GuardrailCheck struct {
	// RuleID identifies the rule, or the set of rules: one of few.
	RuleID string
	// Target is what is looked at: input, output, documents or a tool call.
	Target semconv.GenAIGuardrailTargetAttr
}

// A Guardrail is one safety check.
type Guardrail struct {
	*Operation

	end *guardrailEnd
}

// StartGuardrail starts a safety check (guardrail.check). That it blocks something is a
// verdict and no failure of the span; see [Guardrail.SetVerdict].
//
// Metric: genai.guardrail.decisions, of those that come to a verdict.
func (t *Tracer) StartGuardrail(ctx context.Context, check GuardrailCheck) (context.Context, Guardrail) {
	if t == nil || t.metrics == nil {
		return ctx, Guardrail{}
	}
	check.RuleID = bound.String(check.RuleID, maxReason)
	check.Target = semconv.GenAIGuardrailTargetAttr(bound.String(string(check.Target), maxReason))
	attrs := guardrailOperation.attributes(ctx, 2)
	if check.Target != "" {
		attrs = append(attrs, semconv.GenAIGuardrailTarget(check.Target))
	}
	ctx, span, began := t.startSpan(ctx, guardrailOperation.name, trace.SpanKindInternal, attrs)
	if !span.IsRecording() && !t.metrics.work.guardrailVerdicts.Enabled(ctx) {
		return ctx, Guardrail{}
	}
	operation, end := newWork(t, ctx, span, began, &guardrailOperation, guardrailEnd{rule: check.RuleID})
	return ctx, Guardrail{operation, end}
}

// SetVerdict notes what the check decided, and the category that it found, where it has
// a name; the last verdict counts. A check that ends without one leaves none: that it
// found nothing is the verdict pass. label may not quote what was checked.
func (g Guardrail) SetVerdict(outcome semconv.GenAIGuardrailOutcomeAttr, label string) {
	if g.Operation == nil {
		return
	}
	outcome = semconv.GenAIGuardrailOutcomeAttr(bound.String(string(outcome), maxReason))
	label = bound.String(label, maxReason)
	g.learn(func() { g.end.verdict, g.end.label = outcome, label })
}

// SetRule notes which rule decided, where a check of several found that out. An empty
// value is unknown and changes nothing.
func (g Guardrail) SetRule(id string) {
	if g.Operation != nil && id != "" {
		id = bound.String(id, maxReason)
		g.learn(func() { g.end.rule = id })
	}
}

// guardrailEnd is what a safety check adds to its end.
type guardrailEnd struct {
	rule, label string
	verdict     semconv.GenAIGuardrailOutcomeAttr
}

func (e *guardrailEnd) settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue) {
	if end.how != succeeded {
		e.verdict = "" // what fails has decided nothing
	}
	if e.verdict != "" {
		attrs = append(attrs, semconv.GenAIGuardrailOutcome(e.verdict))
	}
	if e.rule != "" {
		attrs = append(attrs, semconv.GenAIGuardrailRuleID(e.rule))
	}
	if e.label != "" {
		attrs = append(attrs, semconv.GenAIGuardrailLabel(e.label))
	}
	return end, attrs
}

func (e *guardrailEnd) record(o *Operation, _ operationEnd) {
	m := &o.t.metrics.work
	if e.verdict == "" || !m.guardrailVerdicts.Enabled(o.ctx) {
		return
	}
	series := workSeries{guardrailWork, [maxWorkKeys]string{string(e.verdict), e.rule, e.label}}
	m.guardrailVerdicts.Add(o.ctx, 1, m.sets.of(series).add...)
}
