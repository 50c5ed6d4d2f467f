package genaiconv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/semconv/v1.41.0"
	otelgenaiconv "go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	otelmcpconv "go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
	"github.com/genaitrace/otelgenai/semconv/mcpconv"
)

// The last release of otel-go that had these names: who comes from there finds
// the same values under the names that the packages here give them.
var sameKeys = []struct{ theirs, ours attribute.Key }{
	{otel.AWSBedrockGuardrailIDKey, genaiconv.AWSBedrockGuardrailIDKey},
	{otel.AWSBedrockKnowledgeBaseIDKey, genaiconv.AWSBedrockKnowledgeBaseIDKey},
	{otel.GenAIAgentDescriptionKey, genaiconv.AgentDescriptionKey},
	{otel.GenAIAgentIDKey, genaiconv.AgentIDKey},
	{otel.GenAIAgentNameKey, genaiconv.AgentNameKey},
	{otel.GenAIAgentVersionKey, genaiconv.AgentVersionKey},
	{otel.GenAIConversationIDKey, genaiconv.ConversationIDKey},
	{otel.GenAIDataSourceIDKey, genaiconv.DataSourceIDKey},
	{otel.GenAIEmbeddingsDimensionCountKey, genaiconv.EmbeddingsDimensionCountKey},
	{otel.GenAIEvaluationExplanationKey, genaiconv.EvaluationExplanationKey},
	{otel.GenAIEvaluationNameKey, genaiconv.EvaluationNameKey},
	{otel.GenAIEvaluationScoreLabelKey, genaiconv.EvaluationScoreLabelKey},
	{otel.GenAIEvaluationScoreValueKey, genaiconv.EvaluationScoreValueKey},
	{otel.GenAIInputMessagesKey, genaiconv.InputMessagesKey},
	{otel.GenAIOperationNameKey, genaiconv.OperationNameKey},
	{otel.GenAIOutputMessagesKey, genaiconv.OutputMessagesKey},
	{otel.GenAIOutputTypeKey, genaiconv.OutputTypeKey},
	{otel.GenAIPromptNameKey, genaiconv.PromptNameKey},
	{otel.GenAIProviderNameKey, genaiconv.ProviderNameKey},
	{otel.GenAIRequestChoiceCountKey, genaiconv.RequestChoiceCountKey},
	{otel.GenAIRequestEncodingFormatsKey, genaiconv.RequestEncodingFormatsKey},
	{otel.GenAIRequestFrequencyPenaltyKey, genaiconv.RequestFrequencyPenaltyKey},
	{otel.GenAIRequestMaxTokensKey, genaiconv.RequestMaxTokensKey},
	{otel.GenAIRequestModelKey, genaiconv.RequestModelKey},
	{otel.GenAIRequestPresencePenaltyKey, genaiconv.RequestPresencePenaltyKey},
	{otel.GenAIRequestSeedKey, genaiconv.RequestSeedKey},
	{otel.GenAIRequestStopSequencesKey, genaiconv.RequestStopSequencesKey},
	{otel.GenAIRequestStreamKey, genaiconv.RequestStreamKey},
	{otel.GenAIRequestTemperatureKey, genaiconv.RequestTemperatureKey},
	{otel.GenAIRequestTopKKey, genaiconv.RequestTopKKey},
	{otel.GenAIRequestTopPKey, genaiconv.RequestTopPKey},
	{otel.GenAIResponseFinishReasonsKey, genaiconv.ResponseFinishReasonsKey},
	{otel.GenAIResponseIDKey, genaiconv.ResponseIDKey},
	{otel.GenAIResponseModelKey, genaiconv.ResponseModelKey},
	{otel.GenAIResponseTimeToFirstChunkKey, genaiconv.ResponseTimeToFirstChunkKey},
	{otel.GenAIRetrievalDocumentsKey, genaiconv.RetrievalDocumentsKey},
	{otel.GenAIRetrievalQueryTextKey, genaiconv.RetrievalQueryTextKey},
	{otel.GenAISystemInstructionsKey, genaiconv.SystemInstructionsKey},
	{otel.GenAITokenTypeKey, genaiconv.TokenTypeKey},
	{otel.GenAIToolCallArgumentsKey, genaiconv.ToolCallArgumentsKey},
	{otel.GenAIToolCallIDKey, genaiconv.ToolCallIDKey},
	{otel.GenAIToolCallResultKey, genaiconv.ToolCallResultKey},
	{otel.GenAIToolDefinitionsKey, genaiconv.ToolDefinitionsKey},
	{otel.GenAIToolDescriptionKey, genaiconv.ToolDescriptionKey},
	{otel.GenAIToolNameKey, genaiconv.ToolNameKey},
	{otel.GenAIToolTypeKey, genaiconv.ToolTypeKey},
	{otel.GenAIUsageCacheCreationInputTokensKey, genaiconv.UsageCacheCreationInputTokensKey},
	{otel.GenAIUsageCacheReadInputTokensKey, genaiconv.UsageCacheReadInputTokensKey},
	{otel.GenAIUsageInputTokensKey, genaiconv.UsageInputTokensKey},
	{otel.GenAIUsageOutputTokensKey, genaiconv.UsageOutputTokensKey},
	{otel.GenAIUsageReasoningOutputTokensKey, genaiconv.UsageReasoningOutputTokensKey},
	{otel.GenAIWorkflowNameKey, genaiconv.WorkflowNameKey},
	{otel.McpMethodNameKey, mcpconv.MethodNameKey},
	{otel.McpProtocolVersionKey, mcpconv.ProtocolVersionKey},
	{otel.McpResourceURIKey, mcpconv.ResourceURIKey},
	{otel.McpSessionIDKey, mcpconv.SessionIDKey},
	{otel.OpenAIAPITypeKey, genaiconv.OpenAIAPITypeKey},
	{otel.OpenAIRequestServiceTierKey, genaiconv.OpenAIRequestServiceTierKey},
	{otel.OpenAIResponseServiceTierKey, genaiconv.OpenAIResponseServiceTierKey},
	{otel.OpenAIResponseSystemFingerprintKey, genaiconv.OpenAIResponseSystemFingerprintKey},
}

