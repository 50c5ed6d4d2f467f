package guide

import (
	"context"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// What docs/cookbook.md shows of services that search and use tools.
type (
	helpdesk struct {
		tracer *genaitrace.Tracer
		model  interface {
			Answer(ctx context.Context, question string, found []document, status string) (string, error)
		}
	}
	document struct {
		ID    string
		Score float64
	}
)

const refused = "I cannot help with that."

func (h *helpdesk) index(context.Context, string) ([]document, error) { return nil, nil }
func (h *helpdesk) status(context.Context) (string, error)            { return "", nil }
func (h *helpdesk) forbids(string) bool                               { return false }

func (h *helpdesk) answer(ctx context.Context, question string) (string, error) {
	if h.blocks(ctx, question) {
		return refused, nil // a verdict is no failure
	}
	var found []document
	var status string
	group := h.tracer.NewGroup(ctx) // side by side, in the trace
	group.Go("retrieval.docs", func(ctx context.Context) (err error) { found, err = h.search(ctx, question); return err })
	group.Go("tool.status", func(ctx context.Context) (err error) { status, err = h.callStatus(ctx); return err })
	if err := group.Wait(); err != nil {
		return "", err
	}
	return h.model.Answer(ctx, question, found, status) // a call of its own
}

func (h *helpdesk) blocks(ctx context.Context, question string) bool {
	_, check := h.tracer.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "topics", Target: semconv.GenAIGuardrailTargetInput})
	defer check.End()
	if h.forbids(question) {
		check.SetVerdict(semconv.GenAIGuardrailOutcomeBlock, "off-topic")
		return true
	}
	check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
	return false
}

func (h *helpdesk) search(ctx context.Context, question string) (found []document, err error) {
	ctx, retrieval := h.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: "handbook", Type: semconv.GenAIRetrieverTypeDense, TopK: 5,
	})
	defer retrieval.EndErr(&err)
	if found, err = h.index(ctx, question); err != nil {
		return nil, err
	}
	documents := make([]genaitrace.Document, len(found))
	for i := range found {
		documents[i] = genaitrace.Document{ID: found[i].ID, Score: &found[i].Score}
	}
	retrieval.SetDocuments(documents...)
	return found, nil
}

func (h *helpdesk) callStatus(ctx context.Context) (status string, err error) {
	ctx, tool := h.tracer.StartTool(ctx, genaitrace.ToolCall{Name: "service_status", Type: "function"})
	defer tool.EndErr(&err)
	return h.status(ctx)
}
