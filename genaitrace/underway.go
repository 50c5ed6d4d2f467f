package genaitrace

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// underWay is one request in a counter of requests under way. The zero value is in
// none.
type underWay struct {
	counter metric.Int64UpDownCounter
	opts    []metric.AddOption
}

// enter counts a request that starts.
func (m *metrics) enter(ctx context.Context, side side, req *Request) underWay {
	u := underWay{counter: m.active}
	if side == callSide {
		u.counter = m.client.active
	}
	if !u.counter.Enabled(ctx) {
		return underWay{}
	}
	u.opts = m.sets.of(series{
		side: side, underWay: true,
		operation: string(req.Operation), provider: string(req.Provider), model: req.Model,
	}).underWay.add
	u.counter.Add(ctx, 1, u.opts...)
	return u
}

// leave takes it back, with the attributes that it was counted with: the request may
// have learned others since. Each handle calls it once.
func (u underWay) leave(ctx context.Context) {
	if u.counter != nil {
		u.counter.Add(ctx, -1, u.opts...)
	}
}
