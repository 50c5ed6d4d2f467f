package genaitrace

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// metrics holds every instrument of a Tracer, and the attribute sets that they are
// recorded with. None is nil but for those of the other vocabulary.
type metrics struct {
	server serverMetrics
	client clientMetrics
	ttft   metric.Float64Histogram
	active metric.Int64UpDownCounter // of hosts and gateways

	work    workMetrics // of operations
	signals signalMetrics

	faults   metric.Int64Counter
	reported [faultKinds]atomic.Bool // faults are logged once a kind

	sets *setCache
}

// serverMetrics are those of the process that runs the model.
type serverMetrics struct {
	duration, ttft, perToken   metric.Float64Histogram
	queueWait, prefill, decode metric.Float64Histogram
	rate, hitRatio             metric.Float64Histogram
	tokens, stalls             metric.Int64Counter
	batchSize                  metric.Int64Histogram
}

// clientMetrics are those of a caller.
type clientMetrics struct {
	duration, embeddings, other metric.Float64Histogram // by operation
	firstChunk, perChunk        metric.Float64Histogram
	active                      metric.Int64UpDownCounter

	// By direction; nil in Legacy, which has legacyTokens instead.
	inputTokens, outputTokens          metric.Int64Histogram
	embeddingTokens                    metric.Int64Histogram
	input, output                      metric.Int64Counter
	cacheRead, cacheWrite, ofReasoning metric.Int64Counter
	legacyTokens                       metric.Int64Histogram
}

func newMetrics(m metric.Meter, words semconv.Vocabulary, chosen [extraKinds]bool) *metrics {
	s := &metrics{
		ttft:    instrument(semconv.NewGenAITimeToFirstToken(m)),
		active:  instrument(semconv.NewGenAIActiveRequests(m)),
		faults:  instrument(semconv.NewGenAITelemetryFaults(m)),
		sets:    newSetCache(words, chosen),
		work:    newWorkMetrics(m, words),
		signals: newSignalMetrics(m),
		server: serverMetrics{
			duration:  instrument(genaiconv.NewServerRequestDuration(m)),
			ttft:      instrument(genaiconv.NewServerTimeToFirstToken(m)),
			perToken:  instrument(genaiconv.NewServerTimePerOutputToken(m)),
			queueWait: instrument(semconv.NewGenAIQueueWait(m)),
			prefill:   instrument(semconv.NewGenAIPrefillDuration(m)),
			decode:    instrument(semconv.NewGenAIDecodeDuration(m)),
			rate:      instrument(semconv.NewGenAITokenRate(m)),
			hitRatio:  instrument(semconv.NewGenAIKVCacheHitRatio(m)),
			tokens:    instrument(semconv.NewGenAITokens(m)),
			stalls:    instrument(semconv.NewGenAITokenStalls(m)),
			batchSize: instrument(semconv.NewGenAIBatchSize(m)),
		},
		client: clientMetrics{
			active: instrument(semconv.NewGenAIActiveCalls(m)),
			other:  instrument(genaiconv.NewClientOperationDuration(m)),
		},
	}
	c := &s.client
	if words == semconv.Legacy {
		c.duration, c.embeddings = c.other, c.other
		c.firstChunk = instrument(genaiconv.NewClientOperationTimeToFirstChunk(m)) //nolint:staticcheck // the older name is what Legacy is for
		c.perChunk = instrument(genaiconv.NewClientOperationTimePerOutputChunk(m)) //nolint:staticcheck // the older name is what Legacy is for
		c.legacyTokens = instrument(genaiconv.NewClientTokenUsage(m))              //nolint:staticcheck // the older name is what Legacy is for
		return s
	}
	c.duration = instrument(genaiconv.NewClientInferenceDuration(m))
	c.embeddings = instrument(genaiconv.NewClientEmbeddingsDuration(m))
	c.firstChunk = instrument(genaiconv.NewClientInferenceTimeToFirstChunk(m))
	c.perChunk = instrument(genaiconv.NewClientInferenceTimePerOutputChunk(m))
	c.inputTokens = instrument(genaiconv.NewClientInferenceOperationInputTokens(m))
	c.outputTokens = instrument(genaiconv.NewClientInferenceOperationOutputTokens(m))
	c.embeddingTokens = instrument(genaiconv.NewClientEmbeddingsOperationInputTokens(m))
	c.input = instrument(genaiconv.NewClientInferenceUsageInputTokens(m))
	c.output = instrument(genaiconv.NewClientInferenceUsageOutputTokens(m))
	c.cacheRead = instrument(genaiconv.NewClientInferenceUsageCacheReadInputTokens(m))
	c.cacheWrite = instrument(genaiconv.NewClientInferenceUsageCacheWriteInputTokens(m))
	c.ofReasoning = instrument(genaiconv.NewClientInferenceUsageReasoningOutputTokens(m))
	return s
}

