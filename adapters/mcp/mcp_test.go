package genaimcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otelpropagation "go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	genaimcp "github.com/genaitrace/otelgenai/adapters/mcp"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// childVariable makes the test binary a server over stdio.
const childVariable = "GENAIMCP_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		serveStdio()
		return
	}
	goleak.VerifyTestMain(m)
}

var implementation = &mcp.Implementation{Name: "test", Version: "v1"}

// A recording is what one side recorded.
type recording struct {
	spans    *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
}

func record() *recording {
	r := &recording{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	r.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	return r
}

func (r *recording) options(more ...genaimcp.Option) []genaimcp.Option {
	return append([]genaimcp.Option{genaimcp.WithTracerProvider(r.provider), genaimcp.WithMeterProvider(r.meters)}, more...)
}

// A seen span is one that ended, in a form that goes over stdio too.
type seen struct {
	Name, Kind, TraceID, SpanID, ParentID, Status string
	Remote                                        bool
	Links                                         []string
	Attributes                                    map[string]any
}

func (r *recording) ended() (all []seen) {
	for _, s := range r.spans.Ended() {
		one := seen{
			Name: s.Name(), Kind: s.SpanKind().String(), TraceID: s.SpanContext().TraceID().String(),
			SpanID: s.SpanContext().SpanID().String(), ParentID: s.Parent().SpanID().String(), Remote: s.Parent().IsRemote(),
			Attributes: map[string]any{},
		}
		if s.Status().Code == codes.Error {
			one.Status = "error" + s.Status().Description
		}
		for _, l := range s.Links() {
			one.Links = append(one.Links, l.SpanContext.SpanID().String())
		}
		for _, kv := range s.Attributes() {
			one.Attributes[string(kv.Key)] = kv.Value.AsInterface()
		}
		all = append(all, one)
	}
	return all
}

// span returns the only ended span of that name and kind.
func find(t *testing.T, spans []seen, name, kind string) seen {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(spans), func(s seen) bool { return s.Name != name || s.Kind != kind })
	require.Len(t, found, 1, "%s %s among %v", kind, name, spans)
	return found[0]
}

// point returns the attributes of the points of a histogram.
func (r *recording) points(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &got))
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			assert.Equal(t, "s", m.Unit)
			for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				attrs := map[string]any{"count": p.Count}
				for _, kv := range p.Attributes.ToSlice() {
					attrs[string(kv.Key)] = kv.Value.AsInterface()
				}
				all = append(all, attrs)
			}
		}
	}
	return all
}

type weather struct {
	City string `json:"city"`
}

// newServer is a server with tools that go well and wrong.
func newServer(r *recording, opts ...genaimcp.Option) *mcp.Server {
	server := mcp.NewServer(implementation, nil)
	genaimcp.Attach(server, r.options(opts...)...)
	add := func(name string, handle func(context.Context, *mcp.CallToolRequest) error) {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, _ weather) (*mcp.CallToolResult, any, error) {
			if err := handle(ctx, req); err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sunny"}}}, nil, nil
		})
	}
	add("get_weather", func(ctx context.Context, _ *mcp.CallToolRequest) error {
		_, below := r.provider.Tracer("test").Start(ctx, "below")
		below.End()
		return nil
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) error { return errors.New("secret city") })
	add("refuses", func(context.Context, *mcp.CallToolRequest) error {
		return &jsonrpc.Error{Code: -32042, Message: "secret city"}
	})
	add("waits", func(ctx context.Context, _ *mcp.CallToolRequest) error { <-ctx.Done(); return ctx.Err() })
	add("asks", func(ctx context.Context, req *mcp.CallToolRequest) error {
		return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
	})
	mcp.AddTool(server, &mcp.Tool{Name: "spans"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		text, err := json.Marshal(r.ended())
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	server.AddResource(&mcp.Resource{Name: "readme", URI: "file:///readme.md"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "x"}}}, nil
	})
	return server
}