var sameMembers = []struct{ theirs, ours attribute.KeyValue }{
	{otel.GenAIOperationNameChat, genaiconv.OperationName(genaiconv.OperationNameChat)},
	{otel.GenAIOperationNameGenerateContent, genaiconv.OperationName(genaiconv.OperationNameGenerateContent)},
	{otel.GenAIOperationNameTextCompletion, genaiconv.OperationName(genaiconv.OperationNameTextCompletion)},
	{otel.GenAIOperationNameEmbeddings, genaiconv.OperationName(genaiconv.OperationNameEmbeddings)},
	{otel.GenAIOperationNameRetrieval, genaiconv.OperationName(genaiconv.OperationNameRetrieval)},
	{otel.GenAIOperationNameCreateAgent, genaiconv.OperationName(genaiconv.OperationNameCreateAgent)},
	{otel.GenAIOperationNameInvokeAgent, genaiconv.OperationName(genaiconv.OperationNameInvokeAgent)},
	{otel.GenAIOperationNameExecuteTool, genaiconv.OperationName(genaiconv.OperationNameExecuteTool)},
	{otel.GenAIOperationNameInvokeWorkflow, genaiconv.OperationName(genaiconv.OperationNameInvokeWorkflow)},
	{otel.GenAIOutputTypeText, genaiconv.OutputType(genaiconv.OutputTypeText)},
	{otel.GenAIOutputTypeJSON, genaiconv.OutputType(genaiconv.OutputTypeJSON)},
	{otel.GenAIOutputTypeImage, genaiconv.OutputType(genaiconv.OutputTypeImage)},
	{otel.GenAIOutputTypeSpeech, genaiconv.OutputType(genaiconv.OutputTypeSpeech)},
	{otel.GenAIProviderNameOpenAI, genaiconv.ProviderName(genaiconv.ProviderNameOpenAI)},
	{otel.GenAIProviderNameGCPGenAI, genaiconv.ProviderName(genaiconv.ProviderNameGCPGenAI)},
	{otel.GenAIProviderNameGCPVertexAI, genaiconv.ProviderName(genaiconv.ProviderNameGCPVertexAI)},
	{otel.GenAIProviderNameGCPGemini, genaiconv.ProviderName(genaiconv.ProviderNameGCPGemini)},
	{otel.GenAIProviderNameAnthropic, genaiconv.ProviderName(genaiconv.ProviderNameAnthropic)},
	{otel.GenAIProviderNameCohere, genaiconv.ProviderName(genaiconv.ProviderNameCohere)},
	{otel.GenAIProviderNameAzureAIInference, genaiconv.ProviderName(genaiconv.ProviderNameAzureAIInference)},
	{otel.GenAIProviderNameAzureAIOpenAI, genaiconv.ProviderName(genaiconv.ProviderNameAzureAIOpenAI)},
	{otel.GenAIProviderNameIBMWatsonxAI, genaiconv.ProviderName(genaiconv.ProviderNameIBMWatsonxAI)},
	{otel.GenAIProviderNameAWSBedrock, genaiconv.ProviderName(genaiconv.ProviderNameAWSBedrock)},
	{otel.GenAIProviderNamePerplexity, genaiconv.ProviderName(genaiconv.ProviderNamePerplexity)},
	{otel.GenAIProviderNameXAI, genaiconv.ProviderName(genaiconv.ProviderNameXAI)},
	{otel.GenAIProviderNameDeepseek, genaiconv.ProviderName(genaiconv.ProviderNameDeepSeek)},
	{otel.GenAIProviderNameGroq, genaiconv.ProviderName(genaiconv.ProviderNameGroq)},
	{otel.GenAIProviderNameMistralAI, genaiconv.ProviderName(genaiconv.ProviderNameMistralAI)},
	{otel.GenAITokenTypeInput, genaiconv.TokenType(genaiconv.TokenTypeInput)},
	{otel.GenAITokenTypeOutput, genaiconv.TokenType(genaiconv.TokenTypeOutput)},
	{otel.McpMethodNameNotificationsCancelled, mcpconv.MethodName(mcpconv.MethodNameNotificationsCancelled)},
	{otel.McpMethodNameInitialize, mcpconv.MethodName(mcpconv.MethodNameInitialize)},
	{otel.McpMethodNameNotificationsInitialized, mcpconv.MethodName(mcpconv.MethodNameNotificationsInitialized)},
	{otel.McpMethodNameNotificationsProgress, mcpconv.MethodName(mcpconv.MethodNameNotificationsProgress)},
	{otel.McpMethodNamePing, mcpconv.MethodName(mcpconv.MethodNamePing)},
	{otel.McpMethodNameResourcesList, mcpconv.MethodName(mcpconv.MethodNameResourcesList)},
	{otel.McpMethodNameResourcesTemplatesList, mcpconv.MethodName(mcpconv.MethodNameResourcesTemplatesList)},
	{otel.McpMethodNameResourcesRead, mcpconv.MethodName(mcpconv.MethodNameResourcesRead)},
	{otel.McpMethodNameNotificationsResourcesListChanged, mcpconv.MethodName(mcpconv.MethodNameNotificationsResourcesListChanged)},
	{otel.McpMethodNameResourcesSubscribe, mcpconv.MethodName(mcpconv.MethodNameResourcesSubscribe)},
	{otel.McpMethodNameResourcesUnsubscribe, mcpconv.MethodName(mcpconv.MethodNameResourcesUnsubscribe)},
	{otel.McpMethodNameNotificationsResourcesUpdated, mcpconv.MethodName(mcpconv.MethodNameNotificationsResourcesUpdated)},
	{otel.McpMethodNamePromptsList, mcpconv.MethodName(mcpconv.MethodNamePromptsList)},
	{otel.McpMethodNamePromptsGet, mcpconv.MethodName(mcpconv.MethodNamePromptsGet)},
	{otel.McpMethodNameNotificationsPromptsListChanged, mcpconv.MethodName(mcpconv.MethodNameNotificationsPromptsListChanged)},
	{otel.McpMethodNameToolsList, mcpconv.MethodName(mcpconv.MethodNameToolsList)},
	{otel.McpMethodNameToolsCall, mcpconv.MethodName(mcpconv.MethodNameToolsCall)},
	{otel.McpMethodNameNotificationsToolsListChanged, mcpconv.MethodName(mcpconv.MethodNameNotificationsToolsListChanged)},
	{otel.McpMethodNameLoggingSetLevel, mcpconv.MethodName(mcpconv.MethodNameLoggingSetLevel)},
	{otel.McpMethodNameNotificationsMessage, mcpconv.MethodName(mcpconv.MethodNameNotificationsMessage)},
	{otel.McpMethodNameSamplingCreateMessage, mcpconv.MethodName(mcpconv.MethodNameSamplingCreateMessage)},
	{otel.McpMethodNameCompletionComplete, mcpconv.MethodName(mcpconv.MethodNameCompletionComplete)},
	{otel.McpMethodNameRootsList, mcpconv.MethodName(mcpconv.MethodNameRootsList)},
	{otel.McpMethodNameNotificationsRootsListChanged, mcpconv.MethodName(mcpconv.MethodNameNotificationsRootsListChanged)},
	{otel.McpMethodNameElicitationCreate, mcpconv.MethodName(mcpconv.MethodNameElicitationCreate)},
	{otel.OpenAIAPITypeChatCompletions, genaiconv.OpenAIAPIType(genaiconv.OpenAIAPITypeChatCompletions)},
	{otel.OpenAIAPITypeResponses, genaiconv.OpenAIAPIType(genaiconv.OpenAIAPITypeResponses)},
	{otel.OpenAIRequestServiceTierAuto, genaiconv.OpenAIRequestServiceTier(genaiconv.OpenAIRequestServiceTierAuto)},
	{otel.OpenAIRequestServiceTierDefault, genaiconv.OpenAIRequestServiceTier(genaiconv.OpenAIRequestServiceTierDefault)},
}

