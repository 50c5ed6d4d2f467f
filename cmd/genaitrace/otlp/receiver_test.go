package otlp

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/capture"
)

// started starts a receiver, which ends with the test.
func started(t *testing.T, config Config) *Receiver {
	t.Helper()
	r, err := Listen(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		assert.NoError(t, r.Close(ctx))
	})
	return r
}

// exporters are those of one protocol of the SDK.
type exporters struct {
	spans   sdktrace.SpanExporter
	metrics sdkmetric.Exporter
	logs    sdklog.Exporter
}

func grpcExporters(t *testing.T, zip bool, addr string) exporters {
	t.Helper()
	var e exporters
	var err, err2, err3 error
	if addr == "" { // the environment says where
		e.spans, err = otlptracegrpc.New(t.Context())
		e.metrics, err2 = otlpmetricgrpc.New(t.Context())
		e.logs, err3 = otlploggrpc.New(t.Context())
	} else {
		a := []otlptracegrpc.Option{otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(addr)}
		b := []otlpmetricgrpc.Option{otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithEndpoint(addr)}
		c := []otlploggrpc.Option{otlploggrpc.WithInsecure(), otlploggrpc.WithEndpoint(addr)}
		if zip {
			a, b, c = append(a, otlptracegrpc.WithCompressor("gzip")), append(b, otlpmetricgrpc.WithCompressor("gzip")), append(c, otlploggrpc.WithCompressor("gzip"))
		}
		e.spans, err = otlptracegrpc.New(t.Context(), a...)
		e.metrics, err2 = otlpmetricgrpc.New(t.Context(), b...)
		e.logs, err3 = otlploggrpc.New(t.Context(), c...)
	}
	require.NoError(t, err)
	require.NoError(t, err2)
	require.NoError(t, err3)
	return e
}

func httpExporters(t *testing.T, zip bool, addr string) exporters {
	t.Helper()
	var e exporters
	var err, err2, err3 error
	if addr == "" {
		e.spans, err = otlptracehttp.New(t.Context())
		e.metrics, err2 = otlpmetrichttp.New(t.Context())
		e.logs, err3 = otlploghttp.New(t.Context())
	} else {
		a, b, c := otlptracehttp.NoCompression, otlpmetrichttp.NoCompression, otlploghttp.NoCompression
		if zip {
			a, b, c = otlptracehttp.GzipCompression, otlpmetrichttp.GzipCompression, otlploghttp.GzipCompression
		}
		e.spans, err = otlptracehttp.New(t.Context(), otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(addr), otlptracehttp.WithCompression(a))
		e.metrics, err2 = otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithInsecure(), otlpmetrichttp.WithEndpoint(addr), otlpmetrichttp.WithCompression(b))
		e.logs, err3 = otlploghttp.New(t.Context(), otlploghttp.WithInsecure(), otlploghttp.WithEndpoint(addr), otlploghttp.WithCompression(c))
	}
	require.NoError(t, err)
	require.NoError(t, err2)
	require.NoError(t, err3)
	return e
}

// record records a request with the SDK and exports it: metrics twice, as an SDK does
// again and again.
func (e exporters) record(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	res := resource.NewSchemaless(attribute.String("service.name", "gateway"))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e.spans), sdktrace.WithResource(res))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e.metrics)), sdkmetric.WithResource(res))
	loggers := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(e.logs)), sdklog.WithResource(res))

	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx, server := tracers.Tracer("test").Start(trace.ContextWithSpanContext(ctx, remote), "POST /chat", trace.WithSpanKind(trace.SpanKindServer))
	ctx, call := tracers.Tracer("test").Start(ctx, "chat toy-1", trace.WithSpanKind(trace.SpanKindClient))
	call.AddEvent("first_token", trace.WithAttributes(attribute.Int("index", 0)))

	ttft, err := meters.Meter("test").Float64Histogram("genai.time_to_first_token")
	require.NoError(t, err)
	ttft.Record(ctx, 0.2)
	require.NoError(t, meters.ForceFlush(ctx))
	ttft.Record(ctx, 0.4)

	var record log.Record
	record.SetEventName("genai.stop")
	record.SetBody(attribute.StringValue("stop"))
	record.SetTimestamp(time.Unix(1_800_000_000, 0))
	loggers.Logger("test").Emit(ctx, record)

	call.End()
	server.End()
	require.NoError(t, tracers.Shutdown(context.WithoutCancel(ctx)))
	require.NoError(t, meters.Shutdown(context.WithoutCancel(ctx)))
	require.NoError(t, loggers.Shutdown(context.WithoutCancel(ctx)))
}

