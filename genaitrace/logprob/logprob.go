// Package logprob says how sure a model was of its answer, from the logprobs that
// engines and APIs give with each token.
//
//	var stats logprob.Stats
//	for token := range tokens {
//		_ = stats.Add(logprob.Token{Logprob: token.Logprob, Top: token.TopLogprobs})
//	}
//	tracer.RecordLogprobs(ctx, &stats)
//
// # Entropy
//
// The entropy of the next token is H = −Σ p·ln p over the whole vocabulary, in nats.
// An API tells the k likeliest tokens only. They settle part of the sum; the rest has
// the mass r = 1 − Σ p, spread in an unknown way over tokens of which none is likelier
// than the k-th, with probability q.
//
// −p·ln p is concave, so the rest adds least where it is packed into as few tokens as
// possible, each at q and one with what is left over, and most where it is even:
//
//	m = ⌊r/q⌋, s = r − m·q
//	lower   −m·q·ln q − s·ln s
//	upper   −r·ln(r/n), for the n tokens that are not told
//
// Both are reached by some distribution, so no better bounds follow from the same
// numbers. Without the size of the vocabulary there is no upper bound. The bounds of
// the mean over an answer are the means of the bounds.
//
// They hold for the distribution that the logprobs are of. Most engines give that of
// the model before temperature, top-p and the like; and only if the tokens told are the
// likeliest ones.
//
// # Confidence
//
// [Stats.Confidence] is the geometric mean of the probabilities of the chosen tokens,
// exp(mean logprob), and [Stats.Perplexity] its reciprocal. It says how expected an
// answer was to the model, not whether it is right.
//
// A token takes time in proportion to k; a Stats has the same size whatever it saw.
package logprob

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// An Interval is what a number lies in. Upper is +Inf where nothing bounds it.
type Interval struct{ Lower, Upper float64 }

// rounding is how far the sum of probabilities may be beyond 1: APIs round.
const rounding = 1e-3

var errLogprobs = errors.New("logprobs contradict themselves")

// Entropy returns the bounds of the entropy of one token in nats, from the natural
// logarithms of the probabilities of the likeliest tokens, in any order. vocabulary is
// the number of all tokens; zero is unknown. It fails where the numbers cannot be those
// of a distribution.
func Entropy(top []float64, vocabulary int) (Interval, error) {
	return entropy(top, math.Inf(-1), vocabulary)
}

// entropy knows one more token, where its logprob lies below all others.
func entropy(top []float64, chosen float64, vocabulary int) (Interval, error) {
	if len(top) == 0 {
		return Interval{}, fmt.Errorf("logprob: %w: none is given", errLogprobs)
	}
	var known, mass float64
	least, tokens := math.Inf(1), len(top)
	add := func(logprob float64) bool {
		if math.IsNaN(logprob) || logprob > rounding {
			return false
		}
		p := math.Exp(min(logprob, 0))
		mass += p
		if p > 0 {
			known -= p * min(logprob, 0)
		}
		return true
	}
	for _, logprob := range top {
		if !add(logprob) {
			return Interval{}, fmt.Errorf("logprob: %w: %v is no logarithm of a probability", errLogprobs, logprob)
		}
		least = min(least, math.Exp(min(logprob, 0)))
	}
	if !math.IsInf(chosen, -1) {
		tokens++
		add(chosen)
	}
	rest := 1 - mass
	switch {
	case rest < -rounding:
		return Interval{}, fmt.Errorf("logprob: %w: the probabilities add up to %v", errLogprobs, mass)
	case rest <= 0:
		return Interval{known, known}, nil
	case least == 0:
		if rest > rounding {
			return Interval{}, fmt.Errorf("logprob: %w: tokens that are less likely than impossible have %v", errLogprobs, rest)
		}
		return Interval{known, known}, nil
	}
	untold := vocabulary - tokens
	if vocabulary > 0 && float64(untold)*least < rest-rounding {
		return Interval{}, fmt.Errorf("logprob: %w: %d tokens that are not told have %v", errLogprobs, max(untold, 0), rest)
	}
	whole := math.Floor(rest / least)
	if vocabulary > 0 {
		whole = min(whole, float64(max(untold, 0)))
	}
	packed := min(whole*least, rest) // whole is infinite where least is next to nothing
	bounds := Interval{known - packed*math.Log(least) + surprise(rest-packed), math.Inf(1)}
	if vocabulary > 0 {
		bounds.Upper = known
		if untold > 0 {
			bounds.Upper -= rest * math.Log(rest/float64(untold))
		}
		bounds.Upper = max(bounds.Upper, bounds.Lower)
	}
	return bounds, nil
}

