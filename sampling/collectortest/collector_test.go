package collectortest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"google.golang.org/grpc"
)

// factories are the components of the contrib distribution that the configurations use.
func factories() (otelcol.Factories, error) {
	var f otelcol.Factories
	var err error
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](
		memorylimiterprocessor.NewFactory(), tailsamplingprocessor.NewFactory(),
	); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](append(balancing, otlpexporter.NewFactory())...)
	f.Telemetry = ownTelemetry
	return f, err
}

// configuration are the settings of a Collector that reads YAML texts, later ones winning.
func configuration(texts ...string) otelcol.ConfigProviderSettings {
	uris := make([]string, len(texts))
	for i, text := range texts {
		uris[i] = "yaml:" + text
	}
	return otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
		URIs:              uris,
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), envprovider.NewFactory()},
		DefaultScheme:     "env",
	}}
}

// quiet is what a test adds to a configuration, as users add what is theirs: no port for
// metrics, for several Collectors run in this process.
const quiet = "service: {telemetry: {metrics: {level: none}, logs: {level: error}}}"

// run runs a Collector until the function that it returns is called, or the end
// of the test.
func run(t testing.TB, texts ...string) (stop func()) {
	t.Helper()
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo:               component.NewDefaultBuildInfo(),
		Factories:               factories,
		ConfigProviderSettings:  configuration(append(texts, quiet)...),
		DisableGracefulShutdown: true,
		SkipSettingGRPCLogger:   true,
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	stop = sync.OnceFunc(func() {
		c.Shutdown()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			t.Error("the Collector does not end")
		}
	})
	t.Cleanup(stop)
	for c.GetState() != otelcol.StateRunning {
		select {
		case err := <-ended:
			require.NoError(t, err, "%s", texts[0])
			t.Fatal("the Collector ended at once")
		case <-time.After(time.Millisecond):
		}
	}
	return stop
}

// addresses returns free addresses. Their ports are below those that the system gives to
// outgoing connections, so they stay free.
func addresses(t testing.TB, n int) []string {
	t.Helper()
	var free []string
	for tries := 0; len(free) < n; tries++ {
		require.Less(t, tries, 1000, "no port is free")
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err != nil {
			continue
		}
		defer l.Close()
		free = append(free, l.Addr().String())
	}
	return free
}

// A backend takes traces by OTLP and keeps them.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer

	address string
	mu      sync.Mutex
	spans   []ptrace.Span
}

func serveBackend(t testing.TB) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &backend{address: l.Addr().String()}
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, b)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return b
}

func (b *backend) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rs := range request.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				b.spans = append(b.spans, span)
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

func (b *backend) received() []ptrace.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]ptrace.Span(nil), b.spans...)
}