// checkRecorded checks what record recorded.
func checkRecorded(t *testing.T, got *capture.Capture) {
	t.Helper()
	assert.Zero(t, got.Dropped)
	require.Len(t, got.Spans, 2)
	server, call := got.Named("POST /chat")[0], got.Named("chat toy-1")[0]
	assert.Equal(t, trace.TraceID{7}, call.TraceID)
	assert.Equal(t, server.SpanID, call.ParentID)
	assert.Equal(t, capture.OriginLocal, call.ParentOrigin)
	assert.Equal(t, trace.SpanID{8}, server.ParentID)
	assert.Equal(t, capture.OriginRemote, server.ParentOrigin)
	assert.Equal(t, trace.SpanKindClient, call.Kind)
	assert.Equal(t, trace.FlagsSampled, call.Flags)
	assert.Equal(t, "gateway", call.Resource.Service())
	assert.Equal(t, "test", call.Scope.Name)
	assert.True(t, call.Ended())
	require.Len(t, call.Events, 1)
	assert.Equal(t, capture.Attributes{attribute.Int("index", 0)}, call.Events[0].Attributes)

	require.Len(t, got.Metrics, 1)
	require.Len(t, got.Metrics[0].Points, 1, "the second export replaces the first")
	point := got.Metrics[0].Points[0]
	assert.Equal(t, uint64(2), point.Count)
	assert.InDelta(t, 0.6, point.Sum, 1e-9)
	assert.Len(t, point.BucketCounts, len(point.Bounds)+1)
	require.NotEmpty(t, point.Exemplars)
	assert.Equal(t, call.SpanID, point.Exemplars[0].SpanID)

	require.Len(t, got.Logs, 1)
	assert.Equal(t, "genai.stop", got.Logs[0].EventName)
	assert.Equal(t, attribute.StringValue("stop"), got.Logs[0].Body)
	assert.Equal(t, call.SpanID, got.Logs[0].SpanID)
}

