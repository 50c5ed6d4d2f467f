package genaigrpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/stats"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// slowSampler takes time before the SDK reads the clock, as a busy machine does.
type slowSampler struct{}

func (slowSampler) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	time.Sleep(3 * time.Millisecond)
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}
func (slowSampler) Description() string { return "slow" }

// A slowContext takes time wherever it is asked.
type slowContext struct{ context.Context }

func (c slowContext) Value(key any) any {
	time.Sleep(time.Millisecond)
	return c.Context.Value(key)
}

// The span of an RPC and its metrics are timed by the same readings of the clock.
func TestAnRPCIsTimedByOneReading(t *testing.T) {
	const server, client = "rpc.server.call.duration", "rpc.client.call.duration"
	model := genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod})
	for name, tt := range map[string]struct {
		handler func(...genaigrpc.Option) stats.Handler
		options []genaigrpc.Option
		metrics []string
	}{
		"server":               {genaigrpc.NewServerHandler, nil, []string{server}},
		"server, a model call": {genaigrpc.NewServerHandler, []genaigrpc.Option{model}, []string{server}},
		"client":               {genaigrpc.NewClientHandler, nil, []string{client}},
		"client, a model call": {genaigrpc.NewClientHandler, []genaigrpc.Option{model}, []string{client, genaiconv.ClientInferenceDurationName}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t, sdktrace.WithSampler(slowSampler{}))
				h := tt.handler(o.options(tt.options...)...)
				ctx := h.TagRPC(slowContext{t.Context()}, &stats.RPCTagInfo{FullMethodName: generateMethod})
				h.HandleRPC(ctx, &stats.Begin{Client: true, IsServerStream: true})
				time.Sleep(10 * time.Millisecond)
				h.HandleRPC(ctx, &stats.OutPayload{Client: true, SentTime: time.Now()})
				h.HandleRPC(ctx, &stats.InPayload{Client: true, RecvTime: time.Now()})
				h.HandleRPC(ctx, &stats.InTrailer{Client: true})
				h.HandleRPC(ctx, &stats.OutTrailer{})
				ended := time.Now()
				time.Sleep(2 * time.Millisecond)
				h.HandleRPC(ctx, &stats.End{Client: true, EndTime: ended})

				require.Len(t, o.ended(), 1)
				span := o.ended()[0]
				for _, metric := range tt.metrics {
					points := o.points(metric)
					require.Len(t, points, 1, metric)
					assert.Equal(t, lasted(span).Seconds(), points[0].Sum, metric)
				}
				if events := span.Events(); len(events) > 0 {
					assert.Equal(t, attr(span, semconv.LLMTTFTMsKey), events[0].Time.Sub(span.StartTime()).Seconds()*1e3)
				}
			})
		})
	}
}
