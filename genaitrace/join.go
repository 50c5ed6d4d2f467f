package genaitrace

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// JoinCall is StartCall for a transport below a client library that may make a
// span of the call itself, as anthropic-sdk-go does. Where the span of ctx is such
// a one (it records, it is CLIENT, and its gen_ai.operation.name is a call of a
// model), no second span is made: the Call adds to that span what it lacks, and
// neither renames nor ends it. What the span has by then stays as it is. Metrics
// are recorded as for StartCall.
//
// Its owner may end the span before the Call ends, and decides about its status:
// so the time to first token is written when it is known, and the rest with the
// Call's end. What an attempt without an answer says of itself is left to the
// owner.
//
// A span of another SDK may not tell what it is. Then the call has a span below it
// that writes ai.tokens.* in place of gen_ai.usage.*, which the other may have.
func (t *Tracer) JoinCall(ctx context.Context, req Request) (context.Context, *Call) {
	outer := trace.SpanFromContext(ctx)
	if t == nil || t.metrics == nil || !outer.IsRecording() || ctx.Value(callKey) != nil {
		return t.StartCall(ctx, req)
	}
	their, ok := outer.(readableSpan)
	switch {
	case !ok:
		return t.StartCall(propagation.ContextWithCallerMark(ctx), req)
	case their.SpanKind() != trace.SpanKindClient || !isModelCall(their.Attributes()):
		return t.StartCall(ctx, req)
	}
	req.clean()
	arrived, now := t.arrival(ctx, req.Arrived)
	joined := &joinedSpan{Span: outer, their: their, own: make(map[attribute.Key]bool)}
	c := &Call{
		t: t, ctx: ctx, span: joined, joined: joined, req: req, inner: isInner(ctx),
		base: now, after: now.Sub(arrived), began: int64(now.Sub(arrived)),
	}
	joined.SetAttributes(t.startAttributes(ctx, &req, req.callRole())...)
	c.run = runOf(ctx, &req)
	c.clock.start(c.base, c.after, t.stalls)
	c.underWay = t.metrics.enter(ctx, callSide, &req)
	c.ctx = context.WithValue(ctx, callKey, c)
	return c.ctx, c
}

// Joined reports whether the call joined the span of another instrumentation; see
// [Tracer.JoinCall].
func (c *Call) Joined() bool { return c != nil && c.joined != nil }

// tellFirst writes the time to first token at once, and how the call ends if its
// reader leaves without another word: then the span may have ended before the
// transport hears of it.
func (c *Call) tellFirst(at int64) {
	c.joined.told = true
	c.span.SetAttributes(c.t.words.Rewrite([]attribute.KeyValue{
		semconv.LLMTTFTMs(ms(at)), semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalClientCancelled),
	})...)
}

// readableSpan is what a span of the SDK tells of itself.
type readableSpan interface {
	SpanKind() trace.SpanKind
	Attributes() []attribute.KeyValue
}

// isModelCall reports whether a CLIENT span with the attributes is the call of a
// model. It could as well be that of an agent or a tool elsewhere.
func isModelCall(attrs []attribute.KeyValue) bool {
	return slices.ContainsFunc(attrs, func(a attribute.KeyValue) bool {
		if a.Key != genaiconv.OperationNameKey {
			return false
		}
		switch genaiconv.OperationNameAttr(a.Value.AsString()) {
		case genaiconv.OperationNameChat, genaiconv.OperationNameTextCompletion,
			genaiconv.OperationNameGenerateContent, genaiconv.OperationNameEmbeddings:
			return true
		}
		return false
	})
}

// A joinedSpan is the span of another instrumentation, to which we only add.
type joinedSpan struct {
	trace.Span

	their readableSpan
	told  bool // for the goroutine that reads the stream

	mu  sync.Mutex
	own map[attribute.Key]bool // keys that are ours
}

// SetAttributes adds what the span lacks.
func (s *joinedSpan) SetAttributes(attrs ...attribute.KeyValue) {
	if len(attrs) == 0 || !s.IsRecording() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[attribute.Key]bool, 16)
	for _, a := range s.their.Attributes() {
		there[a.Key] = true
	}
	ours := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		if !there[a.Key] || s.own[a.Key] {
			s.own[a.Key] = true
			ours = append(ours, a)
		}
	}
	s.Span.SetAttributes(ours...)
}

// SetStatus notes a failure that the owner may not see; its own word comes later.
func (s *joinedSpan) SetStatus(code codes.Code, description string) {
	if code == codes.Error {
		s.Span.SetStatus(code, description)
	}
}

func (s *joinedSpan) SetName(string)             {}
func (s *joinedSpan) End(...trace.SpanEndOption) {}

// unanswered reports whether a joined call failed before anything came of the
// answer: another attempt may follow, of which the span shall tell alone.
func (c *Call) unanswered(how outcome, stats *clockStats) bool {
	return c.joined != nil && how.isError() && stats.ticks == 0
}
