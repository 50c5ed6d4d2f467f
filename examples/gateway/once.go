package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/capture/waterfall"
	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/reading"
	"github.com/genaitrace/otelgenai/examples/internal/spanlog"
)

// askOnce sends one question through the gateway, on an address that nobody else
// knows, and prints the answer and where its time went.
func askOnce(ctx context.Context, cfg *config, gateway http.Handler, tel *telemetry, stdout io.Writer, faults *log.Logger) error {
	spans := &spanlog.Recorder{}
	recorder := sdktrace.NewSimpleSpanProcessor(spans)
	tel.traces.RegisterSpanProcessor(recorder)
	defer tel.traces.UnregisterSpanProcessor(recorder)

	asked := ask(ctx, cfg, gateway, stdout, faults)
	if ended := spans.Ended(); len(ended) > 0 {
		fmt.Fprintln(stdout)
		return errors.Join(asked, waterfall.Render(stdout, ended, waterfall.Options{}), reading.Write(stdout, ended))
	}
	return asked
}

// ask returns when every span of the question has ended.
func ask(ctx context.Context, cfg *config, gateway http.Handler, stdout io.Writer, faults *log.Logger) error {
	url, stop, err := serveLocally(gateway, faults)
	if err != nil {
		return err
	}
	defer stop()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	o := chatclient.Options{BaseURL: cfg.apiBase(url), Transport: transport, Model: cfg.model, Stream: true}
	if cfg.toy {
		o.APIKey = "none" // a real one is for real servers
	}
	fmt.Fprintf(stdout, "Q: %s\nA: ", cfg.prompt)
	_, err = chatclient.New(o).Ask(ctx, cfg.prompt, func(piece string) { fmt.Fprint(stdout, piece) })
	if err != nil {
		fmt.Fprintf(stdout, "✗ %v\n", err)
		return command.ShownError{Err: err}
	}
	fmt.Fprintln(stdout)
	return nil
}

// serveLocally serves h on a port of its own. stop waits for its requests.
func serveLocally(h http.Handler, faults *log.Logger) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	underWay := &requests{next: h}
	server := newServer(underWay, faults)
	go func() { _ = server.Serve(l) }() // until it is stopped
	return "http://" + l.Addr().String(), func() {
		drain(server, underWay, flushTimeout, func() {}, faults)
	}, nil
}
