package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/semconv"
)

// The spans of an instrumentation that knows the official conventions alone.

// chatSpan is one call to a model.
func chatSpan(from, to float64, parts ...any) *node {
	return span("chat gpt-5", from, to, append([]any{
		client, text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "gpt-5"),
		text("gen_ai.response.model", "gpt-5-2026-01-01"), text("gen_ai.response.id", "resp_1"), attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}),
		whole("gen_ai.usage.input_tokens", 100), whole("gen_ai.usage.output_tokens", 20), whole("gen_ai.usage.cache_read.input_tokens", 50),
		text("server.address", "api.openai.com"), whole("server.port", 443),
	}, parts...)...)
}

func streamedChatSpan(from, to float64, parts ...any) *node {
	return chatSpan(from, to, append([]any{truth("gen_ai.request.stream", true), number("gen_ai.response.time_to_first_chunk", 0.005)}, parts...)...)
}

func retrievalSpan(from, to float64, parts ...any) *node {
	return span("retrieval", from, to, append([]any{client, text("gen_ai.operation.name", "retrieval"), text("gen_ai.data_source.id", "handbook"), whole("gen_ai.retrieval.top_k", 10)}, parts...)...)
}

func toolSpan(from, to float64, parts ...any) *node {
	return span("execute_tool get_weather", from, to, append([]any{text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", "get_weather"), text("gen_ai.tool.call.id", "call_1"), text("gen_ai.tool.type", "function")}, parts...)...)
}

func agentSpan(from, to float64, parts ...any) *node {
	return span("invoke_agent weather", from, to, append([]any{text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", "weather"), text("gen_ai.conversation.id", "c-1")}, parts...)...)
}

func serverSpan(from, to float64, parts ...any) *node {
	return span("POST /ask", from, to, append([]any{server, text("http.request.method", "POST"), text("http.route", "/ask"), whole("http.response.status_code", 200)}, parts...)...)
}

// measured adds the metrics that go with the calls.
func measured(got *capture.Capture) *capture.Capture {
	type key struct{ metric, operation string }
	values := map[key][]float64{}
	for _, s := range got.Spans {
		operation := s.Attributes.String("gen_ai.operation.name")
		if operation != "chat" && operation != "embeddings" {
			continue
		}
		prefix := map[string]string{"chat": "gen_ai.client.inference.", "embeddings": "gen_ai.client.embeddings."}[operation]
		add := func(name string, v float64) {
			values[key{prefix + name, operation}] = append(values[key{prefix + name, operation}], v)
		}
		add("duration", s.Duration().Seconds())
		for attr, names := range map[attribute.Key][]string{
			"gen_ai.response.time_to_first_chunk": {"time_to_first_chunk"},
			"gen_ai.usage.input_tokens":           {"operation.input_tokens", "usage.input_tokens"},
			"gen_ai.usage.output_tokens":          {"operation.output_tokens", "usage.output_tokens"},
		} {
			v, ok := s.Attributes.Get(attr)
			for _, name := range names {
				known, isMetric := semconv.LookupMetric(prefix + name)
				switch {
				case !isMetric || !ok:
				case known.Type == semconv.TypeInt:
					add(name, float64(v.AsInt64()))
				default:
					add(name, v.AsFloat64())
				}
			}
		}
	}
	for of, values := range values {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		known, _ := semconv.LookupMetric(of.metric)
		dims := []attribute.KeyValue{text("gen_ai.operation.name", of.operation), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "gpt-5")}
		m := histogram(of.metric, known.Unit, uint64(len(values)), sum, dims...)
		m.Points[0].Bounds = known.Buckets
		if known.Instrument == "counter" {
			m = counterWith(of.metric, append(dims, text("gen_ai.token.modality", "unknown"))...)
			m.Unit, m.Points[0].Value = known.Unit, sum
		}
		got.Metrics = append(got.Metrics, m)
	}
	return got
}

// measuredWork adds the metrics that go with tools, and with agents and searches in this
// process.
func measuredWork(got *capture.Capture) *capture.Capture {
	type measure struct {
		count uint64
		sum   float64
		attrs []attribute.KeyValue
	}
	all := map[string]*measure{}
	for _, s := range got.Spans {
		name, keys := "", []attribute.Key{}
		switch operation := s.Attributes.String("gen_ai.operation.name"); {
		case s.Attributes.Has("mcp.method.name"): // the tool's own span has the metric
		case operation == "execute_tool":
			name, keys = "gen_ai.execute_tool.duration", []attribute.Key{"gen_ai.tool.name"}
		case s.Kind != trace.SpanKindInternal:
		case operation == "invoke_agent", operation == "invoke_workflow":
			name, keys = "gen_ai.invoke_agent.duration", []attribute.Key{"gen_ai.operation.name", "gen_ai.agent.name"}
		case operation == "retrieval":
			name, keys = "gen_ai.retrieval.duration", []attribute.Key{"gen_ai.operation.name", "gen_ai.data_source.id"}
		}
		if name == "" {
			continue
		}
		m := all[name]
		if m == nil {
			m = &measure{}
			for _, key := range keys {
				m.attrs = append(m.attrs, text(string(key), s.Attributes.String(key)))
			}
			all[name] = m
		}
		m.count, m.sum = m.count+1, m.sum+s.Duration().Seconds()
	}
	for name, m := range all {
		h := histogram(name, "s", m.count, m.sum, m.attrs...)
		known, _ := semconv.LookupMetric(name)
		h.Points[0].Bounds = known.Buckets
		got.Metrics = append(got.Metrics, h)
	}
	return got
}

// embeddingSpan is one call for vectors.
func embeddingSpan(from, to float64) *node {
	return span("embeddings bge-m3", from, to, client, text("gen_ai.operation.name", "embeddings"), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "bge-m3"), whole("gen_ai.usage.input_tokens", 17))
}

func TestTheProfilesAcceptTelemetryOfTheOfficialConventionsAlone(t *testing.T) {
	for _, tt := range []struct {
		name, profile string
		got           *capture.Capture
	}{
		{"a call", "chat", traces(chatSpan(0, 100))},
		{"a call in this process", "chat", traces(chatSpan(0, 100, internal))},
		{"a call that failed", "chat", traces(chatSpan(0, 100), span("chat gpt-5", 0, 5, client, failed, text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "gpt-5"), text("error.type", "timeout")))},
		{"a streamed call", "chat", traces(streamedChatSpan(0, 100))},
		{"a streamed call", "streaming-chat", traces(streamedChatSpan(0, 100))},
		{"a streamed call of which nothing came", "streaming-chat", traces(streamedChatSpan(0, 100), span("chat gpt-5", 0, 5, client, failed, text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "gpt-5"), truth("gen_ai.request.stream", true), text("error.type", "timeout")))},
		{"retrieval and a call", "rag", traces(serverSpan(0, 100, retrievalSpan(1, 10), chatSpan(10, 99)))},
		{"a question as a vector, retrieval and a call", "rag", traces(serverSpan(0, 100, embeddingSpan(1, 3), retrievalSpan(3, 10), chatSpan(10, 99)))},
		{"retrieval with a question that a model wrote", "rag", traces(serverSpan(0, 100, chatSpan(1, 5), retrievalSpan(5, 10), chatSpan(10, 99)))},
		{"retrieval in a workflow of a server", "rag", traces(serverSpan(0, 100, span("invoke_workflow qa", 1, 99, text("gen_ai.operation.name", "invoke_workflow"), text("gen_ai.agent.name", "qa"), retrievalSpan(2, 10), chatSpan(10, 90))))},
		{"another route of the service", "rag", traces(serverSpan(0, 100, retrievalSpan(1, 10), chatSpan(10, 99)), span("GET /healthz", 0, 1, server))},
		{"a request that needs no retrieval", "rag", traces(serverSpan(0, 100, retrievalSpan(1, 10), chatSpan(10, 99)), serverSpan(0, 100, chatSpan(10, 99)))},
		{"a service behind its caller", "rag", traces(span("POST", 0, 110, client, serverSpan(0, 100, retrievalSpan(1, 10), chatSpan(10, 99))))},
		{"a tool", "tools", traces(serverSpan(0, 100, chatSpan(1, 10), toolSpan(10, 40), chatSpan(40, 99)))},
		{"a tool of an agent of a server", "tools", traces(serverSpan(0, 100, agentSpan(1, 99, chatSpan(2, 10), toolSpan(10, 40), chatSpan(40, 90))))},
		{"an answer without a tool", "tools", traces(serverSpan(0, 100, chatSpan(1, 10), toolSpan(10, 40), chatSpan(40, 99)), serverSpan(0, 100, chatSpan(1, 99)))},
		{"an agent", "agent", traces(agentSpan(0, 100, chatSpan(2, 10), toolSpan(10, 40), chatSpan(40, 90)))},
		{"an agent that calls another one", "agent", traces(agentSpan(0, 100, chatSpan(2, 10), toolSpan(10, 40, agentSpan(11, 39, chatSpan(12, 20))), chatSpan(40, 90)))},
		{"an agent of a server", "agent", traces(serverSpan(0, 100, agentSpan(1, 99, chatSpan(2, 10))))},
		{"a search in this process", "rag", traces(serverSpan(0, 100, retrievalSpan(1, 10, internal), chatSpan(10, 99)))},
		{"a tool behind MCP", "tools", traces(serverSpan(0, 100, chatSpan(1, 10), toolSpan(10, 40,
			span("tools/call get_weather", 11, 39, client, text("mcp.method.name", "tools/call"), text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", "get_weather"))), chatSpan(40, 99)))},
		{"every operation", "requirements", traces(serverSpan(0, 100, retrievalSpan(1, 10), agentSpan(10, 99, streamedChatSpan(11, 20), toolSpan(20, 30)),
			embeddingSpan(1, 9)))},
	} {
		t.Run(tt.profile+" "+tt.name, func(t *testing.T) {
			c, err := contract.Builtin(tt.profile)
			require.NoError(t, err)
			for _, f := range c.Check(measured(measuredWork(tt.got))).Findings {
				assert.Fail(t, "the profile does not accept it", f.Text())
			}
		})
	}
}
