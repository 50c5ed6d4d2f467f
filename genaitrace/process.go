package genaitrace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
)

var preprocessPhase = newPhaseKind(semconv.SpanInferencePreprocess, semconv.GenAISpanRolePreprocess, partCount, "")

// StartPreprocess starts the work on the input before the model
// (inference.preprocess). contentType is the media type of the request as the
// model server received it; empty is unknown.
func (inf *Inference) StartPreprocess(ctx context.Context, contentType string) (context.Context, *Phase) {
	var facts []attribute.KeyValue
	if inf != nil && contentType != "" {
		facts = []attribute.KeyValue{semconv.GenAIContentType(bound.String(contentType, maxName))}
	}
	return inf.startPhase(ctx, &preprocessPhase, Phase{facts: facts}, nil)
}

// An Outcome says what came of the work on an output. Empty values and nil fields
// are unknown. No field holds text of the output.
type Outcome struct {
	// RulesHit names the rules that changed the output, 16 at most. An empty
	// slice that is not nil says that none did.
	RulesHit []string
	// SafetyLabel is the category that a safety rule found, such as "self-harm".
	SafetyLabel string
	// FormatValid says whether the output has the form that was asked for.
	FormatValid *bool
	// RefusalReason says why the model or the service refused to answer, such as
	// "policy".
	RefusalReason string
}

// SetOutcome notes what came of the work on the output, on a phase of
// [Inference.StartPostprocess]; known fields replace those of earlier calls.
func (p *Phase) SetOutcome(o Outcome) {
	if p == nil || p.inf == nil || !p.span.IsRecording() {
		return
	}
	if o.RulesHit != nil {
		rules := make([]string, 0, maxReasons)
		for _, rule := range o.RulesHit[:min(len(o.RulesHit), maxReasons)] {
			rules = append(rules, boundCopy(rule, maxReason))
		}
		p.note(semconv.GenAIPostprocessRulesHit(rules...))
	}
	if o.SafetyLabel != "" {
		p.note(semconv.GenAIGuardrailLabel(boundCopy(o.SafetyLabel, maxReason)))
	}
	if o.FormatValid != nil {
		p.note(semconv.GenAIPostprocessFormatValid(*o.FormatValid))
	}
	if o.RefusalReason != "" {
		p.note(semconv.GenAIRefusalReason(boundCopy(o.RefusalReason, maxReason)))
	}
}

// SetOutcome is [Phase.SetOutcome].
func (d *Decode) SetOutcome(o Outcome) { d.phase().SetOutcome(o) }
