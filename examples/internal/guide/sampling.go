package guide

import (
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/sampling"
)

func tellEachOther(mux *http.ServeMux, tail *sampling.Tail, own []grpc.ServerOption) (http.Handler, http.RoundTripper, *grpc.Server, grpc.DialOption) {
	handler := genaihttp.NewHandler(mux, genaihttp.WithTailSampler(tail))     // tells its callers
	transport := genaihttp.NewTransport(nil, genaihttp.WithTailSampler(tail)) // hears its callees

	server := grpc.NewServer(append(genaigrpc.TailServerOptions(tail), own...)...)
	client := grpc.WithStatsHandler(genaigrpc.NewClientHandler(genaigrpc.WithTailSampler(tail)))
	return handler, transport, server, client
}

func collectors(policy sampling.Policy, write func(file, text string)) error {
	c, err := sampling.CollectorConfig(policy, sampling.CollectorOptions{
		Backend:      "https://otlp.example.com:4317",
		Samplers:     sampling.SamplerTier{DNS: "samplers.monitoring:4317"},
		LoadBalancer: "http://balancer.gpu-group-7:4317",
		DecisionWait: 90 * time.Second, // longer than the longest stream
	})
	write("agent.yaml", c.Agent())
	write("balancer.yaml", c.LoadBalancing())
	write("sampler.yaml", c.TailSampling())
	return err
}
