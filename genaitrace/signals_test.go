package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/genaitrace/logprob"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// sums are the values of a counter by its attributes.
func sums(c *capture.Capture, name string) map[string]float64 {
	found := map[string]float64{}
	for _, m := range c.Metric(name) {
		for _, p := range m.Points {
			var dims []string
			for _, kv := range p.Attributes {
				dims = append(dims, kv.Value.String())
			}
			found[strings.Join(dims, " ")] += p.Value
		}
	}
	return found
}

// A rate is the quotient of two counters, which count every verdict and those that
// found something.
func TestVerdictsCountTheirHitsAndTheirTotal(t *testing.T) {
	tr, captured := observed(t, genaitrace.WithContent(content.Redacted))
	ctx, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
	call.SetResponse("chatcmpl-1", "")
	for i := range 10 {
		tr.RecordVerdict(ctx, genaitrace.Verdict{
			Type: semconv.GenAISignalTypeHallucination, Found: i < 3, Score: new(float64(i) / 10), SourceModel: "judge-7b", Explanation: "jane@example.com is made up",
		})
	}
	tr.RecordVerdict(ctx, genaitrace.Verdict{Type: semconv.GenAISignalTypeSafety})
	call.End()
	got := captured()
	assert.Equal(t, map[string]float64{"m judge-7b hallucination": 10, "m safety": 1}, sums(got, semconv.GenAISignalChecksName))
	assert.Equal(t, map[string]float64{"m judge-7b hallucination": 3}, sums(got, semconv.GenAISignalHitsName))
	assert.Equal(t, map[string]float64{"hallucination fail m": 3, "hallucination pass m": 7, "safety pass m": 1}, sums(got, semconv.GenAIEvaluationsName))

	records := logsNamed(got, genaiconv.EventEvaluationResult)
	require.Len(t, records, 11)
	assert.Equal(t, "fail", records[0].Attributes.String(genaiconv.EvaluationScoreLabelKey))
	assert.Equal(t, "[REDACTED:email] is made up", records[0].Attributes.String(genaiconv.EvaluationExplanationKey))
	assert.Equal(t, "chatcmpl-1", records[0].Attributes.String(genaiconv.ResponseIDKey), "from the running call")
	assert.Equal(t, call.Span().SpanContext().SpanID(), records[0].SpanID)
}

func TestAnEvaluationIsRecordedAsItCameOut(t *testing.T) {
	errs := handled(t)
	tr, captured := observed(t)
	tr.RecordEvaluation(t.Context(), genaitrace.EvaluationResult{Name: "Relevance", Score: new(4.0), Label: "relevant", Explanation: "secret"})
	tr.RecordEvaluation(t.Context(), genaitrace.EvaluationResult{Name: "Relevance", Err: context.DeadlineExceeded})
	tr.RecordEvaluation(t.Context(), genaitrace.EvaluationResult{Name: "", Score: new(math.NaN()), Err: errors.New("secret")})
	got := captured()
	assert.Equal(t, map[string]float64{"Relevance relevant": 1}, sums(got, semconv.GenAIEvaluationsName), "what failed is no judgement")
	assert.Equal(t, `gen_ai.evaluation.result 9
    gen_ai.evaluation.name = Relevance
    gen_ai.evaluation.score.label = relevant
    gen_ai.evaluation.score.value = 4
gen_ai.evaluation.result 9
    error.type = timeout
    gen_ai.evaluation.name = Relevance
gen_ai.evaluation.result 9
    error.type = _OTHER
    gen_ai.evaluation.name = _OTHER
`, logText(got))
	assertNowhere(t, got, "secret")
	assert.Len(t, errs(), 1)
}