type instrument interface {
	Name() string
	Unit() string
}

var sameInstruments = []struct{ theirs, ours instrument }{
	{otelgenaiconv.ClientOperationDuration{}, genaiconv.ClientOperationDuration{}},
	{otelgenaiconv.ClientOperationTimePerOutputChunk{}, genaiconv.ClientOperationTimePerOutputChunk{}},
	{otelgenaiconv.ClientOperationTimeToFirstChunk{}, genaiconv.ClientOperationTimeToFirstChunk{}},
	{otelgenaiconv.ClientTokenUsage{}, genaiconv.ClientTokenUsage{}},
	{otelgenaiconv.ServerRequestDuration{}, genaiconv.ServerRequestDuration{}},
	{otelgenaiconv.ServerTimePerOutputToken{}, genaiconv.ServerTimePerOutputToken{}},
	{otelgenaiconv.ServerTimeToFirstToken{}, genaiconv.ServerTimeToFirstToken{}},
	{otelmcpconv.ClientOperationDuration{}, mcpconv.ClientOperationDuration{}},
	{otelmcpconv.ClientSessionDuration{}, mcpconv.ClientSessionDuration{}},
	{otelmcpconv.ServerOperationDuration{}, mcpconv.ServerOperationDuration{}},
	{otelmcpconv.ServerSessionDuration{}, mcpconv.ServerSessionDuration{}},
}

