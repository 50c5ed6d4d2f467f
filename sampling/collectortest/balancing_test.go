//go:build balancing

package collectortest

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/loadbalancingexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/sampling"
)

var (
	balancing    = []exporter.Factory{loadbalancingexporter.NewFactory()}
	ownTelemetry = otelconftelemetry.NewFactory()
)

// tiers runs agent, first tier and two instances of the second one, sends the spans to the agent
// in batches of any order, and returns what arrives behind the second tier.
func tiers(t testing.TB, p sampling.Policy, all []sdktrace.ReadOnlySpan, r *rand.Rand) decisions {
	t.Helper()
	backends := []*backend{serveBackend(t), serveBackend(t)}
	free := addresses(t, 4)
	o := sampling.CollectorOptions{
		Samplers: sampling.SamplerTier{Hosts: free[:2]}, Listen: free[2], AgentListen: free[3],
	}
	o.LoadBalancer = "http://" + o.Listen
	var c sampling.Collector
	var stops []func()
	for i, b := range backends {
		o.SamplerListen, o.Backend = o.Samplers.Hosts[i], "http://"+b.address
		var err error
		c, err = sampling.CollectorConfig(p, o)
		require.NoError(t, err)
		stops = append(stops, run(t, c.TailSampling()))
	}
	stops = append(stops, run(t, c.LoadBalancing()), run(t, c.Agent()))

	all = append([]sdktrace.ReadOnlySpan(nil), all...)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	send(t, o.AgentListen, all)
	for i := range stops { // a Collector that ends judges and sends what it holds
		stops[len(stops)-1-i]()
	}
	first, second := ofOTLP(backends[0].received()), ofOTLP(backends[1].received())
	if len(first)+len(second) > 30 {
		assert.NotEmpty(t, first, "both instances have traces")
		assert.NotEmpty(t, second, "both instances have traces")
	}
	for id, d := range second {
		assert.NotContains(t, first, id, "a trace belongs to one instance")
		first[id] = d
	}
	return first
}

// The generated tiers, as real Collectors over real connections, keep the traces that a
// Tail keeps.
func TestTheTiersDecideAsATailDoes(t *testing.T) {
	followsTracestate(t)
	for i, p := range expressible {
		t.Run(p.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			all, byTail := traffic(t, p, 300, r)
			byCollector := tiers(t, p, all, r)
			assertSame(t, ofSDK(all), byTail, byCollector)
			t.Logf("%d of 300 traces kept by both", len(byTail))
		})
	}
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
