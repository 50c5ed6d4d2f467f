package genaigrpc_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A telemetry collects what one test records.
type telemetry struct {
	t       testing.TB
	started atomic.Int32
	spans   *tracetest.SpanRecorder
	tp      *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	mp      *sdkmetric.MeterProvider
}

func newTelemetry(t testing.TB, opts ...sdktrace.TracerProviderOption) *telemetry {
	t.Helper()
	o := &telemetry{t: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	o.tp = sdktrace.NewTracerProvider(append(opts,
		sdktrace.WithSpanProcessor(o.spans), sdktrace.WithSpanProcessor(startCounter{&o.started}))...)
	o.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	return o
}

type startCounter struct{ n *atomic.Int32 }

func (c startCounter) OnStart(context.Context, sdktrace.ReadWriteSpan) { c.n.Add(1) }
func (startCounter) OnEnd(sdktrace.ReadOnlySpan)                       {}
func (startCounter) Shutdown(context.Context) error                    { return nil }
func (startCounter) ForceFlush(context.Context) error                  { return nil }

func (o *telemetry) options(more ...genaigrpc.Option) []genaigrpc.Option {
	return append([]genaigrpc.Option{
		genaigrpc.WithTracerProvider(o.tp), genaigrpc.WithMeterProvider(o.mp),
	}, more...)
}

func (o *telemetry) tracer() *genaitrace.Tracer {
	return genaitrace.New(genaitrace.WithTracerProvider(o.tp), genaitrace.WithMeterProvider(o.mp))
}

// ended returns all spans, each of which must have ended, and ended once.
func (o *telemetry) ended() []sdktrace.ReadOnlySpan {
	o.t.Helper()
	ended := o.spans.Ended()
	ids := make(map[trace.SpanID]bool)
	for _, s := range ended {
		ids[s.SpanContext().SpanID()] = true
	}
	assert.Len(o.t, ids, len(ended), "a span ended twice")
	assert.EqualValues(o.t, o.started.Load(), len(ended), "spans started and ended")
	return ended
}

// only returns the one span of this name and kind.
func (o *telemetry) only(name string, kind trace.SpanKind) sdktrace.ReadOnlySpan {
	o.t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range o.ended() {
		if s.Name() == name && s.SpanKind() == kind {
			found = append(found, s)
		}
	}
	require.Len(o.t, found, 1, "%s spans named %s in\n%s", kind, name, o.tree())
	return found[0]
}

func (o *telemetry) server() sdktrace.ReadOnlySpan {
	o.t.Helper()
	return o.only("inference.v1.Inference/Generate", trace.SpanKindServer)
}

func (o *telemetry) client() sdktrace.ReadOnlySpan {
	o.t.Helper()
	return o.only("inference.v1.Inference/Generate", trace.SpanKindClient)
}

// attr returns the value of an attribute, nil where the span has none.
func attr(s sdktrace.ReadOnlySpan, key attribute.Key) any {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.AsInterface()
		}
	}
	return nil
}

// points returns the measurements of a histogram.
func (o *telemetry) points(name string) []metricdata.HistogramDataPoint[float64] {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(context.Background(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
				return h.DataPoints
			}
		}
	}
	return nil
}

