package semconv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

func TestAConditionIsJudgedByWhatTelemetryShows(t *testing.T) {
	type attrs = []attribute.KeyValue
	tests := []struct {
		span   string
		key    attribute.Key
		failed bool
		attrs  attrs
		want   semconv.Verdict
	}{
		{"gen_ai.client.inference", "gen_ai.operation.name", false, nil, semconv.Holds}, // no condition
		{"gen_ai.client.inference", "error.type", true, nil, semconv.Holds},
		{"gen_ai.client.inference", "error.type", false, nil, semconv.Fails},
		{"gen_ai.client.inference", "server.port", false, attrs{attribute.String("server.address", "a")}, semconv.Holds},
		{"gen_ai.client.inference", "server.port", false, nil, semconv.Fails},
		{"gen_ai.client.inference", "gen_ai.request.seed", false, nil, semconv.Unknown},
		{"gen_ai.client.inference", "gen_ai.response.time_to_first_chunk", false, attrs{attribute.Bool("gen_ai.request.stream", true)}, semconv.Holds},
		{"gen_ai.client.inference", "gen_ai.response.time_to_first_chunk", false, nil, semconv.Fails},
		// A term that fails decides, though another one cannot be judged.
		{"gen_ai.client.inference", "gen_ai.prompt.version", false, nil, semconv.Fails},
		{"gen_ai.client.inference", "gen_ai.prompt.version", false, attrs{attribute.String("gen_ai.prompt.name", "a")}, semconv.Unknown},
		// A term about the attribute itself needs it to be there.
		{"gen_ai.client.inference", "gen_ai.request.choice.count", false, attrs{attribute.Int("gen_ai.request.choice.count", 1)}, semconv.Fails},
		{"gen_ai.client.inference", "gen_ai.request.choice.count", false, attrs{attribute.Int("gen_ai.request.choice.count", 2)}, semconv.Unknown},
		{"gen_ai.client.inference", "gen_ai.request.choice.count", false, nil, semconv.Unknown},
		{"gen_ai.client.inference", "gen_ai.request.stream", false, attrs{attribute.Bool("gen_ai.request.stream", false)}, semconv.Fails},
		{"mcp.client", "gen_ai.tool.name", false, attrs{attribute.String("mcp.method.name", "tools/call")}, semconv.Holds},
		{"mcp.client", "gen_ai.tool.name", false, attrs{attribute.String("mcp.method.name", "ping")}, semconv.Fails},
		{"mcp.client", "mcp.resource.uri", false, attrs{attribute.String("mcp.method.name", "resources/subscribe")}, semconv.Holds},
		{"mcp.client", "jsonrpc.request.id", false, attrs{attribute.String("mcp.method.name", "notifications/progress")}, semconv.Fails},
		{"mcp.client", "jsonrpc.request.id", false, attrs{attribute.String("mcp.method.name", "ping")}, semconv.Holds},
	}
	for _, tt := range tests {
		set := attribute.NewSet(tt.attrs...)
		require.Equal(t, tt.want, requirement(t, tt.span, tt.key).When.Check(tt.key, tt.failed, set.Value), "%s with %v", tt.key, tt.attrs)
	}
}

func TestMissingIsJudged(t *testing.T) {
	e, ok := semconv.LookupEvent("gen_ai.client.inference.exception")
	require.True(t, ok)
	none, message := attribute.NewSet(), attribute.NewSet(attribute.String("exception.message", "x"))
	for _, r := range e.Attributes {
		if r.Key == "exception.type" {
			require.Equal(t, semconv.Holds, r.When.Check(r.Key, true, none.Value))
			require.Equal(t, semconv.Fails, r.When.Check(r.Key, true, message.Value))
		}
	}
}

func requirement(t *testing.T, span string, key attribute.Key) semconv.Requirement {
	t.Helper()
	s, ok := semconv.LookupSpan(span)
	require.True(t, ok)
	for _, r := range s.Attributes {
		if r.Key == key {
			return r
		}
	}
	t.Fatalf("%s does not carry %s", span, key)
	return semconv.Requirement{}
}
