package measure_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/genaitrace/otelgenai/semconv/internal/measure"
)

// listener notes the attributes of each value.
type listener struct {
	noop.Float64Histogram
	silent bool
	sets   []attribute.Set
}

func (l *listener) Enabled(context.Context) bool { return !l.silent }

func (l *listener) Record(_ context.Context, _ float64, opts ...metric.RecordOption) {
	config := metric.NewRecordConfig(opts)
	l.sets = append(l.sets, config.Attributes())
}

func TestEachValueHasItsOwnAttributes(t *testing.T) {
	var l listener
	ctx := t.Context()
	measure.Record[float64](ctx, &l, 1, []attribute.KeyValue{attribute.Int("a", 1)}, attribute.Int("b", 2))
	measure.RecordSet[float64](ctx, &l, 1, attribute.NewSet(attribute.Int("c", 3)))
	measure.Record[float64](ctx, &l, 1, nil)
	measure.Record[float64](ctx, &l, 1, []attribute.KeyValue{attribute.Int("a", 1)}, attribute.Int("a", 2))

	require.Equal(t, []attribute.Set{
		attribute.NewSet(attribute.Int("a", 1), attribute.Int("b", 2)),
		attribute.NewSet(attribute.Int("c", 3)),
		attribute.NewSet(),
		attribute.NewSet(attribute.Int("a", 2)),
	}, l.sets)
}

func TestNothingIsPreparedWhereNobodyListens(t *testing.T) {
	l := listener{silent: true}
	measure.Record[float64](t.Context(), &l, 1, nil, attribute.Int("a", 1))
	measure.RecordSet[float64](t.Context(), &l, 1, attribute.NewSet())
	measure.Record[float64](t.Context(), nil, 1, nil)
	measure.AddSet[int64](t.Context(), nil, 1, attribute.NewSet())

	require.Empty(t, l.sets)
}
