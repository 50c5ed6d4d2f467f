// Command chat sends a question through three hops in one process, and prints
// where its time went:
//
//	openai-go client → HTTP gateway → gRPC inference service → engine
//
// The hops are real and talk over loopback; the engine is a toy (see package
// toy). With -base-url the gateway passes the question on to any
// OpenAI-compatible server instead. With OTEL_EXPORTER_OTLP_ENDPOINT set, or the
// variable of one signal such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, the traces
// and metrics are exported as well.
//
//	go run ./examples/chat
//	go run ./examples/chat -prompt "What is 17 * 23?" -stream=false
//	go run ./examples/chat -n 8 -concurrency 4
//	go run ./examples/chat -base-url http://localhost:11434/v1 -model qwen2.5:0.5b
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once

	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		fmt.Fprintf(os.Stderr, "warning: telemetry: %v\n", err)
	}))

	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintf(os.Stderr, "chat: %v\nchat -help lists the flags.\n", err)
		os.Exit(2)
	case errors.As(err, new(shownError)):
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "chat: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	tel, err := newTelemetry(ctx)
	if err != nil {
		return err
	}
	errs, asked := serveAndAsk(ctx, cfg, tel, stdout, stderr)
	reported := report(stdout, cfg, tel, errs)
	tel.close(stderr)
	return errors.Join(asked, reported)
}

// serveAndAsk runs the hops for as long as the questions take. When it returns,
// every span has ended. It returns the error of each of several requests, and one
// for all.
func serveAndAsk(ctx context.Context, cfg *config, tel *telemetry, stdout, stderr io.Writer) ([]error, error) {
	handler, closeBackend, err := newBackend(cfg, tel)
	if err != nil {
		return nil, err
	}
	defer closeBackend()

	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	gateway := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = gateway.Serve(lis) }() // until the shutdown
	defer shutdown(gateway)

	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c := newClient("http://"+lis.Addr().String(), transport, cfg)
	if cfg.requests == 1 {
		return nil, askOne(ctx, c, cfg, stdout)
	}
	return askMany(ctx, c, cfg, stderr)
}

// newBackend makes the gateway's handler and what stands behind it.
func newBackend(cfg *config, tel *telemetry) (handler http.Handler, stop func(), err error) {
	if cfg.baseURL != nil {
		return newProxy(cfg.baseURL, tel), func() {}, nil
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := newService(toy.New(toy.Config{}, tel.tracer), tel)
	go func() { _ = server.Serve(lis) }() // until it is stopped

	conn, err := dial(lis.Addr().String(), tel)
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return newGateway(conn, tel), func() {
		_ = conn.Close()
		server.GracefulStop() // waits for the handlers, and so for their spans
	}, nil
}

// dial connects the gateway with the inference service.
func dial(target string, tel *telemetry, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(
			genaigrpc.WithTracerProvider(tel.traces),
			genaigrpc.WithMeterProvider(tel.metrics),
		)),
	)...)
}

// shutdown waits for the handlers, and so for their spans.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