// tree draws all spans as text: name, kind, status, links, and below them the
// attributes. Times, which differ from run to run, appear as keys only.
func (o *telemetry) tree() string {
	spans := o.spans.Ended()
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int {
		return cmp.Or(a.StartTime().Compare(b.StartTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var text strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			if s.Parent().SpanID() != parent {
				continue
			}
			drawSpan(&text, s, indent)
			draw(s.SpanContext().SpanID(), indent+"  ")
		}
	}
	draw(trace.SpanID{}, "")
	for _, s := range spans { // below a parent of another process
		if s.Parent().IsRemote() && !slices.ContainsFunc(spans, func(p sdktrace.ReadOnlySpan) bool {
			return p.SpanContext().SpanID() == s.Parent().SpanID()
		}) {
			fmt.Fprintf(&text, "remote %s\n", s.Parent().SpanID())
			drawSpan(&text, s, "  ")
			draw(s.SpanContext().SpanID(), "    ")
		}
	}
	return text.String()
}

func drawSpan(text *strings.Builder, s sdktrace.ReadOnlySpan, indent string) {
	fmt.Fprintf(text, "%s%s  %s %s", indent, s.Name(), strings.ToUpper(s.SpanKind().String()), s.Status().Code)
	for _, l := range s.Links() {
		fmt.Fprintf(text, " →%s", l.SpanContext.SpanID())
	}
	text.WriteByte('\n')
	attrs := slices.SortedFunc(slices.Values(s.Attributes()), func(a, b attribute.KeyValue) int {
		return cmp.Compare(a.Key, b.Key)
	})
	for _, a := range attrs {
		if a.Value.Type() == attribute.FLOAT64 || strings.HasSuffix(string(a.Key), ".timeline") {
			fmt.Fprintf(text, "%s    %s\n", indent, a.Key)
			continue
		}
		fmt.Fprintf(text, "%s    %s=%s\n", indent, a.Key, a.Value.String())
	}
}

// golden compares the tree of all spans with a file.
func (o *telemetry) golden(name string) {
	o.t.Helper()
	o.ended()
	path := filepath.Join("testdata", name+".golden")
	got := o.tree()
	if *update {
		require.NoError(o.t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(o.t, err)
	assert.Equal(o.t, string(want), got)
}

// A service is inference.v1.Inference, written by hand: a stream and a unary
// method of strings.
type service struct {
	generate func(prompt string, stream grpc.ServerStream) error
	complete func(ctx context.Context, prompt string) (string, error)
}

const (
	generateMethod = "/inference.v1.Inference/Generate"
	completeMethod = "/inference.v1.Inference/Complete"
)

var serviceDesc = grpc.ServiceDesc{
	ServiceName: "inference.v1.Inference",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Complete",
		Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			handler := func(ctx context.Context, in any) (any, error) {
				out, err := srv.(service).complete(ctx, in.(*wrapperspb.StringValue).GetValue())
				return wrapperspb.String(out), err
			}
			if interceptor == nil {
				return handler(ctx, in)
			}
			return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: completeMethod}, handler)
		},
	}},
	Streams: []grpc.StreamDesc{{
		StreamName:    "Generate",
		ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			in := new(wrapperspb.StringValue)
			if err := stream.RecvMsg(in); err != nil {
				return err
			}
			return srv.(service).generate(in.GetValue(), stream)
		},
	}},
}

func sendText(stream grpc.ServerStream, text string) error {
	return stream.SendMsg(wrapperspb.String(text))
}

// A link is a server and a client of it.
type link struct {
	server *grpc.Server
	conn   *grpc.ClientConn
	stop   func() // may be called early and twice
}

// connect serves s in memory, which also works in a testing/synctest bubble.
func connect(t testing.TB, s service, server []grpc.ServerOption, client []grpc.DialOption) link {
	t.Helper()
	return connectServices(t, s, nil, server, client)
}

// connectServices is connect with more services.
func connectServices(t testing.TB, s service, more []*grpc.ServiceDesc, server []grpc.ServerOption, client []grpc.DialOption) link {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	return start(t, s, listener, "passthrough:///engine:8033", server, append(client,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		})), more...)
}

// connectLoopback serves s on a socket.
func connectLoopback(t testing.TB, s service, server []grpc.ServerOption, client []grpc.DialOption) link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return start(t, s, listener, listener.Addr().String(), server, client)
}

func start(t testing.TB, s service, listener net.Listener, target string, server []grpc.ServerOption, client []grpc.DialOption, more ...*grpc.ServiceDesc) link {
	t.Helper()
	gs := grpc.NewServer(append(server, grpc.WaitForHandlers(true))...)
	gs.RegisterService(&serviceDesc, s)
	for _, desc := range more {
		gs.RegisterService(desc, s)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = gs.Serve(listener)
	}()
	conn, err := grpc.NewClient(target, append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	l := link{server: gs, conn: conn, stop: func() {
		_ = conn.Close()
		gs.Stop()
		<-served
	}}
	t.Cleanup(l.stop)
	return l
}

// traced connects s with a handler on both sides.
func traced(t testing.TB, o *telemetry, s service) link {
	t.Helper()
	return connect(t, s,
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...))})
}

// generate starts a stream.
func generate(ctx context.Context, t testing.TB, conn *grpc.ClientConn) (grpc.ClientStream, error) {
	t.Helper()
	stream, err := conn.NewStream(ctx, &serviceDesc.Streams[0], generateMethod)
	if err != nil {
		return nil, err
	}
	return stream, stream.SendMsg(wrapperspb.String("hi"))
}

// read reads a stream to its end and returns the texts that came.
func read(stream grpc.ClientStream) (texts []string, err error) {
	for {
		out := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(out); err != nil {
			if err == io.EOF {
				return texts, nil
			}
			return texts, err
		}
		texts = append(texts, out.GetValue())
	}
}

func complete(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, completeMethod, wrapperspb.String("hi"), out)
	return out.GetValue(), err
}

// three sends three texts.
func three(_ string, stream grpc.ServerStream) error {
	for _, text := range []string{"a", "b", "c"} {
		if err := sendText(stream, text); err != nil {
			return err
		}
	}
	return nil
}

// once sends one text and then waits until the client is gone.
func once(_ string, stream grpc.ServerStream) error {
	if err := sendText(stream, "a"); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}
