// Command rag answers a question about this project from the project's own documents,
// and prints where its time went:
//
//	openai-go client → HTTP gateway → rewrite, search twice, rerank, prompt
//	                                → gRPC inference service → engine
//
// The documents are cut at their headings into a vector store (chromem-go) and a
// lexical index (bleve), both in memory and both real. The vectors are hashes of words,
// which know nothing of meaning, and the engine is a toy that quotes the sentence that
// fits best. With -base-url a server that speaks OpenAI's API makes the vectors
// (-embedding-model), or answers (-model), or both.
//
//	go run ./examples/rag
//	go run ./examples/rag -prompt "Who ends a stream that goes idle?"
//	go run ./examples/rag -docs ~/notes -prompt "…" -record rag.jsonl
//	go run ./examples/rag -base-url http://localhost:11434/v1 -embedding-model nomic-embed-text
//
// With OTEL_EXPORTER_OTLP_ENDPOINT set, traces and metrics are exported as well. The
// heart of it is in pipeline.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

func main() { command.Main("rag", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	chunks, err := readDocs(cfg.docs)
	if err != nil {
		return err
	}
	tel, err := telemetry.New(ctx, "otelgenai-rag", cfg.record)
	if err != nil {
		return err
	}
	err = serveAndAsk(ctx, cfg, tel, chunks, stdout, stderr)
	reported := report(stdout, cfg, tel.Spans.Ended())
	tel.Close(stderr)
	return errors.Join(err, reported)
}

// serveAndAsk runs the hops for as long as the questions take. When it returns, every
// span has ended.
func serveAndAsk(ctx context.Context, cfg *config, tel *telemetry.Telemetry, chunks []chunk, stdout, stderr io.Writer) error {
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	var embed embedder = hashing{tel.Tracer}
	if cfg.embeddingModel != "" {
		embed = newRemote(cfg, tel, base)
	}
	d, err := newDense(tel.Tracer, embed)
	if err != nil {
		return err
	}
	l, err := newLexical(tel.Tracer)
	if err != nil {
		return err
	}
	defer func() { _ = l.index.Close() }() // in memory: nothing can be lost
	if err := ingest(ctx, tel, chunks, d, l, stderr); err != nil {
		return err
	}

	gateway, stopBackend, err := serving.NewBackend(cfg.chatURL(), engine, tel)
	if err != nil {
		return err
	}
	defer stopBackend()
	p := newPipeline(tel, chunks, d, l)
	address, stop, err := serving.Listen(serving.Traced(grounded(p, gateway), tel))
	if err != nil {
		return err
	}
	defer stop()
	client := newClient(address, base, cfg)
	for i := range cfg.requests {
		if err := ask(ctx, client, p, cfg.question(i), stdout); err != nil {
			return err
		}
	}
	return nil
}

// engine reads faster than its default: prompts with sources are long.
var engine = toy.Config{PrefillTime: time.Millisecond}

// newClient is the user of the gateway.
func newClient(gatewayURL string, transport http.RoundTripper, cfg *config) *chatclient.Client {
	o := chatclient.Options{BaseURL: gatewayURL + "/v1", Transport: transport, Model: cfg.model, Stream: true}
	if cfg.chatURL() == nil {
		o.APIKey = "none" // a real one is for real servers
	}
	return chatclient.New(o)
}

// ask prints a question, its answer as it comes, and the sources of it.
func ask(ctx context.Context, c *chatclient.Client, p *pipeline, question string, out io.Writer) error {
	fmt.Fprintf(out, "Q: %s\nA: ", question)
	var answer *http.Response
	text, err := c.Ask(ctx, question, func(piece string) { fmt.Fprint(out, piece) }, option.WithResponseInto(&answer))
	if err != nil {
		if text != "" {
			fmt.Fprint(out, "\n   ")
		}
		fmt.Fprintf(out, "✗ %v\n", err)
		return command.ShownError{Err: err}
	}
	fmt.Fprint(out, "\n\n")
	for i, id := range answer.Header.Values(sourceHeader) {
		fmt.Fprintf(out, "[%d] %s (%s)\n", i+1, p.chunks[id].title, id)
	}
	for _, name := range answer.Header.Values(failedHeader) {
		fmt.Fprintf(out, "The %s search failed: this is what the other one found.\n", name)
	}
	fmt.Fprintln(out)
	return nil
}
