package genaigrpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/rpcconv"
	"google.golang.org/grpc/codes"
)

// maxSeries is how many attribute sets of a metric one handler makes: what is
// beyond is recorded under rpc.method=_OTHER without a server.
const maxSeries = 2000

// durations records how long RPCs took.
type durations struct {
	histogram metric.Float64Histogram
	cached    sync.Map // series → []metric.RecordOption
	n         atomic.Int32
}

// series are the attributes of one measurement.
type series struct {
	method string
	server server
	code   codes.Code
	failed bool
}

func newServerDurations(m metric.Meter) *durations {
	h, err := rpcconv.NewServerCallDuration(m)
	return newDurations(h.Inst(), err)
}

func newClientDurations(m metric.Meter) *durations {
	h, err := rpcconv.NewClientCallDuration(m)
	return newDurations(h.Inst(), err)
}

func newDurations(h metric.Float64Histogram, err error) *durations {
	if err != nil {
		otel.Handle(fmt.Errorf("genaigrpc: %w", err))
	}
	if h == nil {
		h = noop.Float64Histogram{}
	}
	return &durations{histogram: h}
}

func (d *durations) enabled(ctx context.Context) bool { return d.histogram.Enabled(ctx) }

func (d *durations) record(ctx context.Context, took time.Duration, s series) {
	if d.enabled(ctx) {
		d.histogram.Record(ctx, took.Seconds(), d.options(s)...)
	}
}

func (d *durations) options(s series) []metric.RecordOption {
	if opts, ok := d.cached.Load(s); ok {
		return opts.([]metric.RecordOption)
	}
	if d.n.Load() >= maxSeries {
		s.method, s.server = otherMethod, server{}
	}
	opts := []metric.RecordOption{metric.WithAttributeSet(s.set())}
	if _, loaded := d.cached.LoadOrStore(s, opts); !loaded {
		d.n.Add(1)
	}
	return opts
}

func (s series) set() attribute.Set {
	attrs := make([]attribute.KeyValue, 0, 6)
	attrs = append(attrs, otelsemconv.RPCSystemNameGRPC, otelsemconv.RPCMethod(s.method))
	attrs = s.server.appendTo(attrs)
	if s.failed {
		attrs = append(attrs, failureAttributes[s.code]...)
	} else {
		attrs = append(attrs, endAttributes[s.code]...)
	}
	return attribute.NewSet(attrs...)
}