func TestWhatTheSDKExportsArrives(t *testing.T) {
	public := Config{HTTPAddr: ":0", GRPCAddr: ":0", Remote: true}
	for name, c := range map[string]struct {
		config    Config
		exporters func(*testing.T, *Receiver) exporters
	}{
		"gRPC":                   {Config{}, func(t *testing.T, r *Receiver) exporters { return grpcExporters(t, false, r.GRPCAddr()) }},
		"gRPC, gzip":             {Config{}, func(t *testing.T, r *Receiver) exporters { return grpcExporters(t, true, r.GRPCAddr()) }},
		"gRPC on the HTTP port":  {Config{}, func(t *testing.T, r *Receiver) exporters { return grpcExporters(t, false, r.HTTPAddr()) }},
		"gRPC, gzip, HTTP port":  {Config{}, func(t *testing.T, r *Receiver) exporters { return grpcExporters(t, true, r.HTTPAddr()) }},
		"HTTP":                   {Config{}, func(t *testing.T, r *Receiver) exporters { return httpExporters(t, false, r.HTTPAddr()) }},
		"HTTP, gzip":             {Config{}, func(t *testing.T, r *Receiver) exporters { return httpExporters(t, true, r.HTTPAddr()) }},
		"gRPC, by environment":   {Config{}, func(t *testing.T, r *Receiver) exporters { setEnv(t, r); return grpcExporters(t, false, "") }},
		"HTTP, by environment":   {Config{}, func(t *testing.T, r *Receiver) exporters { setEnv(t, r); return httpExporters(t, false, "") }},
		"HTTP on all interfaces": {public, func(t *testing.T, r *Receiver) exporters { setEnv(t, r); return httpExporters(t, false, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := started(t, c.config)
			before := time.Now()
			assert.Zero(t, r.Last())
			c.exporters(t, r).record(t)
			checkRecorded(t, r.Capture())
			assert.WithinRange(t, r.Last(), before, time.Now())
		})
	}
}

func setEnv(t *testing.T, r *Receiver) {
	t.Helper()
	for _, kv := range r.Env() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
}

func TestProxiesAreKeptAwayFromTheReceiver(t *testing.T) {
	r := started(t, Config{})
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	assert.Subset(t, r.Env(), []string{"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"})
	t.Setenv("no_proxy", "example.org")
	assert.Subset(t, r.Env(), []string{"NO_PROXY=example.org,127.0.0.1", "no_proxy=example.org,127.0.0.1"})
}

// TestAnotherProgramExports runs this test binary as the other program.
func TestAnotherProgramExports(t *testing.T) {
	if child() {
		httpExporters(t, false, "").record(t)
		return
	}
	r := started(t, Config{})
	program := exec.Command(os.Args[0], "-test.run=^TestAnotherProgramExports$")
	program.Env = slices.Concat(os.Environ(), []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:9", childEnv + "=1"}, r.Env())
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)
	checkRecorded(t, r.Capture())
}

func TestOnlyThisMachineReachesTheReceiverUnlessAskedFor(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		_, err := Listen(Config{HTTPAddr: addr})
		require.ErrorContains(t, err, fmt.Sprintf("otlp: HTTPAddr: other machines can reach %s; expected a loopback address", addr))
		_, err = Listen(Config{GRPCAddr: addr})
		require.ErrorContains(t, err, "otlp: GRPCAddr: other machines can reach")
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0"} {
		started(t, Config{GRPCAddr: addr, HTTPAddr: addr})
	}
	_, err := Listen(Config{HTTPAddr: "127.0.0.1"})
	assert.ErrorContains(t, err, "otlp: HTTPAddr: ")
}

func TestATakenPortIsAnError(t *testing.T) {
	r := started(t, Config{})
	_, err := Listen(Config{HTTPAddr: r.HTTPAddr()})
	assert.ErrorContains(t, err, "otlp: HTTPAddr: ")
}

func TestTheSinkGetsEachExportInstead(t *testing.T) {
	var exports []*capture.Capture // the receiver calls one at a time, and answers afterwards
	r := started(t, Config{MaxKept: 1, Sink: func(c *capture.Capture) { exports = append(exports, c) }})
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() { post(t, r, "/v1/traces", contentJSON, line("01")) })
	}
	senders.Wait()
	post(t, r, "/v1/traces", contentJSON, `{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}`)
	require.Len(t, exports, 5)
	for _, c := range exports[:4] {
		assert.Len(t, c.Spans, 1)
	}
	assert.Equal(t, &capture.Capture{Dropped: 1}, exports[4])
	assert.Equal(t, &capture.Capture{Dropped: 1}, r.Capture(), "nothing is kept, and the drop counted")
}

func TestBeyondTheLimitExportsAreRefusedAndCounted(t *testing.T) {
	one := line("01")
	r := started(t, Config{MaxKept: 3 * len(one)})
	for range 3 {
		assert.Equal(t, http.StatusOK, post(t, r, "/v1/traces", contentJSON, one).code)
	}
	refused := post(t, r, "/v1/traces", contentJSON, one)
	assert.Equal(t, http.StatusTooManyRequests, refused.code)
	assert.JSONEq(t, fmt.Sprintf(`{"code":8,"message":"the receiver keeps at most %d bytes"}`, 3*len(one)), refused.body)

	err := invoke(t, r.GRPCAddr(), "trace.v1.TraceService", bare(t, &capture.Capture{Spans: request().Spans}))
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))

	got := r.Capture()
	assert.Len(t, got.Spans, 3)
	assert.Equal(t, 1+2, got.Dropped)
	assert.Equal(t, map[string]int{beyondMaxKept: 3}, r.Dropped())
}

