package collectortest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

// A trace is judged DecisionWait after its first span, and what comes later follows.
func TestTheSamplerTierJudgesByItself(t *testing.T) {
	back := serveBackend(t)
	o := sampling.CollectorOptions{
		Backend: "http://" + back.address, Samplers: sampling.SamplerTier{DNS: "unused:4317"},
		SamplerListen: addresses(t, 1)[0], DecisionWait: time.Second,
	}
	c, err := sampling.CollectorConfig(sampling.Errors(), o)
	require.NoError(t, err)
	stop := run(t, c.TailSampling())

	var ended spans
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&ended)).Tracer("")
	for _, failed := range []bool{false, true} {
		ctx, root := tracer.Start(context.Background(), "request")
		_, early := tracer.Start(ctx, "early")
		if failed {
			early.SetStatus(codes.Error, "")
		}
		early.End()
		root.SetStatus(codes.Error, "") // too late for the first one
		root.End()
	}
	early := []sdktrace.ReadOnlySpan{ended.all[0], ended.all[2]}
	late := []sdktrace.ReadOnlySpan{ended.all[1], ended.all[3]}
	send(t, o.SamplerListen, early)
	require.Eventually(t, func() bool { return len(back.received()) == 1 }, time.Minute, 10*time.Millisecond)
	send(t, o.SamplerListen, late)
	require.Eventually(t, func() bool { return len(back.received()) == 2 }, time.Minute, 10*time.Millisecond)
	stop()
	assert.Equal(t, ofSDK(ended.all[2:]), ofOTLP(back.received()))
}
