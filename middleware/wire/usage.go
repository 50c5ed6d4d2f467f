package wire

import "github.com/genaitrace/otelgenai/genaitrace"

// tokens is genaitrace.Usage by value: some servers send usage with every event.
type tokens struct {
	input, output, cached, cacheWrite, reasoning count
}

type count struct {
	n     int
	known bool
}

// read takes over the number that value holds.
func (c *count) read(value []byte) {
	if n, ok := wholeNumber(value); ok {
		c.n, c.known = n, true
	}
}

// add is read for a part of the count.
func (c *count) add(value []byte) {
	if n, ok := wholeNumber(value); ok {
		c.n, c.known = c.n+n, true
	}
}

// merge takes over what is known of u. Counts are cumulative, so the last one
// stands; servers that send usage with each event close with zeros.
func (t *tokens) merge(u tokens) {
	for _, f := range [...]struct{ have, told *count }{
		{&t.input, &u.input},
		{&t.output, &u.output},
		{&t.cached, &u.cached},
		{&t.cacheWrite, &u.cacheWrite},
		{&t.reasoning, &u.reasoning},
	} {
		if f.told.known && (f.told.n != 0 || !f.have.known) {
			*f.have = *f.told
		}
	}
}

// fill takes over what is known of u and was not yet.
func (t *tokens) fill(u tokens) {
	u.merge(*t)
	*t = u
}

// total is the usage as genaitrace defines it. cacheApart says that the input
// excludes the tokens of the cache.
func (t *tokens) total(cacheApart bool) genaitrace.Usage {
	input := t.input
	if cacheApart && input.known {
		input.n += t.cached.n + t.cacheWrite.n
	}
	return genaitrace.Usage{
		InputTokens:      input.pointer(),
		OutputTokens:     t.output.pointer(),
		CachedTokens:     t.cached.pointer(),
		CacheWriteTokens: t.cacheWrite.pointer(),
		ReasoningTokens:  t.reasoning.pointer(),
	}
}

func (c *count) pointer() *int {
	if !c.known {
		return nil
	}
	return new(c.n)
}

func tokensOf(u genaitrace.Usage) (t tokens) {
	for _, f := range [...]struct {
		from *int
		to   *count
	}{
		{u.InputTokens, &t.input},
		{u.OutputTokens, &t.output},
		{u.CachedTokens, &t.cached},
		{u.CacheWriteTokens, &t.cacheWrite},
		{u.ReasoningTokens, &t.reasoning},
	} {
		if f.from != nil {
			*f.to = count{*f.from, true}
		}
	}
	return t
}
