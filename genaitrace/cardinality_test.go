package genaitrace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Each dimension is bounded, and so is their product, which would be far larger.
func TestTheNumberOfAttributeSetsIsCapped(t *testing.T) {
	const limit = 1000
	for _, tt := range []struct {
		name  string
		calls int
		call  func(i int) (req genaitrace.Request, errType string)
		sets  int // at most
	}{
		{"ports of one host", 1500, func(i int) (genaitrace.Request, string) {
			return genaitrace.Request{Model: "m", ServerAddress: "10.0.0.1", ServerPort: i + 1}, ""
		}, 101},
		{"hosts", 1500, func(i int) (genaitrace.Request, string) {
			return genaitrace.Request{Model: "m", ServerAddress: fmt.Sprint("h", i)}, ""
		}, 101},
		{"models and ports", 4000, func(i int) (genaitrace.Request, string) {
			return genaitrace.Request{Model: fmt.Sprint("m", i%97), ServerAddress: "h", ServerPort: 1 + i%89}, ""
		}, limit + 1},
		{"models and errors", 4000, func(i int) (genaitrace.Request, string) {
			return genaitrace.Request{Model: fmt.Sprint("m", i%97), ServerAddress: "h"}, fmt.Sprint(i % 89)
		}, limit + 101},
		{"providers, operations and errors", 4000, func(i int) (genaitrace.Request, string) {
			return genaitrace.Request{
				Provider: genaiconv.ProviderNameAttr(fmt.Sprint("p", i%17)), Operation: genaiconv.OperationNameAttr(fmt.Sprint("o", i%19)),
			}, fmt.Sprint(i % 41)
		}, limit + 101},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := record(t, sdktrace.WithSampler(sdktrace.NeverSample())) // the metrics alone
			for i := range tt.calls {
				req, errType := tt.call(i)
				_, call := r.StartCall(t.Context(), req)
				if errType != "" {
					call.SetErrorType(errType)
					call.SetTerminal("error")
				}
				call.End()
			}
			points := r.points(genaiconv.ClientInferenceDurationName)
			assert.LessOrEqual(t, len(points), tt.sets)
			var count uint64
			for _, p := range points {
				count += p.Count
			}
			assert.EqualValues(t, tt.calls, count, "nothing is lost")
		})
	}
}

// A port says nothing without its host: the span leaves it out, and so do metrics.
func TestAPortWithoutItsHostIsNoDimension(t *testing.T) {
	r := record(t)
	for i := range 200 {
		_, call := r.StartCall(t.Context(), genaitrace.Request{ServerPort: 1 + i})
		call.End()
	}
	assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat"}, dims(r.point(genaiconv.ClientInferenceDurationName).Attributes))
	assert.False(t, r.spans("chat")[0].has("server.port"))
}

func TestTheKindsOfFaultsAreThoseOfTheRegistry(t *testing.T) {
	handled(t)
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	for i := range 200 {
		call.Fault(semconv.GenAIFaultAttr(fmt.Sprint("kind ", i)), errReset)
	}
	known, ok := semconv.Lookup(semconv.GenAIFaultKey)
	require.True(t, ok)
	want := map[semconv.GenAIFaultAttr]int{"_OTHER": 200}
	for _, kind := range known.Members {
		call.Fault(semconv.GenAIFaultAttr(kind.Value), errReset)
		want[semconv.GenAIFaultAttr(kind.Value)] = 1
	}
	call.End()
	assert.Equal(t, want, r.faults())
}
