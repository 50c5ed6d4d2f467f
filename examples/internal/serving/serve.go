package serving

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// NewBackend makes the gateway and what stands behind it: a proxy before base, or,
// where that is nil, the inference service with its engine on a port of loopback.
func NewBackend(base *url.URL, engine toy.Config, tel *telemetry.Telemetry) (gateway http.Handler, stop func(), err error) {
	if base != nil {
		return NewProxy(base, tel), func() {}, nil
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := NewService(toy.New(engine, tel.Tracer), tel)
	go func() { _ = server.Serve(lis) }() // until it is stopped

	conn, err := Dial(lis.Addr().String(), tel)
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return NewGateway(conn, tel), func() {
		_ = conn.Close()
		server.GracefulStop() // waits for the handlers, and so for their spans
	}, nil
}

// Dial connects the gateway with the inference service.
func Dial(target string, tel *telemetry.Telemetry, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(
			genaigrpc.WithTracerProvider(tel.Traces),
			genaigrpc.WithMeterProvider(tel.Metrics),
		)),
	)...)
}

// Listen serves handler on a port of loopback and returns its URL. stop waits for
// the handlers, and so for their spans.
func Listen(handler http.Handler) (address string, stop func(), err error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(lis) }() // until the shutdown
	return "http://" + lis.Addr().String(), func() { Shutdown(server) }, nil
}

// Shutdown waits for the handlers, and so for their spans.
func Shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
