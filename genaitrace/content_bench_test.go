package genaitrace_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/log"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// taking is a log processor that takes everything and keeps nothing.
type taking struct{}

func (taking) OnEmit(context.Context, *sdklog.Record) error           { return nil }
func (taking) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (taking) Shutdown(context.Context) error                         { return nil }
func (taking) ForceFlush(context.Context) error                       { return nil }

// BenchmarkContent is what a call costs by what is written of its content: ten messages
// of 800 bytes. off and "nobody takes it" are the ones that must cost nothing.
func BenchmarkContent(b *testing.B) {
	var in genaitrace.Input
	for range 10 {
		in.Messages = append(in.Messages, say(genaiconv.RoleUser, strings.Repeat("The quick brown fox jumps over the lazy dog, twice. ", 16)))
	}
	taker := sdklog.NewLoggerProvider(sdklog.WithProcessor(taking{}))
	for _, c := range []struct {
		name  string
		level content.Level
		logs  log.LoggerProvider
		set   bool
	}{
		{"without", content.Off, nil, false},
		{"off", content.Off, nil, true},
		{"nobody takes it", content.Full, nil, true},
		{"record alone", content.Off, taker, true},
		{"hash", content.Hash, taker, true},
		{"redacted", content.Redacted, taker, true},
		{"full", content.Full, taker, true},
	} {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider()), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()),
				genaitrace.WithLoggerProvider(c.logs), genaitrace.WithContent(c.level), genaitrace.WithHashKey(testKey))
			b.ReportAllocs()
			for b.Loop() {
				_, call := tr.StartCall(context.Background(), genaitrace.Request{Model: "m"})
				if c.set {
					call.SetInput(in)
				}
				call.End()
			}
		})
	}
}