func serveStdio() {
	if err := newServer(record(), genaimcp.WithTransport(&mcp.StdioTransport{})).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// connect connects a client, which is closed at the end of the test.
func connect(t *testing.T, r *recording, transport mcp.Transport, version string, opts ...genaimcp.Option) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(implementation, nil)
	genaimcp.Attach(client, r.options(append(opts, genaimcp.WithTransport(transport))...)...)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

const (
	stateful  = "2025-06-18"
	stateless = "2026-07-28"
)

func TestOneTraceOverEveryTransport(t *testing.T) {
	for _, version := range []string{stateful, stateless} {
		t.Run("stdio to a child process "+version, func(t *testing.T) {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), childVariable+"=1")
			child.Stderr = os.Stderr
			ours := record()
			session := connect(t, ours, &mcp.CommandTransport{Command: child}, version)
			oneTrace(t, ours, session, func() []seen {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "spans"})
				require.NoError(t, err)
				var spans []seen
				require.NoError(t, json.Unmarshal([]byte(result.Content[0].(*mcp.TextContent).Text), &spans))
				return spans
			}, version, map[string]any{"network.transport": "pipe"}, nil)
		})
		t.Run("streamable HTTP "+version, func(t *testing.T) {
			theirs, ours := record(), record()
			server := newServer(theirs)
			srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: version == stateless}))
			t.Cleanup(srv.Close)
			host, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
			session := connect(t, ours, &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: srv.Client()}, version)
			oneTrace(t, ours, session, theirs.ended, version,
				map[string]any{"network.transport": "tcp", "network.protocol.name": "http"},
				map[string]any{"server.address": host, "server.port": port})
		})
		t.Run("in memory "+version, func(t *testing.T) {
			theirs, ours := record(), record()
			session := inMemory(t, ours, theirs, version)
			oneTrace(t, ours, session, theirs.ended, version, nil, nil)
		})
	}
}

// inMemory connects a client with a server in this process.
func inMemory(t *testing.T, ours, theirs *recording, version string, opts ...genaimcp.Option) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	_, err := newServer(theirs, opts...).Connect(t.Context(), there, nil)
	require.NoError(t, err)
	return connect(t, ours, here, version, opts...)
}

// oneTrace calls a tool, and holds the spans of both sides to one another and to the
// conventions.
func oneTrace(t *testing.T, ours *recording, session *mcp.ClientSession, theirs func() []seen, version string, transport, peer map[string]any) {
	t.Helper()
	ctx, root := ours.provider.Tracer("test").Start(t.Context(), "root")
	params := &mcp.CallToolParams{Name: "get_weather", Arguments: weather{"secret city"}}
	_, err := session.CallTool(ctx, params)
	require.NoError(t, err)
	assert.NotContains(t, params.GetMeta(), "traceparent", "the caller's parameters are the caller's")
	root.End()

	call := find(t, ours.ended(), "tools/call get_weather", "client")
	spans := theirs()
	handled := find(t, spans, "tools/call get_weather", "server")
	below := find(t, spans, "below", "internal")

	assert.Equal(t, root.SpanContext().SpanID().String(), call.ParentID)
	assert.Equal(t, call.SpanID, handled.ParentID)
	assert.True(t, handled.Remote)
	assert.Equal(t, handled.SpanID, below.ParentID)
	for _, s := range []seen{call, handled, below} {
		assert.Equal(t, root.SpanContext().TraceID().String(), s.TraceID)
	}
	for _, s := range []seen{call, handled} {
		assert.Equal(t, "tools/call", s.Attributes["mcp.method.name"])
		assert.Equal(t, "get_weather", s.Attributes["gen_ai.tool.name"])
		assert.Equal(t, "execute_tool", s.Attributes["gen_ai.operation.name"])
		assert.Equal(t, "mcp", s.Attributes["genai.span.role"])
		assert.Equal(t, version, s.Attributes["mcp.protocol.version"])
		for key, want := range transport {
			assert.Equal(t, want, s.Attributes[key], key)
		}
		assert.NotContains(t, fmt.Sprint(s), "secret")
		if session.ID() != "" {
			assert.Equal(t, session.ID(), s.Attributes["mcp.session.id"])
		}
		kind, ok := semconv.RecognizeSpan(s.Name, map[string]trace.SpanKind{"client": trace.SpanKindClient, "server": trace.SpanKindServer}[s.Kind],
			func(key attribute.Key) (attribute.Value, bool) {
				text, ok := s.Attributes[string(key)].(string)
				return attribute.StringValue(text), ok
			})
		require.True(t, ok)
		assert.Equal(t, "mcp."+s.Kind, kind.Type)
		for key := range s.Attributes {
			assert.True(t, key == "genai.span.role" || slices.ContainsFunc(kind.Attributes, func(r semconv.Requirement) bool { return string(r.Key) == key }), "%s is not listed for %s", key, kind.Type)
		}
	}
	for key, want := range peer {
		assert.Equal(t, want, fmt.Sprint(call.Attributes[key]), key)
		assert.NotContains(t, handled.Attributes, key)
	}

	first := "initialize"
	if version == stateless {
		first = "server/discover"
	}
	assert.Equal(t, find(t, ours.ended(), first, "client").SpanID, find(t, spans, first, "server").ParentID)
}

func TestHowAMessageEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		call    func(ctx context.Context, session *mcp.ClientSession) error
		span    string
		errType string
		code    string
		own     string // name of the server's span, where it is another
	}{
		"well": {func(ctx context.Context, s *mcp.ClientSession) error {
			_, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"})
			return err
		}, "prompts/get greet", "", "", ""},
		"a resource": {func(ctx context.Context, s *mcp.ClientSession) error {
			_, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///readme.md"})
			return err
		}, "resources/read", "", "", ""},
		"a list": {func(ctx context.Context, s *mcp.ClientSession) error {
			_, err := s.ListTools(ctx, nil)
			return err
		}, "tools/list", "", "", ""},
		"the tool answers an error": {callTool("fails"), "tools/call fails", "tool_error", "", ""},
		"the tool refuses":          {callTool("refuses"), "tools/call refuses", "-32042", "-32042", "tools/call"},
		"there is no such tool":     {callTool("made_up"), "tools/call made_up", "-32602", "-32602", "tools/call"},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := record(), record()
			session := inMemory(t, ours, theirs, stateful)
			err := tt.call(t.Context(), session)
			assert.Equal(t, tt.code != "", err != nil, "the SDK's own answer: %v", err)
			if tt.own == "" {
				tt.own = tt.span
			}
			for _, s := range []seen{find(t, ours.ended(), tt.span, "client"), find(t, theirs.ended(), tt.own, "server")} {
				assert.NotContains(t, fmt.Sprint(s), "secret")
				if tt.errType == "" {
					assert.Empty(t, s.Status)
					assert.NotContains(t, s.Attributes, "error.type")
					continue
				}
				assert.Equal(t, "error", s.Status, "without a text")
				assert.Equal(t, tt.errType, s.Attributes["error.type"])
				if tt.code != "" {
					assert.Equal(t, tt.code, s.Attributes["rpc.response.status_code"])
				}
			}
			for name, r := range map[string]*recording{"mcp.client.operation.duration": ours, "mcp.server.operation.duration": theirs} {
				points := r.points(t, name)
				method, _, _ := strings.Cut(tt.span, " ")
				at := slices.IndexFunc(points, func(p map[string]any) bool { return p["mcp.method.name"] == method })
				require.GreaterOrEqual(t, at, 0, "%v", points)
				assert.Equal(t, uint64(1), points[at]["count"])
				if tt.errType != "" {
					assert.Equal(t, tt.errType, points[at]["error.type"])
				}
				if tt.own != tt.span && r == theirs {
					assert.Equal(t, "_OTHER", points[at]["gen_ai.tool.name"], "what a stranger made up")
				}
				assert.NotContains(t, points[at], "mcp.resource.uri")
			}
		})
	}
}

// Each metric has the dimensions of the registry and no others, and its buckets.
func TestTheMetricsAreThoseOfTheRegistry(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful, genaimcp.WithSessions())
	for _, tool := range []string{"get_weather", "fails", "refuses"} {
		_ = callTool(tool)(t.Context(), session)
	}
	_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet"})
	require.NoError(t, err)
	require.NoError(t, session.Close())
	for name, r := range map[string]*recording{
		"mcp.client.operation.duration": ours, "mcp.server.operation.duration": theirs,
		"mcp.client.session.duration": ours, "mcp.server.session.duration": theirs,
	} {
		require.Eventually(t, func() bool { return len(r.points(t, name)) > 0 }, time.Minute, time.Millisecond, name)
		registered, ok := semconv.LookupMetric(name)
		require.True(t, ok, name)
		for _, point := range r.points(t, name) {
			delete(point, "count")
			for _, a := range registered.Attributes {
				if a.Level == semconv.LevelRequired {
					assert.Contains(t, point, string(a.Key), name)
				}
			}
			for key := range point {
				assert.True(t, slices.ContainsFunc(registered.Attributes, func(a semconv.Requirement) bool { return string(a.Key) == key }),
					"%s is not listed for %s", key, name)
			}
		}
	}
}

