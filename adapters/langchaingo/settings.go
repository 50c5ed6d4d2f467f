package genailangchain

import (
	"math"

	"github.com/tmc/langchaingo/llms"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

const (
	maxStops = 16 // stop sequences that are written
	maxStop  = 64 // bytes of each
)

// settings are what the options of a call say. nil and zero are unknown.
type settings struct {
	options llms.CallOptions

	temperature, topP, frequencyPenalty, presencePenalty *float64
	topK, seed                                           *int

	maxTokens, choices, tools int
	stop                      []string
}

// readSettings applies the options to values that no option sets, so that what is
// known to be 0 is told from what nobody set. Where an option replaces all of them
// (llms.WithOptions), a 0 is unknown again.
func readSettings(options []llms.CallOption) (s settings) {
	unset := llms.CallOptions{
		Temperature: math.NaN(), TopP: math.NaN(), FrequencyPenalty: math.NaN(), PresencePenalty: math.NaN(),
		TopK: math.MinInt, Seed: math.MinInt, MaxTokens: math.MinInt, MinLength: math.MinInt,
	}
	o := unset
	for _, option := range options {
		if option != nil {
			option(&o)
		}
	}
	replaced := o.MinLength != unset.MinLength && o.MinLength == 0
	number := func(v float64) *float64 {
		if math.IsNaN(v) || v == 0 && replaced {
			return nil
		}
		return &v
	}
	whole := func(v int) *int {
		if v == math.MinInt || v == 0 && replaced {
			return nil
		}
		return &v
	}
	s = settings{
		options:     o,
		temperature: number(o.Temperature), topP: number(o.TopP),
		frequencyPenalty: number(o.FrequencyPenalty), presencePenalty: number(o.PresencePenalty),
		topK: whole(o.TopK), seed: whole(o.Seed),
		maxTokens: max(o.MaxTokens, 0), choices: max(o.N, o.CandidateCount, 0),
		tools: len(o.Tools) + len(o.Functions),
	}
	if s.topK != nil && *s.topK <= 0 {
		s.topK = nil
	}
	for _, stop := range o.StopWords[:min(len(o.StopWords), maxStops)] {
		s.stop = append(s.stop, bound.String(stop, maxStop))
	}
	return s
}

func (s *settings) streams() bool {
	return s.options.StreamingFunc != nil || s.options.StreamingReasoningFunc != nil
}

// request adds the settings to what all calls have in common.
func (s *settings) request(req genaitrace.Request) genaitrace.Request {
	if s.options.Model != "" {
		req.Model = s.options.Model
	}
	req.Stream = s.streams()
	if s.maxTokens > 0 {
		req.MaxTokens = s.maxTokens
	}
	if s.choices > 0 {
		req.Choices = s.choices
	}
	req.Temperature = or(s.temperature, req.Temperature)
	req.TopP = or(s.topP, req.TopP)
	req.TopK = or(s.topK, req.TopK)
	req.Seed = or(s.seed, req.Seed)
	switch {
	case s.options.JSONMode, s.options.ResponseMIMEType == "application/json":
		req.OutputType = genaiconv.OutputTypeJSON
	case s.options.ResponseMIMEType == "text/plain":
		req.OutputType = genaiconv.OutputTypeText
	}
	return req
}

func or[T any](known, otherwise *T) *T {
	if known != nil {
		return known
	}
	return otherwise
}