func TestNamesEqualThoseOfOTelGo(t *testing.T) {
	for _, k := range sameKeys {
		require.Equal(t, k.theirs, k.ours)
	}
	for _, m := range sameMembers {
		require.Equal(t, m.theirs, m.ours)
	}
	for _, i := range sameInstruments {
		require.Equal(t, i.theirs.Name(), i.ours.Name())
		require.Equal(t, i.theirs.Unit(), i.ours.Unit(), i.ours.Name())
	}
}

// The tables above are complete: whatever that release declares in these
// namespaces is in them, and known to the registry.
func TestNoNameOfOTelGoIsMissing(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "go.opentelemetry.io/otel/semconv/v1.41.0").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "attribute_group.go"))
	require.NoError(t, err)
	known := map[attribute.Key]bool{}
	for _, k := range sameKeys {
		known[k.theirs] = true
	}
	declared := regexp.MustCompile(`attribute\.Key\("((?:gen_ai|openai|mcp|aws\.bedrock|jsonrpc)\.[^"]*)"\)`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, declared)
	for _, match := range declared {
		key := attribute.Key(match[1])
		require.True(t, known[key] || strings.HasPrefix(match[1], "jsonrpc."), key)
		_, ok := semconv.Lookup(key)
		require.True(t, ok, key)
	}
}
