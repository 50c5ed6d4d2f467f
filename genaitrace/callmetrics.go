package genaitrace

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// record writes the metrics of a caller or of a gateway.
func (c *Call) record(stats *clockStats, how outcome, errType string, duration int64) {
	if c.gateway {
		c.recordGateway(stats)
		return
	}
	if !c.t.metrics.callEnabled(c.ctx) {
		return
	}
	ctx, m := c.ctx, &c.t.metrics.client
	s := c.series(callSide)
	if how.isError() {
		s.errType = errType
	}
	with := c.t.metrics.sets.of(s)
	if stats.outputs > 0 {
		c.t.metrics.ttft.Record(ctx, seconds(stats.firstOutput), with.house.record...)
	}
	if stats.ticks > 0 {
		m.firstChunk.Record(ctx, seconds(stats.first), with.plain.record...)
		c.recordGaps(stats, with)
	}
	kind := callKinds[string(c.req.Operation)]
	m.ofKind(kind).Record(ctx, seconds(duration), with.outcome.record...)
	switch {
	case c.inner, c.nested: // the outer call counts them, sampled or not
	case kind == inferenceCall:
		m.recordUsage(ctx, with, &c.usage)
	case kind == embeddingsCall && c.usage.input.known:
		m.recordEmbedded(ctx, with, c.usage.input.n)
	}
}

func (c *Call) recordGateway(stats *clockStats) {
	if stats.outputs > 0 && c.t.metrics.ttft.Enabled(c.ctx) {
		with := c.t.metrics.sets.of(c.series(gatewaySide))
		c.t.metrics.ttft.Record(c.ctx, seconds(stats.firstOutput), with.house.record...)
	}
}

func (c *Call) series(side side) series {
	s := seriesOf(c.ctx, side, &c.req)
	s.responseModel = c.response
	s.extra[extraLength] = lengthBucket(c.usage.input.n, c.usage.input.known)
	return s
}

// recordGaps writes one value for each chunk after the first. The SDK's cost of a
// value grows with its attributes, so these carry only those that the conventions
// require, and only the longest gap offers the span as its exemplar.
func (c *Call) recordGaps(stats *clockStats, with *sets) {
	perChunk := c.t.metrics.client.perChunk
	if stats.ticks < 2 || !perChunk.Enabled(c.ctx) {
		return
	}
	opts := with.gap.record
	apart, longest := context.Background(), int64(-1)
	stats.eachGap(func(ns int64) {
		if ns <= longest {
			perChunk.Record(apart, seconds(ns), opts...)
			return
		}
		if longest >= 0 {
			perChunk.Record(apart, seconds(longest), opts...)
		}
		longest = ns
	})
	perChunk.Record(c.ctx, seconds(longest), opts...)
}

// callKind says which of the official durations a call has.
type callKind uint8

const (
	inferenceCall callKind = iota
	embeddingsCall
	otherCall
)

// callKinds are the kinds of the operations that the conventions know; any other
// one is taken for an inference.
var callKinds = func() map[string]callKind {
	kinds := map[string]callKind{}
	operation, _ := semconv.Lookup(genaiconv.OperationNameKey)
	for _, known := range operation.Members {
		kinds[known.Value] = otherCall
	}
	for span, kind := range map[string]callKind{
		"gen_ai.client.inference": inferenceCall, "gen_ai.client.embeddings": embeddingsCall,
	} {
		known, _ := semconv.LookupSpan(span)
		for _, operation := range known.Operations {
			kinds[operation] = kind
		}
	}
	return kinds
}()

func (m *clientMetrics) ofKind(kind callKind) metric.Float64Histogram {
	switch kind {
	case embeddingsCall:
		return m.embeddings
	case otherCall:
		return m.other
	default:
		return m.duration
	}
}

// recordEmbedded writes the tokens of an embeddings call, which generates none.
func (m *clientMetrics) recordEmbedded(ctx context.Context, with *sets, n int) {
	if m.legacyTokens != nil {
		m.legacyTokens.Record(ctx, int64(n), with.input.record...)
		return
	}
	m.embeddingTokens.Record(ctx, int64(n), with.plain.record...)
}

// recordUsage writes the tokens of a model call. The conventions ask for a 0 where no
// usage came: in the counters of input and output, where it adds nothing and a
// series without usage shows. In the histograms it would be a length that no
// request had, so there unknown stays absent.
func (m *clientMetrics) recordUsage(ctx context.Context, with *sets, u *usage) {
	if m.legacyTokens != nil {
		if u.input.known {
			m.legacyTokens.Record(ctx, int64(u.input.n), with.input.record...)
		}
		if u.output.known {
			m.legacyTokens.Record(ctx, int64(u.output.n), with.output.record...)
		}
		return
	}
	m.input.Add(ctx, int64(u.input.n), with.usage.add...)
	m.output.Add(ctx, int64(u.output.n), with.usage.add...)
	for _, part := range [...]struct {
		count
		counter metric.Int64Counter
	}{{u.cached, m.cacheRead}, {u.cacheWrite, m.cacheWrite}, {u.reasoning, m.ofReasoning}} {
		if part.known {
			part.counter.Add(ctx, int64(part.n), with.usage.add...)
		}
	}
	if u.input.known {
		m.inputTokens.Record(ctx, int64(u.input.n), with.outcome.record...)
	}
	if u.output.known {
		m.outputTokens.Record(ctx, int64(u.output.n), with.outcome.record...)
	}
}
