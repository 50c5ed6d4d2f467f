package genailangchain_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// What the wrappers record of an agent meets the built-in contract of agents, with the
// transport below the model and without.
func TestAnAgentMeetsItsContract(t *testing.T) {
	for _, with := range []bool{false, true} {
		contracttest.Synctest(t, contracttest.Builtin("agent"), func(t *testing.T, obs *contracttest.Observer) {
			tracer := genaitrace.New(genaitrace.WithTracerProvider(obs.TracerProvider()), genaitrace.WithMeterProvider(obs.MeterProvider()),
				genaitrace.WithLoggerProvider(obs.LoggerProvider()))
			// A fake clock and real sockets do not go together.
			client := &http.Client{Transport: &handlers{
				stream(nil, role, delta(`"content":"Action: calculator\n"`), delta(`"content":"Action Input: 2*21"`), finish, told, done),
				stream(nil, role, delta(`"content":"Final Answer: 42"`), finish, told, done),
			}}
			if with {
				client.Transport = genaihttp.NewTransport(client.Transport,
					genaihttp.WithTracerProvider(obs.TracerProvider()), genaihttp.WithMeterProvider(obs.MeterProvider()))
			}
			llm, err := openai.New(openai.WithToken("none"), openai.WithModel("gpt-4.1"), openai.WithHTTPClient(client))
			require.NoError(t, err)
			model := genailangchain.WrapModel(llm, tracer, request)
			tool := genailangchain.WrapTool(tools.Calculator{}, tracer)
			agent := genailangchain.WrapAgent(agents.NewExecutor(agents.NewOneShotAgent(model, []tools.Tool{tool})), tracer, genaitrace.Agent{Name: "accountant"})
			got, err := chains.Run(t.Context(), agent, "What is 2 times 21?", chains.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
			require.NoError(t, err)
			assert.Equal(t, "42", got)
			obs.Require(t, "agent", "chat")
			assert.Len(t, obs.Spans(t, "call"), 2)
			assert.Len(t, obs.Spans(t, "tool"), 1)
		})
	}
}

// handlers are a transport that lets each of them answer one request.
type handlers []http.HandlerFunc

func (h *handlers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	(*h)[0](w, r)
	*h = (*h)[1:]
	return w.Result(), nil
}
