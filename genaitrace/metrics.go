package genaitrace

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// metrics holds every instrument of a Tracer; but for tokens none is nil.
type metrics struct {
	serverDuration   metric.Float64Histogram
	serverTTFT       metric.Float64Histogram
	serverPerToken   metric.Float64Histogram
	clientDuration   metric.Float64Histogram
	clientFirstChunk metric.Float64Histogram
	clientPerChunk   metric.Float64Histogram
	ttft             metric.Float64Histogram
	stalls           metric.Int64Counter
	batchSize        metric.Int64Histogram
	faults           metric.Int64Counter
	tokens           metric.Int64Histogram // of Legacy alone, else nil
	words            semconv.Vocabulary

	reported [faultKinds]atomic.Bool // faults are logged once a kind

	// What callers choose is bounded before it becomes a dimension.
	operations, providers, models, servers, errTypes bound.Set

	options   sync.Map // dimensions → []metric.RecordOption
	optionLen atomic.Int32
}

// maxOptions is how many attribute sets a Tracer makes: what is beyond is recorded
// without its server and under model _OTHER.
const maxOptions = 1000

func newMetrics(m metric.Meter, words semconv.Vocabulary) *metrics {
	s := &metrics{words: words}
	for _, chosen := range []*bound.Set{&s.operations, &s.providers, &s.models, &s.servers, &s.errTypes} {
		chosen.Limit = maxDistinct
	}
	s.serverDuration = instrument(genaiconv.NewServerRequestDuration(m))
	s.serverTTFT = instrument(genaiconv.NewServerTimeToFirstToken(m))
	s.serverPerToken = instrument(genaiconv.NewServerTimePerOutputToken(m))
	if words == semconv.Legacy {
		s.clientDuration = instrument(genaiconv.NewClientOperationDuration(m))
		s.clientFirstChunk = instrument(genaiconv.NewClientOperationTimeToFirstChunk(m)) //nolint:staticcheck // the older name is what Legacy is for
		s.clientPerChunk = instrument(genaiconv.NewClientOperationTimePerOutputChunk(m)) //nolint:staticcheck // the older name is what Legacy is for
		s.tokens = instrument(genaiconv.NewClientTokenUsage(m))                          //nolint:staticcheck // the older name is what Legacy is for
	} else {
		s.clientDuration = instrument(genaiconv.NewClientInferenceDuration(m))
		s.clientFirstChunk = instrument(genaiconv.NewClientInferenceTimeToFirstChunk(m))
		s.clientPerChunk = instrument(genaiconv.NewClientInferenceTimePerOutputChunk(m))
	}
	s.ttft = instrument(semconv.NewGenAITimeToFirstToken(m))
	s.stalls = instrument(semconv.NewGenAITokenStalls(m))
	s.batchSize = instrument(semconv.NewGenAIBatchSize(m))
	s.faults = instrument(semconv.NewGenAITelemetryFaults(m))
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
func (s *metrics) serverEnabled(ctx context.Context) bool {
	return s.serverDuration.Enabled(ctx) || s.serverTTFT.Enabled(ctx) || s.serverPerToken.Enabled(ctx) || s.stalls.Enabled(ctx)
}

func (s *metrics) callEnabled(ctx context.Context) bool {
	return s.clientDuration.Enabled(ctx) || s.clientFirstChunk.Enabled(ctx) ||
		s.clientPerChunk.Enabled(ctx) || s.ttft.Enabled(ctx) ||
		s.tokens != nil && s.tokens.Enabled(ctx)
}

// dimensions are the attributes of a metric; empty ones are left out.
type dimensions struct {
	role                   string
	operation, provider    string
	model, responseModel   string
	serverAddress, errType string
	serverPort             int
}

// with prepares the options of a Record call, from a bounded cache.
func (s *metrics) with(d dimensions) []metric.RecordOption {
	d.operation = s.operations.Value(d.operation)
	d.provider = s.providers.Value(d.provider)
	d.model = s.models.Value(d.model)
	d.responseModel = s.models.Value(d.responseModel)
	if server := d.serverAddress + ":" + strconv.Itoa(d.serverPort); d.serverAddress != "" && !s.servers.Admits(server) {
		d.serverAddress, d.serverPort = bound.Other, 0
	}
	d.errType = s.errTypes.Value(d.errType)

	if cached, ok := s.options.Load(d); ok {
		return cached.([]metric.RecordOption)
	}
	if s.optionLen.Load() >= maxOptions {
		d = dimensions{role: d.role, model: bound.Other, errType: d.errType}
	}
	opts := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(s.write(d.attributes())...))}
	if _, loaded := s.options.LoadOrStore(d, opts); !loaded {
		s.optionLen.Add(1)
	}
	return opts
}

// write adds what Legacy's dashboards read. The dimensions of a metric are official
// in every vocabulary.
func (s *metrics) write(attrs []attribute.KeyValue) []attribute.KeyValue {
	if s.words == semconv.Legacy {
		return s.words.Rewrite(attrs)
	}
	return attrs
}

func (d dimensions) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8)
	for _, a := range [...]struct {
		key   attribute.Key
		value string
	}{
		{semconv.GenAISpanRoleKey, d.role},
		{genaiconv.OperationNameKey, d.operation},
		{genaiconv.ProviderNameKey, d.provider},
		{genaiconv.RequestModelKey, d.model},
		{genaiconv.ResponseModelKey, d.responseModel},
		{otelsemconv.ServerAddressKey, d.serverAddress},
		{otelsemconv.ErrorTypeKey, d.errType},
	} {
		if a.value != "" {
			attrs = append(attrs, a.key.String(a.value))
		}
	}
	if d.serverPort > 0 {
		attrs = append(attrs, otelsemconv.ServerPort(d.serverPort))
	}
	return attrs
}

// recordTokens writes the token usage of a call as the older conventions have it.
func (s *metrics) recordTokens(ctx context.Context, d dimensions, u usage) {
	if s.tokens == nil || !s.tokens.Enabled(ctx) {
		return
	}
	d.errType = ""
	for _, part := range [...]struct {
		count
		kind genaiconv.TokenTypeAttr
	}{{u.input, genaiconv.TokenTypeInput}, {u.output, genaiconv.TokenTypeOutput}} {
		if part.known {
			opts := append(s.with(d), metric.WithAttributes(genaiconv.TokenType(part.kind))) //nolint:staticcheck // the older name is what Legacy is for
			s.tokens.Record(ctx, int64(part.n), opts...)
		}
	}
}

// addStalls counts pauses in the process that runs the model.
func (s *metrics) addStalls(ctx context.Context, req *Request, n int) {
	if n == 0 {
		return
	}
	d := dimensions{operation: string(req.Operation), provider: string(req.Provider), model: req.Model}
	for _, o := range s.with(d) {
		if o, ok := o.(metric.AddOption); ok {
			s.stalls.Add(ctx, int64(n), o)
		}
	}
}

const faultKinds = 6

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
	case semconv.GenAIFaultInstrument:
	}
	return 0
}

// fault counts an input that had to be dropped, and reports the first one of
// each kind to [otel.Handle].
func (s *metrics) fault(ctx context.Context, kind semconv.GenAIFaultAttr, err error) {
	s.faults.Add(ctx, 1, metric.WithAttributes(semconv.GenAIFault(kind)))
	if s.reported[faultIndex(kind)].CompareAndSwap(false, true) {
		otel.Handle(fmt.Errorf("genaitrace: %w (reported once; further ones are counted in %s)",
			err, semconv.GenAITelemetryFaultsName))
	}
}