func callTool(name string) func(context.Context, *mcp.ClientSession) error {
	return func(ctx context.Context, s *mcp.ClientSession) error {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: weather{"secret city"}})
		return err
	}
}

func TestWhoGivesUpHasNotFailedAndADeadlineHas(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	require.Error(t, callTool("waits")(ctx, session))
	s := find(t, ours.ended(), "tools/call waits", "client")
	assert.Empty(t, s.Status)
	assert.NotContains(t, s.Attributes, "error.type")

	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, callTool("waits")(ctx, session))
	last := ours.ended()[len(ours.ended())-1]
	for _, s := range ours.ended() {
		if s.Attributes["error.type"] != nil {
			last = s
		}
	}
	assert.Equal(t, "timeout", last.Attributes["error.type"])
}

// A handler whose own work was cancelled leaves a caller without an answer.
func TestWorkThatWasCancelledWhileSomebodyWaitsHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		cancelled bool
		err       error
		want      any
	}{
		"the work":    {false, fmt.Errorf("search: %w", context.Canceled), "_OTHER"},
		"the message": {true, fmt.Errorf("search: %w", context.Canceled), nil},
		"both":        {true, errors.New("gave up"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := record()
			e := &endpoint{}
			genaimcp.Attach(e, r.options()...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handle := func(context.Context, string, mcp.Request) (mcp.Result, error) {
				if c.cancelled {
					cancel()
				}
				return nil, c.err
			}
			req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "search"}}
			_, err := e.receiving(handle)(ctx, "tools/call", req)
			require.ErrorIs(t, err, c.err)
			require.Len(t, r.ended(), 1)
			assert.Equal(t, c.want, r.ended()[0].Attributes["error.type"])
		})
	}
}

// A server asks its client in the trace of the call that it serves.
func TestBothSidesSendAndReceive(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful)
	require.NoError(t, callTool("asks")(t.Context(), session))
	handled := find(t, theirs.ended(), "tools/call asks", "server")
	sent := find(t, theirs.ended(), "notifications/progress", "client")
	assert.Equal(t, handled.SpanID, sent.ParentID)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(ours.ended(), func(s seen) bool { return s.Name == "notifications/progress" })
	}, time.Minute, time.Millisecond)
	assert.Equal(t, sent.SpanID, find(t, ours.ended(), "notifications/progress", "server").ParentID)
}

// _meta wins over the HTTP request that the message came with, and the span links to
// what it is no child of.
func TestTheContextOfTheMessageWinsOverThatOfItsTransport(t *testing.T) {
	theirs := record()
	ctx, around := theirs.provider.Tracer("http").Start(t.Context(), "POST /mcp")
	handle := func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, nil }
	capture := &endpoint{}
	genaimcp.Attach(capture, theirs.options()...)
	for meta, parent := range map[string]string{
		"":        around.SpanContext().SpanID().String(),
		"rubbish": around.SpanContext().SpanID().String(),
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "b7ad6b7169203331",
	} {
		params := &mcp.CallToolParamsRaw{Name: "t", Meta: mcp.Meta{"traceparent": meta}}
		_, err := capture.receiving(handle)(ctx, "tools/call", &mcp.CallToolRequest{Params: params})
		require.NoError(t, err)
		ended := theirs.ended()
		last := ended[len(ended)-1]
		assert.Equal(t, parent, last.ParentID)
		if last.Remote {
			assert.Equal(t, []string{around.SpanContext().SpanID().String()}, last.Links)
		} else {
			assert.Empty(t, last.Links)
		}
	}
	around.End()
}

// An endpoint keeps the middlewares that it gets.
type endpoint struct{ sending, receiving mcp.Middleware }

func (e *endpoint) AddSendingMiddleware(m ...mcp.Middleware)   { e.sending = m[0] }
func (e *endpoint) AddReceivingMiddleware(m ...mcp.Middleware) { e.receiving = m[0] }

// Messages without parameters, of any kind that the SDK passes on, are no trouble.
func TestMessagesWithoutParameters(t *testing.T) {
	r := record()
	e := &endpoint{}
	genaimcp.Attach(e, r.options()...)
	handle := func(context.Context, string, mcp.Request) (mcp.Result, error) { return (*mcp.CallToolResult)(nil), nil }
	for _, req := range []mcp.Request{
		&mcp.ServerRequest[*mcp.CallToolParamsRaw]{}, &mcp.ClientRequest[*mcp.CallToolParams]{},
		&mcp.ServerRequest[*mcp.PingParams]{Params: &mcp.PingParams{}}, &mcp.ClientRequest[*mcp.InitializedParams]{},
	} {
		for _, middleware := range []mcp.Middleware{e.sending, e.receiving} {
			_, err := middleware(handle)(t.Context(), "ping", req)
			require.NoError(t, err)
		}
	}
	assert.Len(t, r.ended(), 8)
}

