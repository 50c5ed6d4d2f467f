package genaitrace

import (
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

// The dimensions that metrics have on request only.
const (
	extraVersion = iota
	extraQuantization
	extraTier
	extraLength
	extraGPU
	extraKinds
)

var extraKeys = [extraKinds]attribute.Key{
	extraVersion:      semconv.AIModelVersionKey,
	extraQuantization: semconv.GenAIQuantizationKey,
	extraTier:         semconv.GenAIUserTierKey,
	extraLength:       semconv.GenAIPromptLengthBucketKey,
	extraGPU:          semconv.AIGPUNameKey,
}

// WithMetricDimensions adds dimensions to the house metrics (genai.*), each to those
// for which the registry has it; the official metrics keep the dimensions of their
// convention. Default: none. Keys that are no such dimension are reported to
// [otel.Handle] and left out; [Validate] refuses them.
//
//	ai.model.version            Request.ModelVersion
//	genai.quantization          Engine.Quantization
//	ai.gpu.name                 Engine.DeviceName
//	genai.user.tier             the fact UserTier of the context, see ContextWith
//	genai.prompt.length_bucket  the tokens of the prompt: 0-256, 256-1k, 1k-4k, 4k-16k,
//	                            16k-64k, 64k-256k, 256k+; 1k is 1024, and 1024 tokens
//	                            are in 1k-4k
//
// A dimension multiplies the number of series. So of each, the first 100 values of
// a process stand for themselves and later ones are _OTHER. A Tracer makes at most
// 1000 combinations of the dimensions of a request; what is beyond is recorded with
// operation, provider and model _OTHER, and without the rest.
func WithMetricDimensions(keys ...attribute.Key) Option {
	return optionFunc(func(c config) config {
		for _, key := range keys {
			kind := slices.Index(extraKeys[:], key)
			if kind < 0 {
				c.err = errors.Join(c.err, fmt.Errorf("WithMetricDimensions: %q is no dimension on request: want one of %v", key, extraKeys))
				continue
			}
			c.dimensions[kind] = true
		}
		return c
	})
}

// lengthBucket is the range that the length of a prompt falls into; empty where
// the length is unknown.
func lengthBucket(tokens int, known bool) string {
	if !known {
		return ""
	}
	for _, b := range [...]struct {
		below int
		name  string
	}{
		{256, "0-256"}, {1 << 10, "256-1k"}, {4 << 10, "1k-4k"}, {16 << 10, "4k-16k"},
		{64 << 10, "16k-64k"}, {256 << 10, "64k-256k"},
	} {
		if tokens < b.below {
			return b.name
		}
	}
	return "256k+"
}
