package genaitrace

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// side is who records a request.
type side uint8

const (
	hostSide side = iota
	callSide
	gatewaySide
	batchSide // of no request, but of many
)

// series is what tells the points of a request's metrics apart, in the words of the
// request. Empty fields are unknown.
type series struct {
	side     side
	underWay bool // for the counters of requests under way, which know no end

	operation, provider, model string
	responseModel, server      string
	port                       int
	errType                    string
	extra                      [extraKinds]string
}

// seriesOf is what the request and its context say.
func seriesOf(ctx context.Context, side side, req *Request) series {
	s := series{
		side: side, operation: string(req.Operation), provider: string(req.Provider), model: req.Model,
		server: req.ServerAddress,
		extra: [extraKinds]string{
			extraVersion: req.ModelVersion, extraTier: factOf(ctx, userTier),
		},
	}
	if s.server != "" { // a port alone is none, as on the span
		s.port = req.ServerPort
	}
	return s
}

// A set is one set of attributes, prepared for Record and for Add.
type set struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// sets are those of one series, as far as its side has them.
type sets struct {
	plain, outcome set // of the conventions; outcome with the error.type
	house          set // what the registry has for the metrics of the house
	input, output  set // by direction, or in Legacy by type of token
	gap            set // what the conventions require, without the server
	usage          set // tokens of a modality that nobody told
	underWay       set
}

// maxSets is how many series a Tracer prepares.
const maxSets = 1000

// A setCache prepares the attributes of each series once. What callers choose is
// bounded before it becomes a dimension. It is safe for concurrent use.
type setCache struct {
	words  semconv.Vocabulary
	chosen [extraKinds]bool

	operations, providers, models, servers, errTypes bound.Set
	extras                                           [extraKinds]bound.Set

	mu  sync.RWMutex
	all map[series]*sets
}

func newSetCache(words semconv.Vocabulary, chosen [extraKinds]bool) *setCache {
	c := &setCache{words: words, chosen: chosen, all: map[series]*sets{}}
	for _, values := range []*bound.Set{&c.operations, &c.providers, &c.models, &c.servers, &c.errTypes} {
		values.Limit = maxDistinct
	}
	for i := range c.extras {
		c.extras[i].Limit = maxDistinct
	}
	return c
}

// of returns the sets of a series. One that is known is found as it is, because
// only bounded values are kept.
func (c *setCache) of(s series) *sets {
	for i, chosen := range c.chosen {
		if !chosen {
			s.extra[i] = ""
		}
	}
	if known := c.known(s); known != nil {
		return known
	}
	s = c.bounded(s)
	if known := c.known(s); known != nil {
		return known
	}
	return c.prepare(s)
}

func (c *setCache) known(s series) *sets {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all[s]
}

func (c *setCache) bounded(s series) series {
	s.operation = c.operations.Value(s.operation)
	s.provider = c.providers.Value(s.provider)
	s.model = c.models.Value(s.model)
	s.responseModel = c.models.Value(s.responseModel)
	if s.server != "" && !c.servers.Admits(s.server+":"+strconv.Itoa(s.port)) {
		s.server, s.port = bound.Other, 0
	}
	s.errType = c.errTypes.Value(s.errType)
	for i := range s.extra {
		s.extra[i] = c.extras[i].Value(s.extra[i])
	}
	return s
}

func (c *setCache) prepare(s series) *sets {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= maxSets {
		s = series{
			side: s.side, underWay: s.underWay, errType: s.errType,
			operation: bound.Other, provider: bound.Other, model: bound.Other,
		}
	}
	if known := c.all[s]; known != nil {
		return known
	}
	s = s.clone()
	built := c.build(s)
	c.all[s] = built
	return built
}

// clone lets go of the buffers that the strings were cut from.
func (s series) clone() series {
	for _, text := range []*string{&s.operation, &s.provider, &s.model, &s.responseModel, &s.server, &s.errType} {
		*text = strings.Clone(*text)
	}
	for i := range s.extra {
		s.extra[i] = strings.Clone(s.extra[i])
	}
	return s
}

func (c *setCache) build(s series) *sets {
	role := semconv.GenAISpanRole(semconv.GenAISpanRoleInference)
	if s.side == gatewaySide {
		role = semconv.GenAISpanRole(semconv.GenAISpanRoleGateway)
	}
	required := known(nil,
		genaiconv.OperationNameKey.String(s.operation),
		genaiconv.ProviderNameKey.String(s.provider),
		genaiconv.RequestModelKey.String(s.model))
	plain := known(required, genaiconv.ResponseModelKey.String(s.responseModel), otelsemconv.ServerAddress(s.server))
	if s.port > 0 {
		plain = append(plain, otelsemconv.ServerPort(s.port))
	}
	outcome := known(plain, otelsemconv.ErrorTypeKey.String(s.errType))

	switch {
	case s.side == batchSide:
		return &sets{house: c.set(known(nil, genaiconv.RequestModelKey.String(s.model)))}
	case s.underWay && s.side == callSide:
		return &sets{underWay: c.set(required)}
	case s.underWay:
		return &sets{underWay: c.set(required, role)}
	case s.side == gatewaySide:
		return &sets{house: c.set(s.appendExtras(plain, extraVersion, extraTier, extraLength), role)}
	case s.side == callSide:
		built := &sets{
			plain: c.set(plain), outcome: c.set(outcome), gap: c.set(required),
			house: c.set(s.appendExtras(plain, extraVersion, extraTier, extraLength), role),
		}
		if c.words == semconv.Legacy {
			built.input = c.set(plain, genaiconv.TokenType(genaiconv.TokenTypeInput))   //nolint:staticcheck // the older name is what Legacy is for
			built.output = c.set(plain, genaiconv.TokenType(genaiconv.TokenTypeOutput)) //nolint:staticcheck // the older name is what Legacy is for
		} else {
			built.usage = c.set(plain, genaiconv.TokenModality(genaiconv.TokenModalityUnknown))
		}
		return built
	}
	house := s.appendExtras(required, extraVersion, extraQuantization, extraTier, extraLength, extraGPU)
	return &sets{
		plain: c.set(plain), outcome: c.set(outcome), house: c.set(house),
		input:  c.set(house, semconv.GenAITokenDirection(semconv.GenAITokenDirectionInput)),
		output: c.set(house, semconv.GenAITokenDirection(semconv.GenAITokenDirectionOutput)),
	}
}

// known appends the strings that are not empty to a copy of attrs.
func known(attrs []attribute.KeyValue, more ...attribute.KeyValue) []attribute.KeyValue {
	attrs = slices.Clone(attrs)
	for _, kv := range more {
		if kv.Value.AsString() != "" {
			attrs = append(attrs, kv)
		}
	}
	return attrs
}

func (s series) appendExtras(attrs []attribute.KeyValue, kinds ...int) []attribute.KeyValue {
	for _, kind := range kinds {
		attrs = known(attrs, extraKeys[kind].String(s.extra[kind]))
	}
	return attrs
}

// set prepares attributes. In Legacy it adds what older dashboards read; in the other
// vocabularies the dimensions of a metric are official where they can be.
func (c *setCache) set(attrs []attribute.KeyValue, more ...attribute.KeyValue) set {
	attrs = slices.Concat(attrs, more)
	if c.words == semconv.Legacy {
		attrs = c.words.Rewrite(attrs)
	}
	option := metric.WithAttributeSet(attribute.NewSet(attrs...))
	return set{record: []metric.RecordOption{option}, add: []metric.AddOption{option}}
}