func TestASignalIsAnEventAndAValue(t *testing.T) {
	errs := handled(t)
	tr, captured := observed(t, genaitrace.WithContent(content.Redacted))
	ctx := genaitrace.ContextWith(t.Context(), genaitrace.RequestID("req-1"))
	stats := logprob.Stats{Vocabulary: 1000}
	require.NoError(t, stats.Add(logprob.Token{Logprob: math.Log(0.5), Top: []float64{math.Log(0.5), math.Log(0.25)}}))
	tr.RecordLogprobs(ctx, &stats)
	tr.RecordLogprobs(ctx, &logprob.Stats{})
	tr.RecordLogprobs(ctx, nil)
	tr.RecordSignal(ctx, genaitrace.Signal{
		Answer: genaitrace.Answer{Model: "m", ResponseID: "chatcmpl-1"}, Type: semconv.GenAISignalTypeRewardScore, Value: -2.5, SourceModel: "reward-7b",
		Metadata: map[string]any{"quote": "write to jane@example.com"},
	})
	for _, wrong := range []genaitrace.Signal{{Value: math.NaN()}, {Value: math.Inf(1)}, {Value: 2, UpperBound: new(1.0)}, {Value: 2, UpperBound: new(math.NaN())}} {
		tr.RecordSignal(ctx, wrong)
	}
	got := captured()
	assert.Equal(t, `genai.signal 9
    genai.request_id = req-1
    genai.signal.type = logit_entropy
    genai.signal.upper_bound = 2.766159089917784
    genai.signal.value = 1.0397207708399179
genai.signal 9
    genai.request_id = req-1
    genai.signal.type = confidence
    genai.signal.value = 0.5
genai.signal 9
    gen_ai.request.model = m
    gen_ai.response.id = chatcmpl-1
    genai.request_id = req-1
    genai.signal.metadata = {"quote":"write to [REDACTED:email]"}
    genai.signal.source_model = reward-7b
    genai.signal.type = reward_score
    genai.signal.value = -2.5
`, logText(got))
	values := got.Metric(semconv.GenAISignalValuesName)
	require.Len(t, values, 1)
	assert.Len(t, values[0].Points, 3)
	faults := got.Metric(semconv.GenAITelemetryFaultsName)
	require.Len(t, faults, 1)
	assert.InDelta(t, 4, faults[0].Points[0].Value, 0)
	assert.Len(t, errs(), 1, "said once")
}

// Names, labels and models come from callers; metrics keep few of each.
func TestJudgementsMakeFewSeries(t *testing.T) {
	tr, captured := observed(t)
	long := strings.Repeat("x", 10_000)
	for i := range 1500 {
		name := fmt.Sprint(i, long)
		tr.RecordEvaluation(t.Context(), genaitrace.EvaluationResult{Name: name, Label: name, Answer: genaitrace.Answer{Model: name}})
		tr.RecordVerdict(t.Context(), genaitrace.Verdict{Type: semconv.GenAISignalTypeAttr(name), SourceModel: name, Found: true})
		tr.RecordSignal(t.Context(), genaitrace.Signal{Type: semconv.GenAISignalTypeAttr(name), SourceModel: name})
	}
	for i := range 100 {
		for j := range 100 {
			tr.RecordEvaluation(t.Context(), genaitrace.EvaluationResult{Name: fmt.Sprint(i, long), Label: fmt.Sprint(j)})
		}
	}
	got := captured()
	for _, m := range got.Metrics {
		assert.LessOrEqual(t, len(m.Points), 1101, m.Name)
		for _, p := range m.Points {
			for _, kv := range p.Attributes {
				assert.LessOrEqual(t, len(kv.Value.AsString()), 256)
			}
		}
	}
	for _, l := range got.Logs {
		for _, kv := range l.Attributes {
			assert.LessOrEqual(t, len(kv.Value.String()), 256)
		}
	}
}

func TestANilTracerRecordsNoJudgement(t *testing.T) {
	var none *genaitrace.Tracer
	none.RecordEvaluation(t.Context(), genaitrace.EvaluationResult{})
	none.RecordVerdict(t.Context(), genaitrace.Verdict{})
	none.RecordSignal(t.Context(), genaitrace.Signal{})
	none.RecordLogprobs(t.Context(), &logprob.Stats{})
	assert.Empty(t, none.Hash("x"))
	assert.Empty(t, none.DescribePrompt(genaitrace.PromptText{}).Hash)
	(&genaitrace.Tracer{}).RecordSignal(t.Context(), genaitrace.Signal{})
}