// instrument reports what went wrong; the instrument can be used all the same.
func instrument[T any, I interface{ Inst() T }](i I, err error) T {
	if err != nil {
		otel.Handle(fmt.Errorf("genaitrace: %w", err))
	}
	return i.Inst()
}

// serverEnabled reports whether any metric of an inference would be recorded.
func (m *metrics) serverEnabled(ctx context.Context) bool {
	s := &m.server
	return s.duration.Enabled(ctx) || s.ttft.Enabled(ctx) || s.perToken.Enabled(ctx) || m.active.Enabled(ctx) ||
		s.tokens.Enabled(ctx) || s.queueWait.Enabled(ctx) || s.prefill.Enabled(ctx) || s.decode.Enabled(ctx) ||
		s.rate.Enabled(ctx) || s.hitRatio.Enabled(ctx) || s.stalls.Enabled(ctx)
}

// callEnabled reports whether any metric of a call would be recorded.
func (m *metrics) callEnabled(ctx context.Context) bool {
	c := &m.client
	return c.duration.Enabled(ctx) || c.firstChunk.Enabled(ctx) || c.perChunk.Enabled(ctx) || m.ttft.Enabled(ctx) ||
		c.active.Enabled(ctx) || c.tokensEnabled(ctx) || c.embeddings.Enabled(ctx) || c.other.Enabled(ctx)
}

func (c *clientMetrics) tokensEnabled(ctx context.Context) bool {
	if c.legacyTokens != nil {
		return c.legacyTokens.Enabled(ctx)
	}
	return c.input.Enabled(ctx) || c.output.Enabled(ctx) || c.inputTokens.Enabled(ctx) || c.outputTokens.Enabled(ctx) ||
		c.cacheRead.Enabled(ctx) || c.cacheWrite.Enabled(ctx) || c.ofReasoning.Enabled(ctx) || c.embeddingTokens.Enabled(ctx)
}

func (m *metrics) gatewayEnabled(ctx context.Context) bool {
	return m.ttft.Enabled(ctx) || m.active.Enabled(ctx)
}

const faultKinds = 9

// faultIndex numbers the kinds of faults.
func faultIndex(kind semconv.GenAIFaultAttr) int {
	switch kind {
	case semconv.GenAIFaultArrival:
		return 1
	case semconv.GenAIFaultCount:
		return 2
	case semconv.GenAIFaultTime:
		return 3
	case semconv.GenAIFaultParse:
		return 4
	case semconv.GenAIFaultPanic:
		return 5
	case semconv.GenAIFaultParent:
		return 6
	case semconv.GenAIFaultContent:
		return 7
	case semconv.GenAIFaultLate:
		return 8
	case semconv.GenAIFaultInstrument:
	}
	return 0
}

// fault counts an input that had to be dropped, and reports the first one of
// each kind to [otel.Handle].
func (m *metrics) fault(ctx context.Context, kind semconv.GenAIFaultAttr, err error) {
	i := faultIndex(kind)
	if i == 0 && kind != semconv.GenAIFaultInstrument {
		kind = bound.Other
	}
	m.faults.Add(ctx, 1, metric.WithAttributes(semconv.GenAIFault(kind)))
	if m.reported[i].CompareAndSwap(false, true) {
		otel.Handle(fmt.Errorf("genaitrace: %w (reported once; further ones are counted in %s)",
			err, semconv.GenAITelemetryFaultsName))
	}
}
