// Package fault counts what went wrong with telemetry while the service went on, and
// reports the first of each to OpenTelemetry's error handler.
//
//	defer faults.Catch(ctx, "WithFilter panicked, request is traced", func() { traced = true })
package fault

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/genaitrace/otelgenai/semconv"
)

// A Counter counts the faults of one package in genai.telemetry.faults. It is safe for
// concurrent use.
type Counter struct {
	name     string // of the package
	faults   semconv.GenAITelemetryFaults
	reported sync.Map // what was → struct{}
}

// NewCounter returns a counter for the package of that name. An instrument that cannot
// be made is reported to [otel.Handle].
func NewCounter(name string, m metric.Meter) *Counter {
	faults, err := semconv.NewGenAITelemetryFaults(m)
	if err != nil {
		otel.Handle(fmt.Errorf("%s: %w", name, err))
	}
	return &Counter{name: name, faults: faults}
}

// Count counts a fault. what says what happened, in one of a few fixed texts: the first
// fault of each is reported to [otel.Handle].
func (c *Counter) Count(ctx context.Context, kind semconv.GenAIFaultAttr, what string) {
	c.count(ctx, kind, what, "")
}

// Catch is for defer: it keeps a panic of what the user gave from the service, counts
// it, and calls restore for what is to be returned then.
func (c *Counter) Catch(ctx context.Context, what string, restore func()) {
	if v := recover(); v != nil {
		restore()
		c.count(ctx, semconv.GenAIFaultPanic, what, fmt.Sprintf(": %v", v))
	}
}

func (c *Counter) count(ctx context.Context, kind semconv.GenAIFaultAttr, what, detail string) {
	c.faults.Add(ctx, 1, kind)
	if _, known := c.reported.LoadOrStore(what, struct{}{}); !known {
		otel.Handle(fmt.Errorf("%s: %s%s (reported once; further ones are counted in %s)",
			c.name, what, detail, semconv.GenAITelemetryFaultsName))
	}
}
