package collectortest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// uploads keeps what the SDK's OTLP exporter would send.
type uploads struct{ traces []ptrace.Traces }

func (*uploads) Start(context.Context) error { return nil }
func (*uploads) Stop(context.Context) error  { return nil }

func (u *uploads) UploadTraces(_ context.Context, spans []*tracev1.ResourceSpans) error {
	wire, err := proto.Marshal(&collectorv1.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		return err
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(wire); err != nil {
		return err
	}
	u.traces = append(u.traces, request.Traces())
	return nil
}

// toOTLP makes what arrives at a Collector.
func toOTLP(t testing.TB, spans []sdktrace.ReadOnlySpan) []ptrace.Traces {
	t.Helper()
	var u uploads
	exporter, err := otlptrace.New(context.Background(), &u)
	require.NoError(t, err)
	for len(spans) > 0 {
		batch := spans[:min(len(spans), 512)]
		require.NoError(t, exporter.ExportSpans(context.Background(), batch))
		spans = spans[len(batch):]
	}
	return u.traces
}
