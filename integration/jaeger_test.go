package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// jaeger is a running Jaeger.
type jaeger struct{ otlp, query string }

func startJaeger(t *testing.T) jaeger {
	t.Helper()
	program := part(t, "jaeger", "all-in-one")
	j := jaeger{otlp: address(t), query: address(t)}
	start(t, program,
		"--collector.otlp.grpc.host-port="+j.otlp, "--query.http-server.host-port="+j.query,
		"--collector.otlp.http.host-port="+address(t), "--collector.grpc-server.host-port="+address(t),
		"--collector.http-server.host-port="+address(t), "--query.grpc-server.host-port="+address(t),
		"--admin.http.host-port="+address(t))
	eventually(t, "Jaeger answers", func() error { return get(t, "http://"+j.query+"/api/services", nil) })
	return j
}

func (j jaeger) exporter(t *testing.T) sdktrace.SpanExporter {
	t.Helper()
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(j.otlp), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	return exporter
}

// jaegerSpan is a span as Jaeger's API has it.
type jaegerSpan struct {
	SpanID        string
	OperationName string
	References    []struct{ RefType, SpanID string }
	StartTime     int64 // µs
	Duration      int64 // µs
	Tags          []jaegerTag
	Logs          []struct {
		Timestamp int64
		Fields    []jaegerTag
	}
}

type jaegerTag struct {
	Key   string
	Value any
}

// trace reads one trace, once it has that many spans.
func (j jaeger) trace(t *testing.T, id string, spans int) []jaegerSpan {
	t.Helper()
	var got struct {
		Data []struct{ Spans []jaegerSpan }
	}
	eventually(t, "trace "+id, func() error {
		if err := get(t, "http://"+j.query+"/api/traces/"+id, &got); err != nil {
			return err
		}
		if len(got.Data) != 1 || len(got.Data[0].Spans) < spans {
			return fmt.Errorf("it has not come whole: %+v", len(got.Data))
		}
		return nil
	})
	return got.Data[0].Spans
}

// TestTheTreeInJaegerIsTheTreeThatWasSent compares each span with what Jaeger's API says
// of it: parent, name, kind, times, status, attributes and events.
func TestTheTreeInJaegerIsTheTreeThatWasSent(t *testing.T) {
	j := startJaeger(t)
	sent := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(sent), sdktrace.WithSyncer(j.exporter(t)))
	s := startService(t, tp, noop.NewMeterProvider())
	for _, question := range []string{"hello", "slow", "fail"} {
		s.ask(t, question)
	}
	s.gateway.Close()
	s.engine.Close()
	require.NoError(t, tp.ForceFlush(context.Background()))

	byTrace := make(map[string][]tracetest.SpanStub)
	for _, span := range sent.GetSpans() {
		id := span.SpanContext.TraceID().String()
		byTrace[id] = append(byTrace[id], span)
	}
	require.Len(t, byTrace, 3)
	for id, spans := range byTrace {
		want, got := make(map[string]string), make(map[string]string)
		for _, span := range spans {
			want[span.SpanContext.SpanID().String()] = sentText(span)
		}
		for _, span := range j.trace(t, id, len(spans)) {
			got[span.SpanID] = jaegerText(span)
		}
		assert.Equal(t, want, got)
	}
	require.NoError(t, tp.Shutdown(context.Background()))
}

// sentText is what must be the same in Jaeger. Its times are in microseconds.
func sentText(s tracetest.SpanStub) string {
	lines := []string{fmt.Sprintf("%s %s %d+%d", parentOf(s), s.Name, s.StartTime.UnixMicro(), s.EndTime.Sub(s.StartTime).Microseconds())}
	tags := []string{"span.kind=" + s.SpanKind.String()}
	if s.Status.Code != codes.Unset {
		tags = append(tags, "otel.status_code="+strings.ToUpper(s.Status.Code.String()))
	}
	for _, kv := range s.Attributes {
		tags = append(tags, string(kv.Key)+"="+text(kv.Value))
	}
	slices.Sort(tags)
	lines = append(lines, tags...)
	for _, e := range s.Events {
		fields := []string{"event=" + e.Name}
		for _, kv := range e.Attributes {
			fields = append(fields, string(kv.Key)+"="+text(kv.Value))
		}
		slices.Sort(fields)
		lines = append(lines, fmt.Sprintf("@%d %v", e.Time.UnixMicro(), fields))
	}
	return strings.Join(lines, "\n")
}

func parentOf(s tracetest.SpanStub) string {
	if !s.Parent.IsValid() {
		return "root"
	}
	return s.Parent.SpanID().String()
}

func jaegerText(s jaegerSpan) string {
	parent := "root"
	for _, ref := range s.References {
		if ref.RefType == "CHILD_OF" {
			parent = ref.SpanID
		}
	}
	lines := []string{fmt.Sprintf("%s %s %d+%d", parent, s.OperationName, s.StartTime, s.Duration)}
	var tags []string
	for _, tag := range s.Tags {
		switch {
		case strings.HasPrefix(tag.Key, "otel.scope."), tag.Key == "internal.span.format", tag.Key == "error", tag.Key == "otel.status_description", tag.Key == "w3c.tracestate":
		default:
			tags = append(tags, fmt.Sprintf("%s=%v", tag.Key, tag.Value))
		}
	}
	slices.Sort(tags)
	lines = append(lines, tags...)
	slices.SortStableFunc(s.Logs, func(a, b struct {
		Timestamp int64
		Fields    []jaegerTag
	}) int {
		return int(a.Timestamp - b.Timestamp)
	})
	for _, log := range s.Logs {
		var fields []string
		for _, f := range log.Fields {
			fields = append(fields, fmt.Sprintf("%s=%v", f.Key, f.Value))
		}
		slices.Sort(fields)
		lines = append(lines, fmt.Sprintf("@%d %v", log.Timestamp, fields))
	}
	return strings.Join(lines, "\n")
}

// text is a value as JSON decoding prints it.
func text(v attribute.Value) string {
	switch v.Type() {
	case attribute.INT64:
		return fmt.Sprint(float64(v.AsInt64()))
	case attribute.STRINGSLICE, attribute.BOOLSLICE, attribute.INT64SLICE, attribute.FLOAT64SLICE:
		return v.String()
	default:
		return fmt.Sprint(v.AsInterface())
	}
}
