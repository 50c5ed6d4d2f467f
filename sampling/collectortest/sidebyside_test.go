package collectortest

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // of the sink

	"github.com/genaitrace/otelgenai/sampling"
)

var (
	sideBySide = flag.Bool("sidebyside", false, "compare the cost of a Tail with that of a Collector")
	rounds     = flag.Int("rounds", 7, "how often -sidebyside runs each way")
	perSecond  = flag.Int("rate", 1000, "traces a second of -sidebyside")
	lasting    = flag.Duration("lasting", 8*time.Second, "how long a run of -sidebyside makes traces")
)

// A job is what a child process is for: a service that records, or a Collector.
type job struct {
	Way       string
	Collector string // configuration of a Collector
	Endpoint  string // of the sink or the Collector
	PerSecond int
	Lasting   time.Duration
}

// The ways to decide about the traces of a service. Shares and limits are the same.
const (
	plain      = "record, export nothing"
	withTail   = "Tail, export what it keeps"
	tailGzip   = "Tail, export with gzip"
	exportAll  = "export everything to a Collector"
	exportGzip = "export everything with gzip"
	exportTwo  = "export everything through both tiers"
)

var judging = sampling.Default()

// A usage is what a process took.
type usage struct {
	CPU    time.Duration // of user and system
	Spans  int
	Sent   int64 // bytes
	Memory int64 // by how many bytes the process grew at most
}

const jobEnv = "COLLECTORTEST_JOB"

// TestMain runs the tests, or is a child of one.
func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	switch {
	case err != nil:
	case j.Collector != "":
		err = j.collect()
	default:
		err = j.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// taken is the processor time that this process has taken, and the most memory.
func taken() (cpu time.Duration, memory int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), u.Maxrss << 10 // KiB, on Linux
}

// collect runs a Collector until standard input ends. What it takes to start is not counted.
func (j job) collect() error {
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo:               component.NewDefaultBuildInfo(),
		Factories:               factories,
		ConfigProviderSettings:  configuration(j.Collector, quiet),
		DisableGracefulShutdown: true,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	for c.GetState() != otelcol.StateRunning {
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Millisecond):
		}
	}
	runtime.GC()
	cpu, memory := taken()
	fmt.Println("ready")
	bufio.NewScanner(os.Stdin).Scan()
	c.Shutdown() // it judges what it holds
	if err := <-ended; err != nil {
		return err
	}
	cpuAfter, memoryAfter := taken()
	return json.NewEncoder(os.Stdout).Encode(usage{CPU: cpuAfter - cpu, Memory: memoryAfter - memory})
}

// counted counts what a connection writes.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// nothing is a processor that does nothing.
type nothing struct{}

func (nothing) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nothing) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nothing) ForceFlush(context.Context) error                { return nil }
func (nothing) Shutdown(context.Context) error                  { return nil }