// A tool that the model asked for is around the call, and the contract's tool.
func TestAToolCallIsBelowItsExecution(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful)
	tr := genaitrace.New(genaitrace.WithTracerProvider(ours.provider), genaitrace.WithMeterProvider(ours.meters))
	ctx, tool := tr.StartTool(t.Context(), genaitrace.ToolCall{Name: "get_weather", Type: "extension"})
	require.NoError(t, callTool("get_weather")(ctx, session))
	tool.End()
	assert.Equal(t, find(t, ours.ended(), "execute_tool get_weather", "internal").SpanID, find(t, ours.ended(), "tools/call get_weather", "client").ParentID)
}

func TestAPublicServerLinksToStrangers(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful, genaimcp.WithPropagator(propagation.New(propagation.WithPublicEndpoint())))
	require.NoError(t, callTool("get_weather")(t.Context(), session))
	handled, call := find(t, theirs.ended(), "tools/call get_weather", "server"), find(t, ours.ended(), "tools/call get_weather", "client")
	assert.NotEqual(t, call.TraceID, handled.TraceID)
	assert.Equal(t, []string{call.SpanID}, handled.Links)
}

// What the caller put into _meta stays, and calls may share their parameters.
func TestTheParametersOfACallerAreNotTouched(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful)
	params := &mcp.CallToolParams{Name: "get_weather", Arguments: weather{"x"}, Meta: mcp.Meta{"mine": "yes", "TraceParent": "stale"}}
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			_, err := session.CallTool(t.Context(), params)
			assert.NoError(t, err)
		})
	}
	together.Wait()
	assert.Equal(t, mcp.Meta{"mine": "yes", "TraceParent": "stale"}, params.Meta)
	parents := map[string]bool{}
	for _, s := range theirs.ended() {
		if s.Name == "tools/call get_weather" || s.Name == "tools/call" && s.Attributes["gen_ai.tool.name"] == "get_weather" {
			assert.True(t, s.Remote)
			parents[s.ParentID] = true
		}
	}
	assert.Len(t, parents, 8, "each has the context of its own call")
}

func TestTheNamesOfStrangersAreBounded(t *testing.T) {
	theirs, ours := record(), record()
	session := inMemory(t, ours, theirs, stateful)
	for i := range 150 {
		require.Error(t, callTool(fmt.Sprint("made_up_", i))(t.Context(), session))
	}
	require.Error(t, callTool(strings.Repeat("x\xff", 10000))(t.Context(), session))
	require.NoError(t, callTool("get_weather")(t.Context(), session))
	names := map[string]int{}
	for _, s := range theirs.ended() {
		names[s.Name]++
		if name, ok := s.Attributes["gen_ai.tool.name"].(string); ok {
			assert.LessOrEqual(t, len(name), 256)
		}
	}
	assert.Equal(t, 151, names["tools/call"])
	assert.Equal(t, 1, names["tools/call get_weather"], "they took no room")
	for _, s := range ours.ended() {
		names[s.Name]++
	}
	assert.LessOrEqual(t, len(names), 110)
	assert.LessOrEqual(t, len(ours.points(t, "mcp.client.operation.duration")), 110)
	assert.LessOrEqual(t, len(theirs.points(t, "mcp.server.operation.duration")), 10)
}

// A middleware that turns strangers away, or a call that is given up, is no answer of
// the tool.
func TestANameThatWasNotAnsweredStaysOut(t *testing.T) {
	theirs, ours := record(), record()
	server := mcp.NewServer(implementation, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				return nil, errors.New("not allowed")
			}
			return next(ctx, method, req)
		}
	})
	genaimcp.Attach(server, theirs.options()...)
	here, there := mcp.NewInMemoryTransports()
	s, err := server.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	defer s.Wait()
	session := connect(t, ours, here, stateful)
	for i := range 10 {
		require.Error(t, callTool(fmt.Sprint("made_up_", i))(t.Context(), session))
	}
	require.NoError(t, session.Close())
	for _, s := range theirs.ended() {
		assert.NotContains(t, s.Name, "made_up")
	}
	for _, p := range theirs.points(t, "mcp.server.operation.duration") {
		assert.NotContains(t, fmt.Sprint(p["gen_ai.tool.name"]), "made_up")
	}
}