// surprise is −p·ln p.
func surprise(p float64) float64 {
	if p <= 0 {
		return 0
	}
	return -p * math.Log(p)
}

// A Token is what is told of one generated token.
type Token struct {
	// Logprob is the natural logarithm of the probability of the chosen token.
	Logprob float64
	// Top are those of the likeliest tokens at its place, in any order; the chosen
	// token may be among them. Empty is unknown.
	Top []float64
}

// Stats is what the tokens of an answer say together. The zero value is ready to use,
// by one goroutine at a time.
type Stats struct {
	// Vocabulary is how many tokens the model knows; zero is unknown, and then
	// entropies have no upper bound. Set it before the first Add.
	Vocabulary int

	tokens, entropies  int
	sum, least         float64 // of logprobs
	lower, upper       float64 // sums
	maxLower, maxUpper float64
}

// Add takes in a token. One whose numbers contradict themselves is left out, and the
// error says why.
func (s *Stats) Add(t Token) error {
	if math.IsNaN(t.Logprob) || t.Logprob > rounding {
		return fmt.Errorf("logprob: %w: %v is no logarithm of a probability", errLogprobs, t.Logprob)
	}
	bounds := Interval{}
	if len(t.Top) > 0 {
		chosen := t.Logprob
		if chosen >= slices.Min(t.Top) {
			chosen = math.Inf(-1) // it is among them
		}
		var err error
		if bounds, err = entropy(t.Top, chosen, s.Vocabulary); err != nil {
			return err
		}
	}
	logprob := min(t.Logprob, 0)
	s.least = min(s.least, logprob)
	s.sum += logprob
	s.tokens++
	if len(t.Top) == 0 {
		return nil
	}
	s.entropies++
	s.lower += bounds.Lower
	s.upper += bounds.Upper
	s.maxLower = max(s.maxLower, bounds.Lower)
	s.maxUpper = max(s.maxUpper, bounds.Upper)
	return nil
}

// Tokens returns how many tokens were taken in.
func (s *Stats) Tokens() int { return s.tokens }

// MeanEntropy returns the bounds of the mean entropy of the tokens in nats, over those
// whose likeliest tokens were told, and whether there was one.
func (s *Stats) MeanEntropy() (Interval, bool) {
	if s.entropies == 0 {
		return Interval{}, false
	}
	n := float64(s.entropies)
	return Interval{s.lower / n, s.upper / n}, true
}

// MaxEntropy returns the bounds of the highest entropy of a token in nats, and whether
// one was told.
func (s *Stats) MaxEntropy() (Interval, bool) {
	return Interval{s.maxLower, s.maxUpper}, s.entropies > 0
}

// MeanLogprob returns the mean logprob of the chosen tokens, and whether there is one.
func (s *Stats) MeanLogprob() (float64, bool) {
	if s.tokens == 0 {
		return 0, false
	}
	return s.sum / float64(s.tokens), true
}

// Confidence returns the geometric mean of the probabilities of the chosen tokens, from
// 0 to 1, and whether there is one.
func (s *Stats) Confidence() (float64, bool) {
	mean, ok := s.MeanLogprob()
	return math.Exp(mean), ok
}

// Perplexity returns exp(−mean logprob), 1 or more, and whether there is one.
func (s *Stats) Perplexity() (float64, bool) {
	mean, ok := s.MeanLogprob()
	return math.Exp(-mean), ok
}

// MinProbability returns the probability of the least expected token, and whether there
// is one.
func (s *Stats) MinProbability() (float64, bool) {
	return math.Exp(s.least), s.tokens > 0
}
