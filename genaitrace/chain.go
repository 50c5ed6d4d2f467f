package genaitrace

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// chainLinks are links to what a span under the last hop of a prompt chain goes back
// to: that hop, where it is not the span's parent anyway, and the hop's causes.
func chainLinks(ctx context.Context, chain *propagation.PromptChain) []trace.Link {
	parent := trace.SpanContextFromContext(ctx).SpanID()
	links := chain.Links()
	if len(chain.Hops) > 0 {
		if last := chain.Hops[len(chain.Hops)-1].SpanID; last.IsValid() {
			links = append(links, trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: chain.TraceID, SpanID: last, Remote: true,
			})})
		}
	}
	return slices.DeleteFunc(links, func(l trace.Link) bool { return l.SpanContext.SpanID() == parent })
}

// followChain adds to the start of a span what a prompt chain says of it.
func followChain(ctx context.Context, options []trace.SpanStartOption) ([]trace.SpanStartOption, bool) {
	chain, ok := propagation.PromptChainFromContext(ctx)
	if !ok {
		return options, false
	}
	options = append(options, trace.WithAttributes(chainAttributes(&chain)...))
	if links := chainLinks(ctx, &chain); len(links) > 0 {
		options = append(options, trace.WithLinks(links...))
	}
	return options, true
}

// goOn makes the current span the next hop of the chain, caused by the hop before.
func goOn(ctx context.Context, operation string) context.Context {
	chain, _ := propagation.PromptChainFromContext(ctx)
	name := factOf(ctx, promptName)
	if name == "" {
		name = operation
	}
	var causes []trace.SpanID
	if len(chain.Hops) > 0 {
		causes = append(causes, chain.Hops[len(chain.Hops)-1].SpanID)
	}
	return propagation.ContextWithHop(ctx, name, causes...)
}

// chainAttributes are the names of the hops and the hash of the context. Both may come
// from another process: names are redacted, and a hash that looks like none is left out.
func chainAttributes(chain *propagation.PromptChain) []attribute.KeyValue {
	names := make([]string, 0, len(chain.Hops))
	for _, hop := range chain.Hops {
		names = append(names, content.Redact(hop.Name))
	}
	var attrs []attribute.KeyValue
	if len(names) > 0 {
		attrs = append(attrs, semconv.GenAIPromptChain(names...))
	}
	if isContextHash(chain.ContextHash) {
		attrs = append(attrs, semconv.GenAIContextHash(chain.ContextHash))
	}
	return attrs
}

// isContextHash reports whether s is a hash in hex, after the name of its algorithm or
// without one.
func isContextHash(s string) bool {
	if name, hash, ok := strings.Cut(s, ":"); ok && len(name) <= 16 {
		s = hash
	}
	return isHash(s)
}

// appendChain appends the chain that led to the span of ctx, which is its last hop.
func appendChain(attrs []attribute.KeyValue, ctx context.Context) []attribute.KeyValue { //nolint:revive // attrs come first where they are appended to
	chain, ok := propagation.PromptChainFromContext(ctx)
	if !ok {
		return attrs
	}
	if last := len(chain.Hops) - 1; last >= 0 && chain.Hops[last].SpanID == trace.SpanContextFromContext(ctx).SpanID() {
		chain.Hops = chain.Hops[:last]
	}
	return append(attrs, chainAttributes(&chain)...)
}
