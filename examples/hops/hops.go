package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/coder/websocket"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/genaitrace/otelgenai/examples/internal/inferencev1"
	"github.com/genaitrace/otelgenai/propagation"
)

// hops are the processes of the request, each with nothing in common with the
// others but what the request carries.
type hops struct {
	inferencev1.UnimplementedInferenceServer

	tracer trace.Tracer
	bridge *propagation.Bridge

	gateway, session, tool *httptest.Server
	engine                 *grpc.Server
	conn                   *grpc.ClientConn
	http2                  *http.Client

	sessions sync.WaitGroup // a server that closes does not wait for WebSockets

	chain propagation.PromptChain // as it arrived at the tool
}

// maxEngineHeaders is what gRPC servers of other languages accept by default.
const maxEngineHeaders = 8 << 10

func (h *hops) start() error {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h.http2 = &http.Client{Transport: &http.Transport{Protocols: protocols}}
	h.tool = httptest.NewUnstartedServer(http.HandlerFunc(h.serveTool))
	h.tool.Config.Protocols = protocols
	h.tool.Start()
	h.session = httptest.NewServer(http.HandlerFunc(h.serveSession))
	h.gateway = httptest.NewServer(http.HandlerFunc(h.serveGateway))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.engine = grpc.NewServer(grpc.MaxHeaderListSize(maxEngineHeaders))
	inferencev1.RegisterInferenceServer(h.engine, h)
	go h.engine.Serve(listener) //nolint:errcheck // its clients see what goes wrong
	h.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	return err
}

// stop returns when every span has ended.
func (h *hops) stop() error {
	var err error
	if h.conn != nil {
		err = h.conn.Close()
	}
	if h.engine != nil {
		h.engine.Stop()
	}
	h.http2.CloseIdleConnections()
	for _, server := range []*httptest.Server{h.gateway, h.session, h.tool} {
		server.Close()
	}
	h.sessions.Wait()
	return err
}

// ask is the client of the gateway.
func (h *hops) ask(ctx context.Context, question string) error {
	ctx, span := h.tracer.Start(ctx, "ask", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.gateway.URL, strings.NewReader(question))
	if err != nil {
		return err
	}
	h.bridge.ToHTTP(req)
	return do(h.gateway.Client(), req)
}