// A broken propagator panics whatever it is asked.
type brokenPropagator struct {
	otelpropagation.TextMapPropagator
}

func (brokenPropagator) Inject(context.Context, otelpropagation.TextMapCarrier) { panic("broken") }

func (brokenPropagator) Extract(context.Context, otelpropagation.TextMapCarrier) context.Context {
	panic("broken")
}

func TestAPropagatorThatPanicsDoesNotBreakTheMessage(t *testing.T) {
	r := record()
	here, there := mcp.NewInMemoryTransports()
	broken := genaimcp.WithPropagator(brokenPropagator{})
	server, err := newServer(r, broken).Connect(t.Context(), there, nil)
	require.NoError(t, err)
	defer server.Wait()
	session := connect(t, r, here, stateful, broken)
	require.NoError(t, callTool("get_weather")(t.Context(), session))
	require.NoError(t, session.Close())
	find(t, r.ended(), "tools/call get_weather", "client")
	find(t, r.ended(), "tools/call get_weather", "server")
}

func TestSessionsAreTimedWhereAnOptionAsksForIt(t *testing.T) {
	for _, asked := range []bool{false, true} {
		theirs, ours := record(), record()
		var opts []genaimcp.Option
		if asked {
			opts = append(opts, genaimcp.WithSessions())
		}
		session := inMemory(t, ours, theirs, stateful, opts...)
		require.NoError(t, session.Close())
		for name, r := range map[string]*recording{"mcp.client.session.duration": ours, "mcp.server.session.duration": theirs} {
			if !asked {
				assert.Empty(t, r.points(t, name))
				continue
			}
			require.Eventually(t, func() bool { return len(r.points(t, name)) == 1 }, time.Minute, time.Millisecond, name)
			assert.Equal(t, map[string]any{"count": uint64(1), "mcp.protocol.version": stateful}, r.points(t, name)[0])
		}
	}
}

// A session that is closed while a side of it reads or writes ends with the error of that.
func TestASessionThatIsClosedWhileItReadsIsNotLost(t *testing.T) {
	for _, c := range []struct {
		err  error
		want any
	}{
		{fmt.Errorf("reading: %w", io.ErrClosedPipe), nil},
		{fmt.Errorf("reading: %w", os.ErrClosed), nil},
		{fmt.Errorf("reading: %w", net.ErrClosed), nil},
		{errors.New("reading: reset by peer"), "connection_lost"},
	} {
		ours, theirs := record(), record()
		here, there := mcp.NewInMemoryTransports()
		server, err := newServer(theirs).Connect(t.Context(), there, nil)
		require.NoError(t, err)
		session := connect(t, ours, breaking{here, c.err}, stateful, genaimcp.WithSessions())
		require.NoError(t, server.Close())
		_ = session.Close()
		const name = "mcp.client.session.duration"
		require.Eventually(t, func() bool { return len(ours.points(t, name)) == 1 }, time.Minute, time.Millisecond)
		assert.Equal(t, c.want, ours.points(t, name)[0]["error.type"], "%v", c.err)
	}
}

// breaking is a transport that fails where it should end.
type breaking struct {
	mcp.Transport
	err error
}

func (b breaking) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := b.Transport.Connect(ctx)
	return brokenConnection{c, b.err}, err
}

type brokenConnection struct {
	mcp.Connection
	err error
}

func (c brokenConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		err = c.err
	}
	return m, err
}

// Middleware of others may panic: the span ends, and the panic goes on.
func TestAPanicEndsTheSpanAndPasses(t *testing.T) {
	ours := record()
	client := mcp.NewClient(implementation, nil)
	client.AddSendingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler {
		return func(context.Context, string, mcp.Request) (mcp.Result, error) { panic("secret") }
	})
	genaimcp.Attach(client, ours.options()...)
	here, there := mcp.NewInMemoryTransports()
	other, err := there.Connect(t.Context())
	require.NoError(t, err)
	defer other.Close() // which ends what Connect left behind
	assert.PanicsWithValue(t, "secret", func() {
		_, _ = client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: stateful})
	})
	s := find(t, ours.ended(), "initialize", "client")
	assert.Equal(t, "panic", s.Attributes["error.type"])
	assert.NotContains(t, fmt.Sprint(s), "secret")
}
