package translate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
	"github.com/genaitrace/otelgenai/semconv/translate"
)

// What semconv.Lookup says of a key and what becomes of it here are one thing:
// the target, the factor and the members of an enumeration.
func TestLookupAndTranslateAgree(t *testing.T) {
	for _, v := range []*translate.Vocabulary{translate.House, translate.Semconv141, translate.Semconv136} {
		tr := translator(t, v, translate.Standard)
		known := make(map[attribute.Key]bool)
		for _, row := range readVocabulary(t, v.String()).Attributes {
			key := attribute.Key(row.Theirs)
			known[key] = true
			if row.Ours == "" || key == "" || row.When != nil {
				continue
			}
			a, ok := semconv.Lookup(key)
			require.True(t, ok, "%s of %s is not in the registry", key, v)
			assert.Equal(t, attribute.Key(row.Ours), standFor(t, a, 1).Key, "%s of %s", key, v)
		}
		for a := range semconv.All() {
			if v != translate.House && (a.Deprecated == "" || !known[a.Key]) || a.Type == semconv.TypeTemplate {
				continue // Standard has it under the same key, or this release never had it
			}
			for _, value := range samplesOf(a) {
				in := []attribute.KeyValue{given(a, value)}
				got := tr.Attributes(in)
				if v == translate.House && a.Deprecated != "" {
					assert.Equal(t, in, got, "%s is older than the house", a.Key)
					continue
				}
				want := []attribute.KeyValue{standFor(t, a, value)}
				if len(got) == 2 { // the target says less
					want = append(want, in...)
				}
				assert.Equal(t, want, got, "%s of %s", a.Key, v)
			}
		}
	}
}

// samplesOf are values that an attribute may have: each member of an
// enumeration, or one of its type.
func samplesOf(a semconv.Attribute) (values []any) {
	for _, m := range a.Members {
		values = append(values, m.Value)
	}
	if values == nil {
		values = []any{map[semconv.Type]any{
			semconv.TypeInt: 8, semconv.TypeDouble: 1.5, semconv.TypeBoolean: true, semconv.TypeStrings: []string{"x"},
			semconv.TypeInts: []int{8},
		}[a.Type]}
	}
	if values[0] == nil {
		values[0] = "x"
	}
	return values
}

// given is the attribute with a value of its type.
func given(a semconv.Attribute, value any) attribute.KeyValue {
	switch v := value.(type) {
	case int:
		if a.Type == semconv.TypeDouble {
			return a.Key.Float64(float64(v))
		}
		return a.Key.Int(v)
	case float64:
		return a.Key.Float64(v)
	case bool:
		return a.Key.Bool(v)
	case []string:
		return a.Key.StringSlice(v)
	case []int:
		return a.Key.IntSlice(v)
	case string:
		if a.Type == semconv.TypeStrings {
			return a.Key.StringSlice([]string{v})
		}
		return a.Key.String(v)
	}
	panic(fmt.Sprintf("%T", value))
}

// standFor follows the registry from a to the key that is in use.
func standFor(t *testing.T, a semconv.Attribute, value any) attribute.KeyValue {
	key, ok := a.Target()
	if !ok || a.Factor == 0 {
		return given(a, value)
	}
	switch v := value.(type) {
	case string:
		if i := slices.IndexFunc(a.Members, func(m semconv.Member) bool { return m.Value == v && m.Now != "" }); i >= 0 {
			value = a.Members[i].Now
		}
	case float64:
		value = v * a.Factor
	}
	target, ok := semconv.Lookup(key)
	require.True(t, ok)
	return standFor(t, target, value)
}

// Legacy writes gen_ai.system without this package; dashboards must not see two
// spellings of one provider.
func TestLegacySpellsProvidersAsTranslateDoes(t *testing.T) {
	tr := translator(t, translate.Standard, translate.Semconv136)
	provider, ok := semconv.Lookup(genaiconv.ProviderNameKey)
	require.True(t, ok)
	require.NotEmpty(t, provider.Members)
	values := []string{"vllm", "", "az.ai.openai"}
	for _, m := range provider.Members {
		values = append(values, m.Value)
	}
	for _, value := range values {
		in := kv("gen_ai.provider.name", value)
		set := attribute.NewSet(semconv.Legacy.Rewrite(slices.Clone(in))...)
		system, ok := set.Value("gen_ai.system")
		require.True(t, ok)
		assert.Equal(t, tr.Attributes(in)[0].Value, system, value)
	}
}

// The same for the names of spans, events and metrics.
func TestOtherNamesAgreeToo(t *testing.T) {
	tr := translator(t, translate.House, translate.Standard)
	operation := map[string]string{"gen_ai.retrieval": "retrieval", "gen_ai.client.inference": "chat m"}
	for s := range semconv.Spans() {
		if s.AliasOf == "" {
			continue
		}
		want := operation[s.AliasOf]
		if want == "" {
			want = s.AliasOf // a span of the house has its type as its name
		}
		stub := tracetest.SpanStub{Name: s.Type, Attributes: kv("ai.operation", "chat", "ai.model.name", "m")}
		assert.Equal(t, want, tr.Span(stub.Snapshot()).Name(), s.Type)
	}
	for e := range semconv.Events() {
		if e.AliasOf != "" {
			stub := tracetest.SpanStub{Events: []sdktrace.Event{{Name: e.Name, Attributes: kv("index", 0)}}}
			assert.Equal(t, e.AliasOf, tr.Span(stub.Snapshot()).Events()[0].Name)
		}
	}
	for m := range semconv.Metrics() {
		if m.AliasOf == "" {
			continue
		}
		target, ok := semconv.LookupMetric(m.AliasOf)
		require.True(t, ok)
		in := metricdata.Metrics{Name: m.Name, Unit: m.Unit, Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{{Value: 8}}}}
		got := tr.Metrics(&metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: metrics{in}}}}).ScopeMetrics[0].Metrics[0]
		assert.Equal(t, []any{m.AliasOf, target.Unit}, []any{got.Name, got.Unit})
		assert.InDelta(t, 8*m.Factor, got.Data.(metricdata.Gauge[float64]).DataPoints[0].Value, 1e-12, m.Name)
	}
}
