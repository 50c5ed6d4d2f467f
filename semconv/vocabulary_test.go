package semconv_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestVocabulariesHaveNames(t *testing.T) {
	for _, v := range []semconv.Vocabulary{semconv.Standard, semconv.Both, semconv.House, semconv.Legacy} {
		assert.True(t, v.Valid())
		parsed, err := semconv.ParseVocabulary(v.String())
		require.NoError(t, err)
		assert.Equal(t, v, parsed)
	}
	assert.False(t, semconv.Vocabulary(4).Valid())
	assert.Equal(t, "Vocabulary(4)", semconv.Vocabulary(4).String())
	_, err := semconv.ParseVocabulary("")
	assert.ErrorContains(t, err, "want one of standard, both, house, legacy")
}

// Every house key that has an official twin stands for it in House.
func TestRewriteKnowsEveryTwin(t *testing.T) {
	n := 0
	for a := range semconv.All() {
		if a.Origin != semconv.OriginHouse || a.Official == "" || a.Deprecated != "" {
			continue
		}
		n++
		official := []attribute.KeyValue{a.Official.String("x")}
		assert.Equal(t, a.Key, semconv.House.Rewrite(official)[0].Key)
	}
	assert.GreaterOrEqual(t, n, 9)
}

func TestRewriteConvertsUnitsExactly(t *testing.T) {
	for _, ns := range []int64{1, 999, 350_000_000, 1_234_567_891, 86_400_000_000_000} {
		official := []attribute.KeyValue{genaiconv.ResponseTimeToFirstChunk(float64(ns) / 1e9)}
		assert.Equal(t, []attribute.KeyValue{semconv.AIResponseDelayMs(float64(ns) / 1e6)}, semconv.House.Rewrite(official))
	}
}

func TestRewriteConvertsWholeSecondsToo(t *testing.T) {
	official := []attribute.KeyValue{genaiconv.ResponseTimeToFirstChunkKey.Int(2)}
	assert.Equal(t, []attribute.KeyValue{semconv.AIResponseDelayMs(2000)}, semconv.House.Rewrite(official))
	count := []attribute.KeyValue{genaiconv.UsageInputTokens(2)}
	assert.Equal(t, []attribute.KeyValue{semconv.AITokensInput(2)}, semconv.House.Rewrite(count))
}

func TestStandardCostsNothing(t *testing.T) {
	attrs := []attribute.KeyValue{genaiconv.RequestModel("m")}
	assert.Zero(t, testing.AllocsPerRun(100, func() { attrs = semconv.Standard.Rewrite(attrs) }))
}

func ExampleVocabulary_Rewrite() {
	attrs := []attribute.KeyValue{genaiconv.RequestModel("qwen2.5"), genaiconv.ResponseTimeToFirstChunk(0.35)}
	for _, kv := range semconv.House.Rewrite(attrs) {
		fmt.Println(kv.Key, kv.Value.AsInterface())
	}
	// Output:
	// ai.model.name qwen2.5
	// ai.response.delay_ms 350
}
