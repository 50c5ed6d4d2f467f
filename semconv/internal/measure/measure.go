// Package measure records values for the generated instruments of semconv,
// genaiconv and mcpconv. It keeps the options of a call in a pool, so that a
// value with a set made beforehand is recorded without an allocation, and does
// nothing where nobody listens or there is no instrument.
package measure

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Number is what an instrument measures in.
type Number interface{ int64 | float64 }

// Recorder is a histogram or a gauge.
type Recorder[N Number] interface {
	Enabled(ctx context.Context) bool
	Record(ctx context.Context, value N, opts ...metric.RecordOption)
}

// Adder is a counter of either kind.
type Adder[N Number] interface {
	Enabled(ctx context.Context) bool
	Add(ctx context.Context, value N, opts ...metric.AddOption)
}

// Record records value with attrs and required; of two values for one key, the
// one in required counts.
func Record[N Number](ctx context.Context, inst Recorder[N], value N, attrs []attribute.KeyValue, required ...attribute.KeyValue) {
	if inst == nil || !inst.Enabled(ctx) {
		return
	}
	o := options.Get().(*option)
	o.with(o.join(attrs, required))
	inst.Record(ctx, value, o.record[:]...)
	o.free()
}

// RecordSet records value with exactly the attributes of set.
func RecordSet[N Number](ctx context.Context, inst Recorder[N], value N, set attribute.Set) {
	if inst == nil || !inst.Enabled(ctx) {
		return
	}
	o := options.Get().(*option)
	o.with(set)
	inst.Record(ctx, value, o.record[:]...)
	o.free()
}

// Add adds value with attrs and required; of two values for one key, the one in
// required counts.
func Add[N Number](ctx context.Context, inst Adder[N], value N, attrs []attribute.KeyValue, required ...attribute.KeyValue) {
	if inst == nil || !inst.Enabled(ctx) {
		return
	}
	o := options.Get().(*option)
	o.with(o.join(attrs, required))
	inst.Add(ctx, value, o.add[:]...)
	o.free()
}

// AddSet adds value with exactly the attributes of set.
func AddSet[N Number](ctx context.Context, inst Adder[N], value N, set attribute.Set) {
	if inst == nil || !inst.Enabled(ctx) {
		return
	}
	o := options.Get().(*option)
	o.with(set)
	inst.Add(ctx, value, o.add[:]...)
	o.free()
}

// option is the option of one call, and room to join its attributes.
type option struct {
	attrs  []attribute.KeyValue
	record [1]metric.RecordOption
	add    [1]metric.AddOption
}

var options = sync.Pool{New: func() any { return new(option) }}

// settable is what the API says of an option that can be used again.
type settable interface{ Set(set attribute.Set) }

func (o *option) with(set attribute.Set) {
	if reused, ok := o.record[0].(settable); ok {
		reused.Set(set)
		return
	}
	made := metric.WithAttributeSet(set)
	o.record[0], o.add[0] = made, made
}

func (o *option) join(attrs, required []attribute.KeyValue) attribute.Set {
	o.attrs = append(append(o.attrs[:0], attrs...), required...)
	set := attribute.NewSet(o.attrs...)
	clear(o.attrs)
	return set
}

// free gives o back without the attributes of its call.
func (o *option) free() {
	if reused, ok := o.record[0].(settable); ok {
		reused.Set(attribute.Set{})
	} else {
		o.record[0], o.add[0] = nil, nil
	}
	options.Put(o)
}
