package capture_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// next returns the number of the line after the one that calls it.
func next() int {
	_, _, line, ok := runtime.Caller(1)
	if !ok {
		panic("no caller")
	}
	return line + 1
}

func TestASpanKnowsTheLineThatStartedIt(t *testing.T) {
	r := capture.NewRecorder()
	tracer := r.TracerProvider().Tracer("")
	genai := genaitrace.New(genaitrace.WithTracerProvider(r.TracerProvider()), genaitrace.WithMeterProvider(r.MeterProvider()))
	ctx := t.Context()
	want := map[string]int{}

	want["direct"] = next()
	_, direct := tracer.Start(ctx, "direct")
	direct.End()

	want["never ended"] = next()
	tracer.Start(ctx, "never ended")

	func() {
		want["closure"] = next()
		_, span := tracer.Start(ctx, "closure")
		span.End()
	}()

	var wg sync.WaitGroup
	wg.Go(func() {
		want["goroutine"] = next()
		_, span := tracer.Start(ctx, "goroutine")
		span.End()
	})
	wg.Wait()

	for name := range slices.Values([]string{"iterator"}) {
		want[name] = next()
		_, span := tracer.Start(ctx, name)
		span.End()
	}

	want["inference.generate"] = next()
	ctx, inf := genai.StartInference(ctx, genaitrace.Request{Model: "toy-1"})
	want["queue.wait"] = next()
	_, queue := inf.StartQueue(ctx)
	queue.End()
	want["inference.prefill"] = next()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 3})
	prefill.End()
	inf.End()

	handler := genaihttp.NewHandler(http.NotFoundHandler(), genaihttp.WithTracerProvider(r.TracerProvider()))
	want["GET"] = next()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))

	c := captured(t, r)
	for name, line := range want {
		s := only(t, c, name).Source
		assert.Equal(t, "source_test.go", filepath.Base(s.File), name)
		assert.Equal(t, line, s.Line, name)
		assert.Contains(t, s.Function, "capture_test.TestASpanKnowsTheLineThatStartedIt", name)
	}
	assert.Len(t, c.Spans, len(want))
}

func TestTheLineOfAServerThatNetHTTPCalls(t *testing.T) {
	r := capture.NewRecorder()
	traced := genaihttp.NewHandler(http.NotFoundHandler(), genaihttp.WithTracerProvider(r.TracerProvider()))
	get := func(t *testing.T, h http.Handler) capture.Source {
		t.Helper()
		r.Reset()
		srv := httptest.NewServer(h)
		defer srv.Close()
		resp, err := srv.Client().Get(srv.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		srv.Close() // the span ends before the connection does
		return only(t, captured(t, r), "GET").Source
	}

	t.Run("is the user's where user code calls it", func(t *testing.T) {
		var line int
		s := get(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			line = next()
			traced.ServeHTTP(w, r)
		}))
		assert.Equal(t, "source_test.go", filepath.Base(s.File))
		assert.Equal(t, line, s.Line)
	})
	t.Run("is the instrument's where nobody else does", func(t *testing.T) {
		s := get(t, traced)
		assert.True(t, strings.HasSuffix(filepath.ToSlash(s.File), "middleware/genaihttp/handler.go"), s.File)
		assert.Positive(t, s.Line)
	})
}

func TestTheLineOfAClientSpanIsThatOfItsUser(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	r := capture.NewRecorder()
	base := srv.Client().Transport
	client := &http.Client{Transport: genaihttp.NewTransport(base, genaihttp.WithTracerProvider(r.TracerProvider()),
		genaihttp.WithMeterProvider(r.MeterProvider()))}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"toy-1"}`))
	require.NoError(t, err)
	line := next()
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	c := captured(t, r)
	require.Len(t, c.Spans, 1)
	assert.Equal(t, "source_test.go", filepath.Base(c.Spans[0].Source.File))
	assert.Equal(t, line, c.Spans[0].Source.Line)
}

func TestTheLinesOfAnRPC(t *testing.T) {
	r := capture.NewRecorder()
	server := grpc.NewServer(grpc.StatsHandler(genaigrpc.NewServerHandler(genaigrpc.WithTracerProvider(r.TracerProvider()))))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { assert.NoError(t, server.Serve(listener)) })
	defer serving.Wait()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(genaigrpc.WithTracerProvider(r.TracerProvider()))))
	require.NoError(t, err)
	defer conn.Close()

	line := next()
	_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	c := captured(t, r)
	client := c.Select(func(s *capture.Span) bool { return s.Kind == trace.SpanKindClient })
	require.Len(t, client, 1)
	assert.Equal(t, "source_test.go", filepath.Base(client[0].Source.File), "neither gRPC nor the generated stub")
	assert.Equal(t, line, client[0].Source.Line)
	served := c.Select(func(s *capture.Span) bool { return s.Kind == trace.SpanKindServer })
	require.Len(t, served, 1)
	assert.True(t, strings.HasSuffix(filepath.ToSlash(served[0].Source.File), "middleware/genaigrpc/server.go"), served[0].Source.File)
}

func TestWithoutSourceThereIsNone(t *testing.T) {
	r := capture.NewRecorder(capture.WithoutSource())
	_, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
	span.End()
	assert.False(t, only(t, captured(t, r), "s").Source.Known())
}

func TestALineIsNamedFromTheWorkingDirectoryOn(t *testing.T) {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for _, tt := range []struct {
		source capture.Source
		want   string
	}{
		{capture.Source{}, ""},
		{capture.Source{File: filepath.Join(dir, "sub", "a.go"), Line: 7}, filepath.Join("sub", "a.go") + ":7"},
		{capture.Source{File: filepath.Join(filepath.Dir(dir), "a.go"), Line: 7}, filepath.Join(filepath.Dir(dir), "a.go") + ":7"},
		{capture.Source{File: "example.com/shop/a.go", Line: 7}, "example.com/shop/a.go:7"}, // built with -trimpath
	} {
		assert.Equal(t, tt.want, tt.source.String())
	}
}