func TestCumulativeMetricsDoNotFillTheReceiver(t *testing.T) {
	const export = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","sum":{"aggregationTemporality":2,"dataPoints":[{"startTimeUnixNano":"1","timeUnixNano":"%d","asInt":"7"}]}}]}]}]}`
	r := started(t, Config{MaxKept: 1000})
	for i := range 100 {
		require.Equal(t, http.StatusOK, post(t, r, "/v1/metrics", contentJSON, fmt.Sprintf(export, i+1)).code)
	}
	assert.Len(t, r.Capture().Metrics[0].Points, 1)
}

func TestASnapshotDoesNotChange(t *testing.T) {
	r := started(t, Config{})
	post(t, r, "/v1/traces", contentJSON, line("01"))
	first := r.Capture()
	post(t, r, "/v1/traces", contentJSON, line("02"))
	assert.Len(t, first.Spans, 1)
	assert.Len(t, r.Capture().Spans, 2)
}

func TestManySendersAtOnce(t *testing.T) {
	r := started(t, Config{})
	var senders sync.WaitGroup
	message := bare(t, &capture.Capture{Spans: request().Spans})
	for range 8 {
		senders.Go(func() {
			for range 20 {
				assert.Equal(t, http.StatusOK, post(t, r, "/v1/traces", contentJSON, line("01")).code)
				assert.NoError(t, invoke(t, r.GRPCAddr(), "trace.v1.TraceService", message))
				r.Capture()
				r.Last()
			}
		})
	}
	senders.Wait()
	assert.Len(t, r.Capture().Spans, 8*20*3)
}

func TestGarbageOverGRPCIsRefusedAndSurvived(t *testing.T) {
	r := started(t, Config{MaxBody: 1 << 20})
	for name, c := range map[string]struct {
		service string
		message []byte
		code    codes.Code
		want    string
	}{
		"noise":        {"trace.v1.TraceService", []byte("\xff\xff\xff"), codes.InvalidArgument, "this is no export of traces: byte 0: no field begins here; this is no protobuf or damaged"},
		"other signal": {"metrics.v1.MetricsService", bare(t, &capture.Capture{Spans: request().Spans}), codes.InvalidArgument, "this is no export of metrics: byte "},
		"deep":         {"logs.v1.LogsService", nested(deepValue(1000), 5, 2, 2, 1), codes.InvalidArgument, "more than 500 messages lie in each other"},
		"large":        {"logs.v1.LogsService", make([]byte, 2<<20), codes.ResourceExhausted, "larger than max"},
		"no service":   {"profiles.v1.ProfilesService", nil, codes.Unimplemented, "unknown service"},
	} {
		for _, addr := range []string{r.GRPCAddr(), r.HTTPAddr()} {
			err := invoke(t, addr, c.service, c.message)
			assert.Equal(t, c.code, status.Code(err), "%s: %v", name, err)
			assert.ErrorContains(t, err, c.want, name)
		}
	}
	require.NoError(t, invoke(t, r.GRPCAddr(), "trace.v1.TraceService", bare(t, &capture.Capture{Spans: request().Spans})))
	assert.Len(t, r.Capture().Spans, 2)
}

func TestABombOverGRPCIsRefused(t *testing.T) {
	r := started(t, Config{MaxBody: 1 << 20})
	for _, addr := range []string{r.GRPCAddr(), r.HTTPAddr()} {
		err := invoke(t, addr, "trace.v1.TraceService", make([]byte, 4<<20), grpc.UseCompressor("gzip"))
		assert.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	}
}

// deepValue is a value of lists in lists.
func deepValue(depth int) []byte {
	var value []byte
	for range depth {
		value = nested(value, 1, 5)
	}
	return value
}

// invoke calls Export of a service with any bytes.
func invoke(t *testing.T, addr, service string, message []byte, opts ...grpc.CallOption) error {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	require.NoError(t, err)
	defer conn.Close()
	var answer []byte
	return conn.Invoke(t.Context(), "/opentelemetry.proto.collector."+service+"/Export", message, &answer, opts...)
}