// serve is the service: it makes traces at a steady rate and decides about them in its way.
func (j job) serve() error {
	ctx := context.Background()
	var sent atomic.Int64
	exporterOptions := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(j.Endpoint), otlptracegrpc.WithInsecure(),
		otlptracegrpc.WithDialOption(grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			return counted{conn, &sent}, err
		})),
	}
	if j.Way == exportGzip || j.Way == tailGzip {
		exporterOptions = append(exporterOptions, otlptracegrpc.WithCompressor("gzip"))
	}
	exporter, err := otlptracegrpc.New(ctx, exporterOptions...)
	if err != nil {
		return err
	}
	var options []sdktrace.TracerProviderOption
	finish := func() error { return nil }
	switch j.Way {
	case plain:
		options = append(options, sdktrace.WithSpanProcessor(nothing{}))
	case withTail, tailGzip:
		tail, err := sampling.NewTail(exporter, judging)
		if err != nil {
			return err
		}
		options, finish = tail.ProviderOptions(), func() error { return tail.Shutdown(ctx) }
	default:
		// Blocking, so that nothing is lost.
		options = append(options, sdktrace.WithBatcher(exporter, sdktrace.WithBlocking()))
	}
	provider := sdktrace.NewTracerProvider(options...)
	tracer := provider.Tracer("service")
	for range 100 {
		makeTrace(tracer, 1) // everything is there now
	}
	if err := provider.ForceFlush(ctx); err != nil {
		return err
	}
	sent.Store(0)
	runtime.GC()
	before, _ := taken()
	n := int(j.Lasting.Seconds() * float64(j.PerSecond))
	start := time.Now()
	for i := range n {
		if due := start.Add(time.Duration(i) * time.Second / time.Duration(j.PerSecond)); i%10 == 0 {
			time.Sleep(time.Until(due))
		}
		makeTrace(tracer, i)
	}
	if err := finish(); err != nil {
		return err
	}
	if err := provider.Shutdown(ctx); err != nil {
		return err
	}
	after, _ := taken()
	return json.NewEncoder(os.Stdout).Encode(usage{CPU: after - before, Spans: n * spansPerTrace, Sent: sent.Load()})
}

const spansPerTrace = 10

// makeTrace makes a trace of ten spans with five attributes each. One in a hundred
// fails, another one is slow.
func makeTrace(tracer trace.Tracer, i int) {
	start := time.Now()
	end := start.Add(300 * time.Millisecond)
	if i%100 == 50 {
		end = start.Add(4 * time.Second)
	}
	ctx, root := tracer.Start(context.Background(), "POST /v1/chat/completions", trace.WithSpanKind(trace.SpanKindServer))
	for step := range spansPerTrace - 1 {
		_, span := tracer.Start(ctx, "inference.step")
		span.SetAttributes(
			attribute.String("gen_ai.request.model", "qwen2.5-72b"), attribute.String("gen_ai.operation.name", "chat"),
			attribute.Int("step", step), attribute.Int("tokens", i), attribute.Float64("share", 0.5),
		)
		if i%100 == 0 && step == 5 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
	root.SetAttributes(
		attribute.String("gen_ai.request.model", "qwen2.5-72b"), attribute.String("http.route", "/v1/chat/completions"),
		attribute.String("http.request.method", "POST"), attribute.Int("http.response.status_code", 200), attribute.Bool("stream", true),
	)
	root.End(trace.WithTimestamp(end))
}

// A sink takes what is kept and counts it.
type sink struct {
	ptraceotlp.UnimplementedGRPCServer

	spans atomic.Int64
}

func (s *sink) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.spans.Add(int64(request.Traces().SpanCount()))
	return ptraceotlp.NewExportResponse(), nil
}

// child starts this program for a job.
func child(t *testing.T, j job) (*exec.Cmd, *bufio.Scanner, func()) {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out), func() { in.Close() }
}

// result waits for what a child took.
func result(t *testing.T, cmd *exec.Cmd, out *bufio.Scanner) usage {
	t.Helper()
	require.True(t, out.Scan())
	var u usage
	require.NoError(t, json.Unmarshal(out.Bytes(), &u))
	require.NoError(t, cmd.Wait())
	return u
}

// A cost is what one way took, a span that the service made: ns of the service, what of it is above
// that of plain recording in the same round, ns of the Collectors, bytes.
type cost struct{ service, above, collectors, bytes, memory, kept float64 }

// together is what deciding takes.
func (c cost) together() float64 { return c.above + c.collectors }

// median returns the median of each figure.
func median(costs []cost) cost {
	of := func(figure func(cost) float64) float64 {
		figures := make([]float64, len(costs))
		for i, c := range costs {
			figures[i] = figure(c)
		}
		slices.Sort(figures)
		return figures[len(figures)/2]
	}
	return cost{
		service: of(func(c cost) float64 { return c.service }), above: of(func(c cost) float64 { return c.above }),
		collectors: of(func(c cost) float64 { return c.collectors }), bytes: of(func(c cost) float64 { return c.bytes }),
		memory: of(func(c cost) float64 { return c.memory }), kept: of(func(c cost) float64 { return c.kept }),
	}
}

