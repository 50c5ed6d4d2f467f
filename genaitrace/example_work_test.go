package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A question is answered from two indexes that are asked at the same time.
func Example_retrieval() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))
	indexes := map[string][]string{
		"handbook": {"a stall is a pause between two tokens", "a phase is a step of the engine"},
		"tickets":  {"the stall at noon was a full queue"},
	}
	find := func(ctx context.Context, index, word string) ([]string, error) {
		_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: index, Type: semconv.GenAIRetrieverTypeSparse, TopK: 5})
		defer search.End()
		var found []string
		for _, text := range indexes[index] {
			if strings.Contains(text, word) {
				found = append(found, text)
			}
		}
		search.SetHits(len(found))
		return found, nil
	}

	answer := func(ctx context.Context) (err error) {
		ctx, flow := tr.StartWorkflow(ctx, "answer")
		defer flow.EndErr(&err)

		group := tr.NewGroup(ctx)
		results := make(chan []string, len(indexes))
		for index := range indexes {
			group.Go("search."+index, func(ctx context.Context) error {
				found, err := find(ctx, index, "stall")
				results <- found
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		hits := len(<-results) + len(<-results)

		_, rerank := tr.StartRerank(ctx, "")
		rerank.SetHits(hits)
		rerank.End()

		_, call := tr.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
		defer call.EndErr(&err)
		return nil
	}
	fmt.Println("error:", answer(context.Background()))
	printTree(spans.GetSpans(), trace.SpanID{}, "")
	// Unordered output:
	// error: <nil>
	// invoke_workflow answer
	//   search.handbook
	//     retrieval handbook
	//   search.tickets
	//     retrieval tickets
	//   rag.rerank
	//   chat qwen2.5-7b-instruct
}

// An agent asks a model, runs the tools that it names, and asks again.
func Example_agent() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	// A model that wants one sum, and says it.
	ask := func(ctx context.Context, said string) (tool, answer string) {
		_, call := tr.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
		defer call.End()
		call.SetUsage(genaitrace.Usage{InputTokens: new(10), OutputTokens: new(2)})
		if said == "" {
			call.SetFinish("tool_calls")
			return "add", ""
		}
		call.SetFinish("stop")
		return "", "the sum is " + said
	}
	tools := map[string]func() (string, error){"add": func() (string, error) { return strconv.Itoa(2 + 3), nil }}
	use := func(ctx context.Context, name string) (result string, err error) {
		do, ok := tools[name]
		if !ok {
			return "", errors.New("no such tool") // the name is the model's, and no name of a span
		}
		_, tool := tr.StartTool(ctx, genaitrace.ToolCall{Name: name, CallID: "call_1", Type: "function"})
		defer tool.EndErr(&err)
		return do()
	}

	run := func(ctx context.Context) (answer string, err error) {
		ctx, agent := tr.StartAgent(ctx, genaitrace.Agent{Name: "calculator"})
		defer agent.EndErr(&err)
		for said := ""; answer == ""; {
			var tool string
			if tool, answer = ask(ctx, said); tool == "" {
				continue
			}
			if said, err = use(ctx, tool); err != nil {
				return "", err
			}
		}
		_, check := tr.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "no-secrets", Target: semconv.GenAIGuardrailTargetOutput})
		check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
		check.End()
		return answer, nil
	}
	answer, err := run(context.Background())
	fmt.Println(answer, err)
	printTree(spans.GetSpans(), trace.SpanID{}, "")
	for _, s := range spans.GetSpans() {
		for _, kv := range s.Attributes {
			switch kv.Key {
			case semconv.AITokensInputKey, genaiconv.ToolNameKey, semconv.GenAIToolStatusKey, semconv.GenAIGuardrailOutcomeKey:
				fmt.Println(s.Name, kv.Key, "=", kv.Value.String())
			}
		}
	}
	// Output:
	// the sum is 5 <nil>
	// invoke_agent calculator
	//   chat qwen2.5-7b-instruct
	//   execute_tool add
	//   chat qwen2.5-7b-instruct
	//   guardrail.check
	// execute_tool add gen_ai.tool.name = add
	// execute_tool add genai.tool.status = ok
	// guardrail.check genai.guardrail.outcome = pass
	// invoke_agent calculator ai.tokens.input = 20
}

// Tasks on goroutines, with spans below the one that is around. The first error cancels
// the others, which are then cancelled and not failed.
func ExampleTracer_NewGroup() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	ctx, search := tr.StartRetrieval(context.Background(), genaitrace.RetrievalRequest{DataSource: "all"})
	group := tr.NewGroup(ctx)
	group.SetLimit(4)
	group.Go("search.dense", func(context.Context) error { return errors.New("no index") })
	group.Go("search.sparse", func(ctx context.Context) error {
		<-ctx.Done() // the other one failed
		return ctx.Err()
	})
	err := group.Wait()
	search.Fail(err)

	fmt.Println(err)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.Status.Code)
	}
	// Unordered output:
	// no index
	// search.dense Error
	// search.sparse Unset
	// retrieval all Error
}
