package logprob_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/genaitrace/logprob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// distribution is one over a vocabulary, from flat to peaked, as logarithms in falling
// order, with its entropy.
func distribution(r *rand.Rand, vocabulary int) (logprobs []float64, entropy float64) {
	temperature := math.Exp(r.Float64()*6 - 3)
	weights := make([]float64, vocabulary)
	total := 0.0
	for i := range weights {
		weights[i] = math.Exp(r.NormFloat64() * 3 / temperature)
		total += weights[i]
	}
	for _, w := range weights {
		p := w / total
		logprobs = append(logprobs, math.Log(p))
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	slices.SortFunc(logprobs, func(a, b float64) int { return cmp.Compare(b, a) })
	return logprobs, entropy
}

// The true entropy lies within the bounds, whatever the distribution and k; and the
// bounds close in on it as k grows.
func TestTheTrueEntropyLiesWithinTheBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		vocabulary := 2 + r.IntN(400)
		all, want := distribution(r, vocabulary)
		width := math.Inf(1)
		for k := 1; k <= vocabulary; k = k*2 + r.IntN(2) {
			top := slices.Clone(all[:k])
			r.Shuffle(k, func(i, j int) { top[i], top[j] = top[j], top[i] })
			got, err := logprob.Entropy(top, vocabulary)
			require.NoError(t, err, "k=%d of %d", k, vocabulary)
			assert.LessOrEqual(t, got.Lower, want+1e-9)
			assert.GreaterOrEqual(t, got.Upper, want-1e-9)
			assert.LessOrEqual(t, got.Upper-got.Lower, width+1e-9, "more is known")
			width = got.Upper - got.Lower

			open, err := logprob.Entropy(top, 0)
			require.NoError(t, err)
			assert.InDelta(t, got.Lower, open.Lower, 1e-9)
		}
		got, err := logprob.Entropy(all, vocabulary)
		require.NoError(t, err)
		assert.InDelta(t, want, got.Lower, 1e-6)
		assert.InDelta(t, want, got.Upper, 1e-6)
	}
}

// Each bound is the entropy of some distribution with these top tokens.
func TestTheBoundsAreReached(t *testing.T) {
	ln := math.Log
	h := func(p ...float64) (sum float64) {
		for _, p := range p {
			sum -= p * ln(p)
		}
		return sum
	}
	for name, c := range map[string]struct {
		top        []float64
		vocabulary int
		lower      float64
		upper      float64
	}{
		"packed":   {[]float64{ln(.5), ln(.2)}, 12, h(.5, .2, .2, .1), h(.5, .2) - .3*ln(.03)},
		"even":     {[]float64{ln(.25)}, 4, h(.25, .25, .25, .25), h(.25, .25, .25, .25)},
		"all":      {[]float64{ln(.75), ln(.25)}, 2, h(.75, .25), h(.75, .25)},
		"certain":  {[]float64{0}, 1000, 0, 0},
		"rounded":  {[]float64{1e-7, -9999}, 1000, 0, 0},
		"unknown":  {[]float64{ln(.6)}, 0, h(.6, .4), math.Inf(1)},
		"tiny":     {[]float64{ln(.5), -744}, 0, h(.5) - .5*ln(math.Exp(-744)), math.Inf(1)},
		"one left": {[]float64{ln(.6), ln(.3)}, 3, h(.6, .3, .1), h(.6, .3, .1)},
	} {
		got, err := logprob.Entropy(c.top, c.vocabulary)
		require.NoError(t, err, name)
		assert.InDelta(t, c.lower, got.Lower, 1e-6, name)
		if math.IsInf(c.upper, 1) {
			assert.True(t, math.IsInf(got.Upper, 1), name)
			continue
		}
		assert.InDelta(t, c.upper, got.Upper, 1e-6, name)
	}
}

func TestNumbersThatContradictThemselvesAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		top        []float64
		vocabulary int
	}{
		"none":                 {nil, 10},
		"no number":            {[]float64{math.NaN()}, 10},
		"a probability over 1": {[]float64{0.5}, 10},
		"too much":             {[]float64{math.Log(.7), math.Log(.7)}, 10},
		"too few tokens":       {[]float64{math.Log(.1), math.Log(.1)}, 4},
		"less than impossible": {[]float64{math.Log(.5), -9999}, 0},
	} {
		_, err := logprob.Entropy(c.top, c.vocabulary)
		require.Error(t, err, name)
		s := logprob.Stats{Vocabulary: c.vocabulary}
		if len(c.top) > 0 {
			require.Error(t, s.Add(logprob.Token{Logprob: -1, Top: c.top}), name)
		}
		assert.Zero(t, s.Tokens(), name)
	}
	var s logprob.Stats
	require.Error(t, s.Add(logprob.Token{Logprob: math.NaN()}))
	require.Error(t, s.Add(logprob.Token{Logprob: 0.1}))
	_, ok := s.MeanEntropy()
	assert.False(t, ok)
	_, ok = s.Confidence()
	assert.False(t, ok)
}

// The bounds of a mean hold the mean, also where the chosen token is none of the
// likeliest: it is one more that is known.
func TestTheMeanLiesWithinItsBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const vocabulary = 300
	s := logprob.Stats{Vocabulary: vocabulary}
	var entropies, logprobs, highest float64
	const n = 500
	for range n {
		all, h := distribution(r, vocabulary)
		chosen := all[r.IntN(vocabulary)]
		require.NoError(t, s.Add(logprob.Token{Logprob: chosen, Top: all[:5]}))
		entropies, logprobs, highest = entropies+h, logprobs+chosen, max(highest, h)
	}
	got, ok := s.MeanEntropy()
	require.True(t, ok)
	assert.LessOrEqual(t, got.Lower, entropies/n)
	assert.GreaterOrEqual(t, got.Upper, entropies/n)
	most, _ := s.MaxEntropy()
	assert.LessOrEqual(t, most.Lower, highest)
	assert.GreaterOrEqual(t, most.Upper, highest)
	mean, _ := s.MeanLogprob()
	assert.InDelta(t, logprobs/n, mean, 1e-9)
	confidence, _ := s.Confidence()
	perplexity, _ := s.Perplexity()
	assert.InDelta(t, 1, confidence*perplexity, 1e-9)
	assert.Equal(t, n, s.Tokens())
}

func TestAStatsTakesNoMemory(t *testing.T) {
	var s logprob.Stats
	token := logprob.Token{Logprob: -0.1, Top: []float64{-0.1, -3, -4}}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = s.Add(token) }))
}

func FuzzEntropy(f *testing.F) {
	f.Add(-0.1, -2.5, -4.0, 100)
	f.Add(0.0, -9999.0, math.Inf(-1), 0)
	f.Add(-0.7, -0.7, -50.0, 3)
	f.Fuzz(func(t *testing.T, a, b, c float64, vocabulary int) {
		got, err := logprob.Entropy([]float64{a, b, c}, vocabulary)
		if err != nil {
			return
		}
		require.False(t, math.IsNaN(got.Lower) || math.IsNaN(got.Upper), "%v", got)
		require.GreaterOrEqual(t, got.Lower, 0.0)
		require.GreaterOrEqual(t, got.Upper, got.Lower)
		if vocabulary > 0 {
			require.LessOrEqual(t, got.Lower, math.Log(float64(max(vocabulary, 3)))+0.01)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	var s logprob.Stats
	token := logprob.Token{Logprob: -0.1, Top: []float64{-0.1, -3, -4, -5, -6}}
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Add(token)
	}
}

func ExampleStats() {
	stats := logprob.Stats{Vocabulary: 151_936}
	for _, token := range []logprob.Token{
		{Logprob: -0.02, Top: []float64{-0.02, -4.5, -6.1}},
		{Logprob: -1.2, Top: []float64{-1.0, -1.2, -2.3}},
	} {
		if err := stats.Add(token); err != nil {
			fmt.Println(err)
		}
	}
	entropy, _ := stats.MeanEntropy()
	confidence, _ := stats.Confidence()
	fmt.Printf("entropy %.2f to %.2f nats, confidence %.2f\n", entropy.Lower, entropy.Upper, confidence)
	// Output: entropy 0.82 to 2.12 nats, confidence 0.54
}
