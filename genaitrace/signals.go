package genaitrace

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/genaitrace/logprob"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An Answer says which answer a judgement is about. What is empty is taken from the
// running [Call] that the context belongs to, if any.
type Answer struct {
	// Model is the model that was asked.
	Model string
	// ResponseID identifies the answer: with it the judgement finds its call where
	// the context has another span.
	ResponseID string
}

// An EvaluationResult is one judgement about an answer.
type EvaluationResult struct {
	Answer

	// Name is what was judged, such as "Relevance"; one of few.
	Name string
	// Score is the result as a number, Label as a word of few, such as "pass". nil
	// and empty are unknown.
	Score *float64
	Label string
	// Explanation is why. It is content, and written as the content policy says.
	Explanation string
	// Err says that no judgement came about.
	Err error
}

// RecordEvaluation records a judgement about the answer of the span that ctx
// carries: the event gen_ai.evaluation.result, and one more in genai.evaluations by
// name and label, of which the first 100 of a process stand for themselves. It is
// not counted where Err says that there was none.
func (t *Tracer) RecordEvaluation(ctx context.Context, e EvaluationResult) {
	if t == nil || t.metrics == nil {
		return
	}
	e.Answer = e.fill(ctx)
	e.Name, e.Label = bound.String(e.Name, maxName), bound.String(e.Label, maxReason)
	if e.Name == "" {
		e.Name = bound.Other
	}
	if e.Score != nil && !isFinite(e.Score) {
		t.metrics.fault(ctx, semconv.GenAIFaultCount, errNumber)
		e.Score = nil
	}
	if work := &t.metrics.work; e.Err == nil && work.evaluations.Enabled(ctx) {
		work.evaluations.Add(ctx, 1, work.sets.of(workSeries{evaluationWork, [maxWorkKeys]string{e.Name, e.Label, e.Model}}).add...)
	}
	t.logEvaluation(ctx, &e)
}

var errNumber = errors.New("score or signal that is no finite number, or out of its range, dropped")

func (t *Tracer) logEvaluation(ctx context.Context, e *EvaluationResult) {
	if !t.logs.enabled(ctx, evaluationEvent) {
		return
	}
	errType := ""
	if e.Err != nil {
		if _, errType = classify(ctx, e.Err); errType == "" {
			errType = bound.Other
		}
	}
	e.Explanation = t.eventText(ctx, evaluationEvent, e.Explanation)
	t.emitEvaluation(ctx, e, errType, time.Now())
}

// emitEvaluation writes a judgement whose explanation may be written.
func (t *Tracer) emitEvaluation(ctx context.Context, e *EvaluationResult, errType string, at time.Time) {
	attrs := append(make([]attribute.KeyValue, 0, 6), genaiconv.EvaluationName(e.Name))
	if e.Score != nil {
		attrs = append(attrs, genaiconv.EvaluationScoreValue(*e.Score))
	}
	if e.Label != "" {
		attrs = append(attrs, genaiconv.EvaluationScoreLabel(e.Label))
	}
	if e.Explanation != "" {
		attrs = append(attrs, genaiconv.EvaluationExplanation(e.Explanation))
	}
	if e.ResponseID != "" {
		attrs = append(attrs, genaiconv.ResponseID(e.ResponseID))
	}
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
	}
	t.logs.emit(ctx, logEntry{evaluationEvent, at, attrs})
}

// Labels of a [Verdict].
const (
	verdictPass = "pass"
	verdictFail = "fail"
)

// A Verdict says whether an answer has something that it should not have.
type Verdict struct {
	Answer

	// Type is what was looked for: semconv.GenAISignalTypeHallucination, …Safety or
	// …Rejection.
	Type semconv.GenAISignalTypeAttr
	// Found says that the answer has it.
	Found bool
	// Score is how sure or how bad, in the measure of the source; nil is unknown.
	Score *float64
	// Explanation is why; see [EvaluationResult].
	Explanation string
	// SourceModel is the model or the rule that judged.
	SourceModel string
}

// RecordVerdict records a verdict: an evaluation by the name of its type with the label
// pass or fail, one more in genai.signal.checks, and one in genai.signal.hits where
// something was found. The quotient of the two is the rate of hallucinations, of
// breaches, of rejected answers; it is never stored. Record the verdicts that found
// nothing too, or there is no total.
func (t *Tracer) RecordVerdict(ctx context.Context, v Verdict) {
	if t == nil || t.metrics == nil {
		return
	}
	v.Answer = v.fill(ctx)
	v.Type = signalType(v.Type)
	s := &t.metrics.signals
	label := verdictPass
	if v.Found {
		label = verdictFail
	}
	if s.checks.Enabled(ctx) || s.hits.Enabled(ctx) {
		with := t.metrics.signalSet(v.Type, v.SourceModel, v.Model).add
		s.checks.Add(ctx, 1, with...)
		if v.Found {
			s.hits.Add(ctx, 1, with...)
		}
	}
	t.RecordEvaluation(ctx, EvaluationResult{
		Answer: v.Answer, Name: string(v.Type), Score: v.Score, Label: label, Explanation: v.Explanation,
	})
}

// A Signal is one measurement about an answer.
type Signal struct {
	Answer

	// Type is what is measured, such as semconv.GenAISignalTypeRewardScore.
	Type semconv.GenAISignalTypeAttr
	// Value is the measurement, in the measure of its type and source. Where only
	// bounds are known it is the lower one, and UpperBound the other.
	Value      float64
	UpperBound *float64
	// SourceModel is the model that it comes from.
	SourceModel string
	// Metadata is what else the source says. It is content.
	Metadata any
}

