package genaitrace_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// secretWork is secretWrappers of the work around model calls, and of the phases of one.
func secretWork(tr *genaitrace.Tracer) map[string]func(ctx context.Context) {
	in := secretInput()
	failure := errors.New(secretText())
	remote := genaitrace.Agent{Name: "a", Remote: true, Request: genaitrace.Request{Provider: "openai"}}
	run := func(_ context.Context, run genaitrace.AgentRun) {
		run.SetInput(in)
		run.SetOutput(in.Messages)
		run.Fail(failure)
	}
	return map[string]func(context.Context){
		"embeddings": func(ctx context.Context) {
			_, call := tr.StartCall(ctx, genaitrace.Request{Operation: genaiconv.OperationNameEmbeddings, Provider: "vllm", Model: "bge-m3"})
			call.SetInput(in)
			call.Fail(failure)
		},
		"memory": func(ctx context.Context) {
			_, memory := tr.StartMemory(ctx, genaitrace.MemoryAccess{StoreID: "prefs"})
			memory.SetQuery(secretText())
			memory.SetContents([]any{map[string]any{planted[0]: secretText(), "n": 4111111111111111}, secretText()})
			memory.Fail(failure)
		},
		"agent":        func(ctx context.Context) { run(tr.StartAgent(ctx, genaitrace.Agent{Name: "a"})) },
		"remote agent": func(ctx context.Context) { run(tr.StartAgent(ctx, remote)) },
		"create agent": func(ctx context.Context) { run(tr.StartCreateAgent(ctx, remote)) },
		"workflow":     func(ctx context.Context) { run(tr.StartWorkflow(ctx, "w")) },
		"plan": func(ctx context.Context) {
			_, plan := tr.StartPlan(ctx, "a")
			plan.Fail(failure)
		},
		"rerank": func(ctx context.Context) {
			_, rerank := tr.StartRerank(ctx, "m")
			rerank.Fail(failure)
		},
		"guardrail": func(ctx context.Context) {
			_, check := tr.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "pii"})
			check.Fail(failure)
		},
		"evaluation": func(ctx context.Context) {
			_, evaluation := tr.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: "Relevance"})
			evaluation.SetExplanation(secretText())
			evaluation.Fail(failure)
		},
		"group": func(ctx context.Context) {
			group := tr.NewGroup(ctx)
			group.Go("search", func(context.Context) error { return failure })
			_ = group.Wait()
		},
		"group, panic": func(ctx context.Context) {
			defer func() { _ = recover() }()
			group := tr.NewGroup(ctx)
			group.Go("search", func(context.Context) error { panic(secretText()) })
			_ = group.Wait()
		},
		"steps of a gateway": func(ctx context.Context) {
			_, auth := tr.StartAuth(ctx)
			auth.Fail(failure)
			_, limit := tr.StartRateLimit(ctx)
			limit.Fail(failure)
			_, route := tr.StartRoute(ctx, "m")
			route.Fail(failure)
			_, cache := tr.StartCache(ctx)
			cache.Fail(failure)
		},
		"phases": func(ctx context.Context) {
			ctx, inf := tr.StartInference(ctx, genaitrace.Request{Model: "m"})
			for _, start := range []func(context.Context) (context.Context, *genaitrace.Phase){
				func(ctx context.Context) (context.Context, *genaitrace.Phase) {
					return inf.StartPreprocess(ctx, "text/plain")
				},
				inf.StartQueue, inf.StartLoad, inf.StartTokenize, inf.StartSchedule,
			} {
				_, phase := start(ctx)
				phase.Fail(failure)
			}
			_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 9})
			_, pass := prefill.StartForward(ctx, genaitrace.Forward{})
			pass.Fail(failure)
			_, kernel := prefill.StartKernel(ctx, genaitrace.Kernel{})
			kernel.Fail(failure)
			prefill.Fail(failure)
			_, post := inf.StartPostprocess(ctx)
			post.Fail(failure)
			inf.End()
		},
		"batch": func(ctx context.Context) {
			_, inf := tr.StartInference(ctx, genaitrace.Request{Model: "m"})
			_, batch := tr.StartBatch(ctx, genaitrace.BatchFacts{Model: "m"})
			batch.Join(inf)
			batch.Fail(failure)
			inf.End()
		},
	}
}

// withoutContent are those of them that have no place for text, whatever the policy says.
var withoutContent = map[string]bool{
	"gateway": true, "template": true, "tool, panic": true, "group": true, "group, panic": true, "phases": true, "batch": true,
}

// allSecrets are secretWrappers and secretWork.
func allSecrets(tr *genaitrace.Tracer, send func(context.Context)) map[string]func(context.Context) {
	all := secretWrappers(tr, send)
	maps.Copy(all, secretWork(tr))
	return all
}

// No kind of span is forgotten.
func TestSecretsAreGivenToEveryKindOfSpan(t *testing.T) {
	tr, captured := observed(t, genaitrace.WithContent(content.Full))
	for _, run := range allSecrets(tr, func(context.Context) {}) {
		run(t.Context())
	}
	seen := map[string]bool{}
	for _, s := range captured().Spans {
		seen[s.Attributes.String(semconv.GenAISpanRoleKey)] = true
	}
	elsewhere := map[semconv.GenAISpanRoleAttr]bool{
		semconv.GenAISpanRoleMCP: true, semconv.GenAISpanRoleService: true, // middleware and adapters make those
	}
	roles, _ := semconv.Lookup(semconv.GenAISpanRoleKey)
	for _, role := range roles.Members {
		if !elsewhere[semconv.GenAISpanRoleAttr(role.Value)] {
			assert.True(t, seen[role.Value], "no secret is given to a span of the role %s", role.Value)
		}
	}
}
