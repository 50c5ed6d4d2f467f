package collectortest

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// refusing is a tier that cannot take anything now.
type refusing struct {
	ptraceotlp.UnimplementedGRPCServer

	asked chan struct{}
}

func (r *refusing) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	select {
	case r.asked <- struct{}{}:
	default:
	}
	return ptraceotlp.NewExportResponse(), status.Error(grpccodes.Unavailable, "not now")
}

// refuse serves at an address until a span has come, and then goes away.
func refuse(t *testing.T, address string) (wait func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	r := &refusing{asked: make(chan struct{}, 1)}
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, r)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return func() {
		<-r.asked
		server.Stop()
	}
}

// What the tiers in front have taken waits for a tier that is away, and comes once.
func TestSpansWaitForATierThatIsAway(t *testing.T) {
	back := serveBackend(t)
	free := addresses(t, 3)
	c, err := sampling.CollectorConfig(sampling.Baseline(1), sampling.CollectorOptions{
		Backend: "http://" + back.address, LoadBalancer: "http://" + free[1],
		Samplers: sampling.SamplerTier{Hosts: free[:1]}, SamplerListen: free[0], Listen: free[1], AgentListen: free[2],
		DecisionWait: time.Second,
	})
	require.NoError(t, err)
	all, _ := traffic(t, sampling.Baseline(0), 50, rand.New(rand.NewPCG(9, 9)))
	noBalancer, noSampler := refuse(t, free[1]), refuse(t, free[0])
	run(t, c.Agent())
	send(t, free[2], all)
	noBalancer()
	run(t, c.LoadBalancing())
	noSampler()
	run(t, c.TailSampling())
	require.Eventually(t, func() bool { return len(back.received()) >= len(all) }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, ofSDK(all).ids(), ofOTLP(back.received()).ids())
}
