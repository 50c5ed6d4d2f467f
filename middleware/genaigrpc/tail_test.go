package genaigrpc_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// A party is a process of its own as far as sampling goes.
type party struct {
	*sampling.Tail

	tp       *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *tracetest.InMemoryExporter
	options  []genaigrpc.Option

	mu      sync.Mutex
	answers []trace.SpanContext // of callees
}

func (p *party) CalleeResponded(ctx context.Context, callee trace.SpanContext) {
	p.mu.Lock()
	p.answers = append(p.answers, callee)
	p.mu.Unlock()
	p.Tail.CalleeResponded(ctx, callee)
}

func newParty(t *testing.T) *party {
	t.Helper()
	p := &party{exporter: tracetest.NewInMemoryExporter()}
	var err error
	p.Tail, err = sampling.NewTail(p.exporter, sampling.Errors(), sampling.WithMeterProvider(metricnoop.NewMeterProvider()))
	require.NoError(t, err)
	p.tp = sdktrace.NewTracerProvider(p.ProviderOptions()...)
	p.tracer = p.tp.Tracer("test")
	p.options = []genaigrpc.Option{
		genaigrpc.WithTracerProvider(p.tp), genaigrpc.WithMeterProvider(metricnoop.NewMeterProvider()),
		genaigrpc.WithTailSampler(p),
	}
	t.Cleanup(func() { assert.NoError(t, p.Shutdown(context.Background())) })
	return p
}

// fails is a step that fails and is made good.
func (p *party) fails(ctx context.Context) {
	_, step := p.tracer.Start(ctx, "step")
	step.SetStatus(otelcodes.Error, "")
	step.End()
}

// kept returns the reason by which the local root of that name was exported, "" where it was
// not.
func (p *party) kept(t *testing.T, name string) string {
	t.Helper()
	require.NoError(t, p.ForceFlush(context.Background()))
	for _, span := range p.exporter.GetSpans() {
		for _, kv := range span.Attributes {
			if span.Name == name && kv.Key == semconv.GenAISamplingReasonKey {
				return kv.Value.AsString()
			}
		}
	}
	return ""
}

func TestTheCallerKeepsWhatItsCalleeKeeps(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  func(context.Context, *party) error
		callee string // the reason by which each keeps its part
		caller string
	}{
		{name: "fine", serve: func(context.Context, *party) error { return nil }},
		{name: "a failure that was handled", serve: func(ctx context.Context, p *party) error {
			p.fails(ctx)
			return nil
		}, callee: "errors", caller: "callee"},
		{name: "a failure that is told", serve: func(context.Context, *party) error {
			return status.Error(codes.Internal, "secret")
		}, callee: "errors", caller: "callee"},
		{name: "the client's own fault", serve: func(context.Context, *party) error {
			return status.Error(codes.NotFound, "secret")
		}, caller: "errors"},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				caller, callee := newParty(t), newParty(t)
				s := service{
					complete: func(ctx context.Context, _ string) (string, error) { return "a", c.serve(ctx, callee) },
					generate: func(_ string, stream grpc.ServerStream) error {
						if err := sendText(stream, "a"); err != nil {
							return err
						}
						return c.serve(stream.Context(), callee)
					},
				}
				l := connectLoopback(t, s,
					append(genaigrpc.TailServerOptions(callee), grpc.StatsHandler(genaigrpc.NewServerHandler(callee.options...))),
					[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(caller.options...))})
				ctx, root := caller.tracer.Start(context.Background(), "caller")
				method := completeMethod[1:]
				if streamed {
					method = generateMethod[1:]
					stream, err := generate(ctx, t, l.conn)
					require.NoError(t, err)
					_, _ = read(stream)
				} else {
					_, _ = complete(ctx, l.conn)
				}
				root.End()
				l.stop()

				assert.Equal(t, c.callee, callee.kept(t, method))
				assert.Equal(t, c.caller, caller.kept(t, "caller"))
				require.Len(t, caller.answers, 1)
				assert.Equal(t, c.callee != "", caller.answers[0].IsSampled())
			})
		}
	}
}

func TestATrailerTellsNothingButTheTrace(t *testing.T) {
	callee := newParty(t)
	l := connectLoopback(t, service{complete: func(ctx context.Context, _ string) (string, error) {
		callee.fails(ctx)
		return "a", nil
	}}, append(genaigrpc.TailServerOptions(callee), grpc.StatsHandler(genaigrpc.NewServerHandler(callee.options...))), nil)
	var trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(),
		"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "tracestate", "genai=m:secret,other=secret")
	require.NoError(t, l.conn.Invoke(ctx, completeMethod, new(wrapperspb.StringValue), new(wrapperspb.StringValue), grpc.Trailer(&trailer)))
	require.Len(t, trailer["traceresponse"], 1)
	assert.Regexp(t, `^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$`, trailer["traceresponse"][0])
	assert.Equal(t, []string{`genai;desc="k:1;th:0"`}, trailer["server-timing"])
}

func TestNoTailSamplerIsNone(t *testing.T) {
	assert.Empty(t, genaigrpc.TailServerOptions(nil))
	o := newTelemetry(t)
	l := connect(t, service{complete: func(context.Context, string) (string, error) { return "a", nil }},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(genaigrpc.WithTailSampler(nil))...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(genaigrpc.WithTailSampler(nil))...))})
	_, err := complete(context.Background(), l.conn)
	require.NoError(t, err)
}

func TestAServerIsToldWhatIsCertainByNow(t *testing.T) {
	caller := newParty(t)
	var told []trace.SpanContext
	l := connectLoopback(t, service{complete: func(ctx context.Context, _ string) (string, error) {
		told = append(told, trace.SpanContextFromContext(propagation.New().FromGRPC(ctx)))
		return "a", nil
	}}, nil, []grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(caller.options...))})
	tracer := genaitrace.New(genaitrace.WithTracerProvider(caller.tp), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	ctx, root := caller.tracer.Start(context.Background(), "caller")
	for range 2 {
		ctx, call := tracer.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "m"})
		if len(told) > 0 {
			caller.fails(ctx) // while the call waits
		}
		_, err := complete(ctx, l.conn)
		require.NoError(t, err)
		call.End()
	}
	root.End()
	l.stop()
	require.Len(t, told, 2)
	for i, sc := range told {
		assert.Equal(t, i == 1, sc.IsSampled())
		assert.Equal(t, i == 1, propagation.MemberOf(sc).Keep)
		assert.True(t, propagation.HasCallerMark(sc))
	}
}