// RecordSignal records a measurement about the answer of the span that ctx carries:
// the event genai.signal and a value in the histogram genai.signal.values. One that is
// no finite number is dropped and counted.
func (t *Tracer) RecordSignal(ctx context.Context, signal Signal) {
	if t == nil || t.metrics == nil {
		return
	}
	if !isFinite(&signal.Value) || signal.UpperBound != nil && !(*signal.UpperBound >= signal.Value) {
		t.metrics.fault(ctx, semconv.GenAIFaultCount, errNumber)
		return
	}
	signal.Answer = signal.fill(ctx)
	signal.Type = signalType(signal.Type)
	if values := t.metrics.signals.values; values.Enabled(ctx) {
		values.Record(ctx, signal.Value, t.metrics.signalSet(signal.Type, signal.SourceModel, signal.Model).record...)
	}
	t.logSignal(ctx, &signal)
}

func (t *Tracer) logSignal(ctx context.Context, signal *Signal) {
	if !t.logs.enabled(ctx, signalEvent) {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs, semconv.GenAISignalType(signal.Type), semconv.GenAISignalValue(signal.Value))
	if isFinite(signal.UpperBound) {
		attrs = append(attrs, semconv.GenAISignalUpperBound(*signal.UpperBound))
	}
	if source := bound.String(signal.SourceModel, maxName); source != "" {
		attrs = append(attrs, semconv.GenAISignalSourceModel(source))
	}
	if signal.Model != "" {
		attrs = append(attrs, genaiconv.RequestModel(signal.Model))
	}
	if signal.ResponseID != "" {
		attrs = append(attrs, genaiconv.ResponseID(signal.ResponseID))
	}
	if id := factOf(ctx, requestID); id != "" {
		attrs = append(attrs, semconv.GenAIRequestID(id))
	}
	if signal.Metadata != nil {
		if level, place := t.contentFor(ctx, noSpan, signalEvent); place&content.OnEvents != 0 {
			v, err := t.content.Any(level, signal.Metadata)
			if v = t.sanitized(ctx, v, err); v.Present() {
				attrs = append(attrs, attribute.KeyValue{Key: semconv.GenAISignalMetadataKey, Value: v.Structured()})
			}
		}
	}
	t.logs.emit(ctx, logEntry{signalEvent, time.Now(), t.words.Rewrite(attrs)})
}

// RecordLogprobs records what the logprobs of an answer say of it: a signal
// logit_entropy with the bounds of the mean entropy of its tokens, where their
// likeliest tokens were told, and a signal confidence, the geometric mean of the
// probabilities of the tokens chosen, of which the perplexity is the reciprocal.
func (t *Tracer) RecordLogprobs(ctx context.Context, stats *logprob.Stats) {
	if stats == nil {
		return
	}
	if entropy, ok := stats.MeanEntropy(); ok {
		signal := Signal{Type: semconv.GenAISignalTypeLogitEntropy, Value: entropy.Lower}
		if !math.IsInf(entropy.Upper, 1) {
			signal.UpperBound = new(entropy.Upper)
		}
		t.RecordSignal(ctx, signal)
	}
	if confidence, ok := stats.Confidence(); ok {
		t.RecordSignal(ctx, Signal{Type: semconv.GenAISignalTypeConfidence, Value: confidence})
	}
}

// fill takes from the running call what is not said.
func (a Answer) fill(ctx context.Context) Answer {
	if c := CallFromContext(ctx); c != nil && (a.Model == "" || a.ResponseID == "") {
		c.mu.Lock()
		if a.Model == "" {
			a.Model = c.req.Model
		}
		if a.ResponseID == "" {
			a.ResponseID = c.responseID
		}
		c.mu.Unlock()
	}
	a.Model, a.ResponseID = bound.String(a.Model, maxName), bound.String(a.ResponseID, maxName)
	return a
}

func signalType(t semconv.GenAISignalTypeAttr) semconv.GenAISignalTypeAttr {
	if t = semconv.GenAISignalTypeAttr(bound.String(string(t), maxReason)); t == "" {
		return bound.Other
	}
	return t
}

// eventText is what the content policy lets an event say of a text.
func (t *Tracer) eventText(ctx context.Context, event *logEvent, text string) string {
	if text == "" {
		return ""
	}
	level, place := t.contentFor(ctx, noSpan, event)
	if place&content.OnEvents == 0 {
		return ""
	}
	text, err := t.content.Text(level, text)
	if err != nil {
		t.metrics.fault(ctx, semconv.GenAIFaultContent, err)
	}
	return text
}

// signalMetrics are those of judgements about answers.
type signalMetrics struct {
	values       metric.Float64Histogram
	checks, hits metric.Int64Counter
}

func newSignalMetrics(m metric.Meter) signalMetrics {
	return signalMetrics{
		values: instrument(semconv.NewGenAISignalValues(m)),
		checks: instrument(semconv.NewGenAISignalChecks(m)),
		hits:   instrument(semconv.NewGenAISignalHits(m)),
	}
}

// signalSet are the dimensions of a signal.
func (m *metrics) signalSet(t semconv.GenAISignalTypeAttr, source, model string) *set {
	return m.work.sets.of(workSeries{signalWork, [maxWorkKeys]string{string(t), bound.String(source, maxName), model}})
}
