package genaitrace

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// workMetrics are those of operations, and the attribute sets that they are recorded
// with. Where another process does the work, the metric is the clients' general one.
type workMetrics struct {
	tool, agent, retrieval         metric.Float64Histogram
	agentInferences, agentTools    metric.Int64Histogram
	evaluations, guardrailVerdicts metric.Int64Counter

	sets *workCache
}

func newWorkMetrics(m metric.Meter, words semconv.Vocabulary) workMetrics {
	return workMetrics{
		tool:              instrument(genaiconv.NewExecuteToolDuration(m)),
		agent:             instrument(genaiconv.NewInvokeAgentDuration(m)),
		retrieval:         instrument(genaiconv.NewRetrievalDuration(m)),
		agentInferences:   instrument(genaiconv.NewInvokeAgentInferenceCalls(m)),
		agentTools:        instrument(genaiconv.NewInvokeAgentToolCalls(m)),
		evaluations:       instrument(semconv.NewGenAIEvaluations(m)),
		guardrailVerdicts: instrument(semconv.NewGenAIGuardrailDecisions(m)),
		sets:              newWorkCache(words),
	}
}

// workKind is which dimensions a metric of an operation has.
type workKind uint8

const (
	toolWork workKind = iota
	agentWork
	agentCallsWork
	retrievalWork
	evaluationWork
	guardrailWork
	signalWork
	workKinds
)

// maxWorkKeys is how many dimensions a metric of an operation has at most.
const maxWorkKeys = 5

// workKeys are the dimensions of each kind, in the order of the values of a
// workSeries.
var workKeys = [workKinds][maxWorkKeys]attribute.Key{
	toolWork:       {genaiconv.ToolNameKey, genaiconv.ToolTypeKey, genaiconv.AgentNameKey, otelsemconv.ErrorTypeKey},
	agentWork:      {genaiconv.OperationNameKey, genaiconv.AgentNameKey, genaiconv.RequestModelKey, otelsemconv.ErrorTypeKey},
	agentCallsWork: {genaiconv.AgentNameKey},
	retrievalWork: {
		genaiconv.OperationNameKey, genaiconv.ProviderNameKey, genaiconv.RequestModelKey, genaiconv.DataSourceIDKey,
		otelsemconv.ErrorTypeKey,
	},
	evaluationWork: {genaiconv.EvaluationNameKey, genaiconv.EvaluationScoreLabelKey, genaiconv.RequestModelKey},
	signalWork:     {semconv.GenAISignalTypeKey, semconv.GenAISignalSourceModelKey, genaiconv.RequestModelKey},
	guardrailWork:  {semconv.GenAIGuardrailOutcomeKey, semconv.GenAIGuardrailRuleIDKey, semconv.GenAIGuardrailLabelKey},
}

// workSeries is what tells the points of an operation's metric apart. Empty values
// are unknown.
type workSeries struct {
	kind   workKind
	values [maxWorkKeys]string
}

// A workCache prepares the attributes of each series once. What callers choose is
// bounded before it becomes a dimension: the first 100 values of each stand for
// themselves, and a Tracer makes 1000 series at most. It is safe for concurrent use.
type workCache struct {
	words  semconv.Vocabulary
	bounds [workKinds][maxWorkKeys]bound.Set

	mu  sync.RWMutex
	all map[workSeries]*set
}

func newWorkCache(words semconv.Vocabulary) *workCache {
	c := &workCache{words: words, all: map[workSeries]*set{}}
	for kind := range c.bounds {
		for i := range c.bounds[kind] {
			c.bounds[kind][i].Limit = maxDistinct
		}
	}
	return c
}

// of returns the set of a series. One that is known is found as it is, because only
// bounded values are kept.
func (c *workCache) of(s workSeries) *set {
	if known := c.known(s); known != nil {
		return known
	}
	for i, value := range s.values {
		s.values[i] = c.bounds[s.kind][i].Value(value)
	}
	if known := c.known(s); known != nil {
		return known
	}
	return c.prepare(s)
}

func (c *workCache) known(s workSeries) *set {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all[s]
}

func (c *workCache) prepare(s workSeries) *set {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, value := range s.values {
		switch {
		case value == "":
		case len(c.all) >= maxSets && workKeys[s.kind][i] != otelsemconv.ErrorTypeKey:
			s.values[i] = bound.Other
		default:
			s.values[i] = strings.Clone(value) // lets go of the buffer that it was cut from
		}
	}
	if known := c.all[s]; known != nil {
		return known
	}
	var attrs []attribute.KeyValue
	for i, value := range s.values {
		if value != "" {
			attrs = append(attrs, workKeys[s.kind][i].String(value))
		}
	}
	if c.words == semconv.Legacy {
		attrs = c.words.Rewrite(attrs)
	}
	option := metric.WithAttributeSet(attribute.NewSet(attrs...))
	built := &set{record: []metric.RecordOption{option}, add: []metric.AddOption{option}}
	c.all[s] = built
	return built
}

// recordRemote writes the duration of what another process did for us.
func (m *metrics) recordRemote(ctx context.Context, req *Request, end operationEnd) {
	if !m.client.other.Enabled(ctx) {
		return
	}
	s := seriesOf(ctx, callSide, req)
	s.errType = end.errType
	m.client.other.Record(ctx, seconds(end.took), m.sets.of(s).outcome.record...)
}