// serveGateway goes on over gRPC.
func (h *hops) serveGateway(w http.ResponseWriter, r *http.Request) {
	ctx, span := h.serve(h.bridge.FromHTTP(r), "POST /v1/chat/completions", trace.SpanKindServer)
	defer span.End()
	question, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx = propagation.ContextWithHop(ctx, "gateway")

	stream, err := inferencev1.NewInferenceClient(h.conn).Generate(h.bridge.ToGRPC(ctx), &inferencev1.GenerateRequest{
		Messages: []*inferencev1.Message{{Role: "user", Content: string(question)}},
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// Generate goes on over a message of a WebSocket. The upgrade request carries the
// context of the session, each message that of its own request.
func (h *hops) Generate(in *inferencev1.GenerateRequest, stream grpc.ServerStreamingServer[inferencev1.GenerateResponse]) error {
	ctx, span := h.serve(h.bridge.FromGRPC(stream.Context()), "inference.v1.Inference/Generate", trace.SpanKindServer)
	defer span.End()
	upgrade := http.Header{}
	h.bridge.Inject(ctx, propagation.HTTPHeader(upgrade))
	conn, resp, err := websocket.Dial(ctx, h.session.URL, &websocket.DialOptions{HTTPHeader: upgrade})
	if err != nil {
		return err
	}
	defer conn.CloseNow() //nolint:errcheck // after an orderly close it has nothing to do
	if resp.Body != nil {
		defer resp.Body.Close()
	}
	ctx, call := h.tracer.Start(ctx, "response.create", trace.WithSpanKind(trace.SpanKindClient))
	defer call.End()
	ctx = propagation.ContextWithHop(ctx, "engine", parentOf(ctx))

	metadata := propagation.Map{}
	h.bridge.Inject(ctx, metadata)
	message, err := json.Marshal(map[string]any{"type": "response.create", "input": in.GetMessages()[0].GetContent()})
	if err != nil {
		return err
	}
	if message, err = propagation.WriteEnvelope(message, metadata); err != nil {
		return err
	}
	if err := conn.Write(ctx, websocket.MessageText, message); err != nil {
		return err
	}
	if _, _, err := conn.Read(ctx); err != nil {
		return err
	}
	return conn.Close(websocket.StatusNormalClosure, "")
}

// parentOf is the last hop of the chain of ctx, which caused the next one.
func parentOf(ctx context.Context) trace.SpanID {
	chain, _ := propagation.PromptChainFromContext(ctx)
	if len(chain.Hops) == 0 {
		return trace.SpanID{}
	}
	return chain.Hops[len(chain.Hops)-1].SpanID
}

// serveSession goes on with a record of Kafka for each message. The span of the
// session is no parent of the messages; they link to it.
func (h *hops) serveSession(w http.ResponseWriter, r *http.Request) {
	h.sessions.Add(1)
	defer h.sessions.Done()
	ctx, session := h.serve(h.bridge.FromHTTP(r), "GET /v1/realtime", trace.SpanKindServer)
	defer session.End()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow() //nolint:errcheck // after an orderly close it has nothing to do
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			return
		}
		answer := "done"
		if err := h.serveMessage(ctx, session.SpanContext(), message); err != nil {
			answer = err.Error()
		}
		if conn.Write(ctx, websocket.MessageText, []byte(answer)) != nil {
			return
		}
	}
}

func (h *hops) serveMessage(ctx context.Context, session trace.SpanContext, message []byte) error {
	ctx = h.bridge.Extract(ctx, propagation.ReadEnvelope(message))
	ctx, span := h.tracer.Start(ctx, "realtime response", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithLinks(trace.Link{SpanContext: session}))
	defer span.End()

	ctx, send := h.tracer.Start(ctx, "send tool.calls", trace.WithSpanKind(trace.SpanKindProducer))
	rec := record{Value: message}
	h.bridge.Inject(ctx, propagation.NewKafka(&rec.Headers))
	send.End()
	return h.consume(rec)
}

// A record is what a client library of Kafka has; its header has the shape of that
// of franz-go, kafka-go and confluent-kafka-go.
type record struct {
	Headers []recordHeader
	Value   []byte
}

type recordHeader struct {
	Key   string
	Value []byte
}

// consume calls a tool of MCP over HTTP/2 for a record.
func (h *hops) consume(rec record) error {
	ctx := h.bridge.Extract(context.Background(), propagation.NewKafka(&rec.Headers))
	ctx, span := h.serve(ctx, "process tool.calls", trace.SpanKindConsumer)
	defer span.End()
	ctx, call := h.tracer.Start(ctx, "tools/call", trace.WithSpanKind(trace.SpanKindClient))
	defer call.End()
	ctx = propagation.ContextWithHop(ctx, "worker", parentOf(ctx))

	var body toolCall
	body.Method = "tools/call"
	body.Params.Meta = propagation.Meta{"progressToken": 1}
	h.bridge.Inject(ctx, body.Params.Meta)
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.tool.URL, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	return do(h.http2, req)
}

// toolCall is a JSON-RPC request of MCP.
type toolCall struct {
	Method string `json:"method"`
	Params struct {
		Meta propagation.Meta `json:"_meta"`
	} `json:"params"`
}

// serveTool is the end of the way.
func (h *hops) serveTool(w http.ResponseWriter, r *http.Request) {
	var call toolCall
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || r.ProtoMajor != 2 {
		http.Error(w, "no tool call over HTTP/2", http.StatusBadRequest)
		return
	}
	ctx := h.bridge.Extract(r.Context(), call.Params.Meta)
	_, span := h.serve(ctx, "tools/call lookup", trace.SpanKindServer)
	defer span.End()
	h.chain, _ = propagation.PromptChainFromContext(ctx)
}

func do(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return nil
}

// serve starts the span of a request that came in with ctx, with links to what is
// not its parent.
func (h *hops) serve(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	return h.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithLinks(propagation.Links(ctx)...))
}
