package contract_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/internal/specimen"
	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Of the records that spans leave, the profiles miss each one that is not there, and none
// of a service that writes no log records.
func TestTheProfilesHoldTheRecordsThatSpansLeave(t *testing.T) {
	for profile, events := range map[string][]string{
		"chat":           {semconv.EventGenAICompletion, genaiconv.EventClientInferenceException},
		"streaming-chat": {semconv.EventGenAICompletion, genaiconv.EventClientInferenceException},
		"gateway":        {semconv.EventGenAICompletion},
		"engine":         {semconv.EventGenAICompletion, semconv.EventGenAIException},
		"rag":            {semconv.EventGenAICompletion, semconv.EventGenAIException},
		"tools":          {semconv.EventGenAICompletion, genaiconv.EventExecuteToolException},
		"agent": {
			semconv.EventGenAICompletion, semconv.EventGenAIException,
			genaiconv.EventExecuteToolException, genaiconv.EventEvaluationResult,
		},
	} {
		c, err := contract.Builtin(profile)
		require.NoError(t, err)
		good := specimen.Record(t, specimen.Profiles[profile])
		assert.Empty(t, c.Check(good).Findings, profile)
		for _, event := range events {
			i := slices.IndexFunc(good.Logs, func(l *capture.Log) bool { return l.EventName == event })
			if !assert.GreaterOrEqual(t, i, 0, "%s: no record of %s", profile, event) {
				continue
			}
			bad := *good
			bad.Logs = slices.Delete(slices.Clone(good.Logs), i, i+1)
			if len(bad.Logs) == 0 { // nobody could tell
				bad.Logs = append(bad.Logs, &capture.Log{EventName: event, TraceID: traceID(1), SpanID: spanID(1, 1), Attributes: good.Logs[i].Attributes, Resource: good.Logs[i].Resource})
			}
			findings := c.Check(&bad).Findings
			if assert.Len(t, findings, 1, "%s without a record of %s", profile, event) {
				assert.Equal(t, [2]string{"log.count", event}, [2]string{findings[0].Rule, findings[0].On})
			}
		}
		none := *good
		none.Logs = nil
		assert.Empty(t, c.Check(&none).Findings, "%s, of a service without a logger provider", profile)
	}
}

// Records that no span must leave are held where there are some.
func TestTheProfilesHoldRecordsOfContent(t *testing.T) {
	for _, tt := range []struct {
		profile, event string
		attributes     capture.Attributes
	}{
		{"chat", genaiconv.EventClientInferenceOperationDetails, capture.Attributes{genaiconv.OperationName(genaiconv.OperationNameChat)}},
		{"tools", semconv.EventGenAIToolCall, capture.Attributes{
			genaiconv.OperationName(genaiconv.OperationNameExecuteTool), genaiconv.ToolName("clock"), semconv.GenAIToolStatus(semconv.GenAIToolStatusOK),
		}},
	} {
		c, err := contract.Builtin(tt.profile)
		require.NoError(t, err)
		good := specimen.Record(t, specimen.Profiles[tt.profile])
		check := func(attributes []attribute.KeyValue) []contract.Finding {
			with := *good
			with.Logs = append(slices.Clone(good.Logs), &capture.Log{
				EventName: tt.event, TraceID: good.Spans[0].TraceID, SpanID: good.Spans[0].SpanID, Attributes: attributes, Resource: good.Spans[0].Resource,
			})
			return c.Check(&with).Findings
		}
		assert.Empty(t, check(tt.attributes), tt.event)
		for i := range tt.attributes {
			findings := check(slices.Delete(slices.Clone(tt.attributes), i, i+1))
			if assert.Len(t, findings, 1, "%s without %s", tt.event, tt.attributes[i].Key) {
				assert.Equal(t, "attribute.missing", findings[0].Rule)
			}
		}
	}
}

// Profiles that speak of one event add to each other.
func TestTheRecordsOfSeveralProfilesAddUp(t *testing.T) {
	c, err := contract.Parse("both.yaml", []byte("contract: genai.observability/v1\nname: both\nextends: [builtin:rag, builtin:engine]\nlogs: {genai.completion: {required: true}}\n"))
	require.NoError(t, err)
	got := c.Spec().Logs[semconv.EventGenAICompletion]
	assert.Equal(t, spec.Strings{"call", "embedding", "engine"}, got.Of.Role)
	assert.True(t, got.Required && got.Trace)
	assert.Contains(t, got.Attributes, "gen_ai.request.model")
}
