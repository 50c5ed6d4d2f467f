package propagation_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// engine is a gRPC service over loopback, with a limit for what headers may be
// together, that tells which metadata a call
// brought to it.
type engine struct {
	client   healthpb.HealthClient
	received metadata.MD // of the last call
}

func newEngine(t *testing.T, maxHeaderBytes uint32) *engine {
	t.Helper()
	e := &engine{}
	server := grpc.NewServer(grpc.MaxHeaderListSize(maxHeaderBytes), grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			e.received, _ = metadata.FromIncomingContext(ctx)
			answer := metadata.MD{}
			propagation.InjectResponse(propagation.New().FromGRPC(ctx), propagation.GRPCMetadata(answer))
			if err := errors.Join(grpc.SetHeader(ctx, answer), grpc.SetTrailer(ctx, answer)); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, conn.Close())
		server.Stop()
		assert.NoError(t, <-served)
	})
	e.client = healthpb.NewHealthClient(conn)
	return e
}

// call makes a call that carries md and returns the metadata that arrived.
func (e *engine) call(ctx context.Context, md metadata.MD) (metadata.MD, error) {
	return e.callContext(metadata.NewOutgoingContext(ctx, md))
}

// callContext makes a call with ctx and returns the metadata that arrived.
func (e *engine) callContext(ctx context.Context) (metadata.MD, error) {
	e.received = nil
	_, err := e.client.Check(ctx, &healthpb.HealthCheckRequest{})
	return e.received, err
}

// newGateway is an HTTP server that hands what it extracts from a request over
// to e, and answers once e did. Its function sends a request.
func newGateway(t *testing.T, bridge *propagation.Bridge, e *engine) func(http.Header) metadata.MD {
	t.Helper()
	var received metadata.MD
	var callErr error
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received, callErr = e.callContext(bridge.ToGRPC(bridge.FromHTTP(r)))
	}))
	t.Cleanup(server.Close)
	return func(h http.Header) metadata.MD {
		t.Helper()
		send(t, server, h)
		require.NoError(t, callErr)
		return received
	}
}

func send(t *testing.T, server *httptest.Server, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	require.NoError(t, err)
	req.Header = h
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

func TestAContextCrossesFromHTTPToGRPCWithoutLoss(t *testing.T) {
	bridge := propagation.New(propagation.WithFormats(propagation.TraceBin))
	send := newGateway(t, bridge, newEngine(t, 16<<20))

	for _, flags := range []string{"00", "01", "02", "03"} {
		t.Run("W3C "+flags, func(t *testing.T) {
			md := send(http.Header{
				"Traceparent": {strings.TrimSuffix(benchTraceparent, "01") + flags},
				"Tracestate":  {"ot=th:8;rv:0123456789abcd", "genai=c:1,vendor=x y~!"},
				"Baggage":     {"tenant=acme,session.id=s%201;ttl=60", "route=%E2%86%92"},
			})
			ctx := bridge.Extract(context.Background(), propagation.GRPCMetadata(md))
			assert.Equal(t, parent{
				TraceID:    "4bf92f3577b34da6a3ce929d0e0e4736",
				SpanID:     "00f067aa0ba902b7",
				Flags:      flags,
				TraceState: "ot=th:8;rv:0123456789abcd,genai=c:1,vendor=x y~!",
			}, parentOf(trace.SpanContextFromContext(ctx)))

			bag := baggage.FromContext(ctx)
			assert.Equal(t, 3, bag.Len())
			assert.Equal(t, "acme", bag.Member("tenant").Value())
			assert.Equal(t, "s 1", bag.Member("session.id").Value())
			assert.Len(t, bag.Member("session.id").Properties(), 1)
			assert.Equal(t, "→", bag.Member("route").Value())

			// A peer that knows trace-bin alone reads the same.
			ctx = propagation.TraceBin.Extract(context.Background(), propagation.GRPCMetadata(md))
			assert.Equal(t, parent{
				TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
				SpanID:  "00f067aa0ba902b7",
				Flags:   flags,
			}, parentOf(trace.SpanContextFromContext(ctx)))
		})
		t.Run("trace-bin "+flags, func(t *testing.T) {
			h := http.Header{}
			sc := extractW3C(strings.TrimSuffix(benchTraceparent, "01") + flags)
			ctx := trace.ContextWithSpanContext(context.Background(), sc)
			propagation.TraceBin.Inject(ctx, propagation.HTTPHeader(h))
			require.Equal(t, []string{"Grpc-Trace-Bin"}, propagation.HTTPHeader(h).Keys())

			md := send(h)
			for _, p := range []otelprop.TextMapPropagator{propagation.W3C, propagation.TraceBin, bridge} {
				ctx := p.Extract(context.Background(), propagation.GRPCMetadata(md))
				assert.Equal(t, sc, trace.SpanContextFromContext(ctx), "%T", p)
			}
		})
	}
}

// A tab, which HTTP allows around a property, is illegal in metadata.
func TestATabInBaggageDoesNotCostAllOfIt(t *testing.T) {
	bridge := propagation.New()
	ctx := bridge.Extract(context.Background(), propagation.HTTPHeader{"Baggage": {"a=1;\tttl\t=\t60, b=2\t;p"}})
	for name, newCarrier := range transports {
		c, _ := newCarrier(nil)
		bridge.Inject(ctx, c)
		bag := baggage.FromContext(bridge.Extract(context.Background(), c))
		assert.Equal(t, "1", bag.Member("a").Value(), name)
		assert.Equal(t, "2", bag.Member("b").Value(), name)
		if assert.Len(t, bag.Member("a").Properties(), 1, name) {
			assert.Equal(t, "ttl=60", bag.Member("a").Properties()[0].String())
		}
	}
}

func TestNoValueMakesARequestOrAnRPCFail(t *testing.T) {
	e := newEngine(t, 16<<20)
	var received http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received = r.Header
	}))
	t.Cleanup(server.Close)

	for b := range 256 {
		value := "a" + string([]byte{byte(b)}) + "z"
		h, md := http.Header{}, metadata.MD{}
		for _, c := range []otelprop.TextMapCarrier{propagation.HTTPHeader(h), propagation.GRPCMetadata(md)} {
			c.Set("x-text", value)
			c.Set("x-data-bin", value)
			c.Set("x-"+value, "v")
		}

		send(t, server, h)
		assert.Equal(t, value, propagation.HTTPHeader(received).Get("x-data-bin"))
		assert.Equal(t, h["X-Text"], received["X-Text"], "what is in the header arrives")

		got, err := e.call(t.Context(), md)
		require.NoError(t, err, "byte %#x", b)
		assert.Equal(t, value, propagation.GRPCMetadata(got).Get("x-data-bin"))
		assert.Equal(t, md["x-text"], got["x-text"], "what is in the metadata arrives")
	}
}

// Over gRPC a server tells its span in the header of its answer or in the trailer.
func TestASpanIsToldInMetadataOfAnAnswer(t *testing.T) {
	e := newEngine(t, 16<<20)
	var header, trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", benchTraceparent)
	_, err := e.client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
	require.NoError(t, err)
	for name, md := range map[string]metadata.MD{"header": header, "trailer": trailer} {
		got := propagation.ReadResponse(propagation.GRPCMetadata(md)).SpanContext
		assert.Equal(t, mustSpanContext(t, benchTraceparent, ""), got, name)
	}
}
