package propagation

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
)

const (
	// MaxHops is the number of hops that a [PromptChain] keeps: the newest.
	MaxHops = 32
	// maxCauses bounds the causes of a hop.
	maxCauses = 32
	// maxHopName and maxContextHash are in bytes.
	maxHopName     = 128
	maxContextHash = 128
)

// A Hop is one step of a prompt on its way: a router, a rewriter, a model.
type Hop struct {
	// Name says what the step is, in at most 128 bytes, such as "router". It is
	// no place for the prompt.
	Name string
	// SpanID is the span of the step, invalid if unknown.
	SpanID trace.SpanID
	// Causes are spans of the same trace whose results went into the step, at
	// most 32: retrievals, tool calls, the answers of other models.
	Causes []trace.SpanID
}

// A PromptChain says through which steps a prompt came to where it is. It belongs
// to one trace. Use it as a value: nothing changes it.
type PromptChain struct {
	TraceID trace.TraceID
	// Hops are the steps, oldest first. Do not change them; see [ContextWithHop].
	Hops []Hop
	// ContextHash is a hash of what was put into the prompt's context, as the last
	// hop knows it, such as "sha256:…", at most 128 printable ASCII characters. A
	// receiver that computes another one knows that the context changed on the
	// way. Use a keyed hash where the context could be guessed.
	ContextHash string
}

// Links returns a link for each cause of the last hop, for the span of that hop.
func (c PromptChain) Links() []trace.Link {
	if len(c.Hops) == 0 {
		return nil
	}
	causes := c.Hops[len(c.Hops)-1].Causes
	links := make([]trace.Link, 0, len(causes))
	for _, id := range causes {
		links = append(links, trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: c.TraceID, SpanID: id, Remote: true,
		})})
	}
	return links
}

// Backtrace returns the hops that the span caused to be, directly or through
// others: first the hop of the span itself, then its causes, the nearest first.
// Each is there once, also where causes go in a circle. Causes that are no hop of
// the chain are not known to it. It is empty if the span is no hop.
func (c PromptChain) Backtrace(span trace.SpanID) []Hop {
	var found []Hop
	seen := map[trace.SpanID]bool{}
	for queue := []trace.SpanID{span}; len(queue) > 0; queue = queue[1:] {
		id := queue[0]
		if seen[id] || !id.IsValid() {
			continue
		}
		seen[id] = true
		for _, hop := range c.Hops {
			if hop.SpanID == id {
				found = append(found, hop)
				queue = append(queue, hop.Causes...)
			}
		}
	}
	return found
}

// ContextWithHop returns ctx with its prompt chain, or a new one, gone on by a hop:
// that of the current span. Without a span in ctx it is ctx itself.
//
//	ctx, span := tracer.Start(ctx, "answer")
//	ctx = propagation.ContextWithHop(ctx, "answer", retrieval.SpanID(), search.SpanID())
func ContextWithHop(ctx context.Context, name string, causes ...trace.SpanID) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	c, _ := PromptChainFromContext(ctx)
	c.TraceID = sc.TraceID()
	c.Hops = append(slices.Clip(c.Hops), Hop{Name: name, SpanID: sc.SpanID(), Causes: causes})
	return ContextWithPromptChain(ctx, c)
}

// ContextWithPromptChain returns ctx with c, made valid: the newest hops, names
// and causes without what is too much, a hash only if it is one. It is ctx itself
// where c is not of the trace of ctx.
func ContextWithPromptChain(ctx context.Context, c PromptChain) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() || c.TraceID != sc.TraceID() {
		return ctx
	}
	c = c.valid()
	var st state
	if before := stateOf(ctx); before != nil {
		st = *before
	}
	st.chain = &c
	return withState(ctx, st)
}

// PromptChainFromContext returns the chain of the trace of ctx, and whether there
// is one.
func PromptChainFromContext(ctx context.Context) (PromptChain, bool) {
	st := stateOf(ctx)
	if st == nil || st.chain == nil || st.chain.TraceID != trace.SpanContextFromContext(ctx).TraceID() {
		return PromptChain{}, false
	}
	return *st.chain, true
}

// valid returns c within its bounds, without a change to what others may hold.
func (c PromptChain) valid() PromptChain {
	if !isPrintable(c.ContextHash) || len(c.ContextHash) > maxContextHash {
		c.ContextHash = ""
	}
	hops := make([]Hop, 0, MaxHops)
	for _, hop := range c.Hops[max(0, len(c.Hops)-MaxHops):] {
		hops = append(hops, hop.valid())
	}
	c.Hops = hops
	return c
}

func (h Hop) valid() Hop {
	h.Name = cutText(h.Name, maxHopName)
	var causes []trace.SpanID
	for _, id := range h.Causes {
		if id.IsValid() && len(causes) < maxCauses && !slices.Contains(causes, id) {
			causes = append(causes, id)
		}
	}
	h.Causes = causes
	return h
}

// cutText returns s as valid UTF-8 of at most size bytes.
func cutText(s string, size int) string {
	s = strings.ToValidUTF8(s[:min(len(s), 4*size)], "\uFFFD")
	if len(s) > size {
		for !utf8.RuneStart(s[size]) {
			size--
		}
		s = s[:size]
	}
	return s
}

// isPrintable reports whether s is printable ASCII.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