func measure(t *testing.T, way string) cost {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &sink{}
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, s)
	go server.Serve(l)
	defer server.Stop()

	j := job{Way: way, Endpoint: l.Addr().String(), PerSecond: *perSecond, Lasting: *lasting}
	var tiers []func() usage // in the order in which spans come through them
	start := func(text, address string) {
		cmd, out, stop := child(t, job{Collector: text})
		require.True(t, out.Scan(), "the Collector is ready")
		j.Endpoint = address
		tiers = append([]func() usage{func() usage {
			stop()
			return result(t, cmd, out)
		}}, tiers...)
	}
	if way == exportAll || way == exportGzip || way == exportTwo {
		free := addresses(t, 2)
		c, err := sampling.CollectorConfig(judging, sampling.CollectorOptions{
			Backend: "http://" + j.Endpoint, Samplers: sampling.SamplerTier{Hosts: free[:1]}, SamplerListen: free[0], Listen: free[1],
		})
		require.NoError(t, err)
		start(c.TailSampling(), free[0])
		if way == exportTwo {
			start(c.LoadBalancing(), free[1])
		}
	}
	cmd, out, _ := child(t, j)
	service := result(t, cmd, out)
	var collectors usage
	for _, end := range tiers {
		u := end()
		collectors.CPU += u.CPU
		collectors.Memory = u.Memory // of the tier that holds
	}
	n := float64(service.Spans)
	c := cost{
		service: float64(service.CPU.Nanoseconds()) / n, collectors: float64(collectors.CPU.Nanoseconds()) / n,
		bytes: float64(service.Sent) / n, memory: float64(collectors.Memory) / n, kept: float64(s.spans.Load()) / n,
	}
	if way != plain {
		assert.InDelta(t, 0.07, c.kept, 0.02, "errors, slow ones, and one in twenty")
	}
	return c
}

// What deciding costs in the process and in Collectors: processor time of the service
// above plain recording, and of the Collectors, a span that the service makes. The
// ways take turns, and the medians of the rounds count.
func TestSideBySide(t *testing.T) {
	if !*sideBySide {
		t.Skip("takes minutes: run with -sidebyside")
	}
	if len(balancing) == 0 {
		t.Fatal("one way has the tier in front: run with -tags balancing")
	}
	ways := []string{plain, withTail, exportAll, exportTwo, tailGzip, exportGzip}
	costs := map[string][]cost{}
	for round := range *rounds {
		for _, way := range ways {
			c := measure(t, way)
			costs[way] = append(costs[way], c)
			c.above = c.service - costs[plain][round].service
			costs[way][round] = c
			t.Logf("round %d, %s: %+v", round, way, c)
		}
	}
	fmt.Printf("%d spans a second, %d CPUs; ns and bytes a span, medians of %d rounds\n", *perSecond*spansPerTrace, runtime.NumCPU(), *rounds)
	fmt.Println("| way | service | above plain | Collectors | bytes sent | bytes held | kept |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, way := range ways {
		c := median(costs[way])
		fmt.Printf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f %% |\n", way, c.service, c.above, c.collectors, c.bytes, c.memory, 100*c.kept)
	}
	for _, pair := range [][2]string{{exportAll, withTail}, {exportTwo, withTail}, {exportGzip, tailGzip}} {
		collector, tail := median(costs[pair[0]]), median(costs[pair[1]])
		processor, bytes := collector.together()/tail.together(), collector.bytes/tail.bytes
		fmt.Printf("%q takes %.1f times the processor time of %q and sends %.1f times the bytes\n", pair[0], processor, pair[1], bytes)
		assert.Greater(t, processor, 5.0)
		assert.Greater(t, bytes, 5.0)
	}
}
