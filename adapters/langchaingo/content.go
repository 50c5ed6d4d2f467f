package genailangchain

import (
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// input is what the model is given, for the content policy to judge.
func input(messages []llms.MessageContent, s settings) genaitrace.Input {
	in := genaitrace.Input{Messages: make([]genaiconv.Message, 0, len(messages))}
	for _, m := range messages {
		parts := make(genaiconv.Parts, 0, len(m.Parts))
		for _, p := range m.Parts {
			if part := partOf(p); part != nil {
				parts = append(parts, part)
			}
		}
		in.Messages = append(in.Messages, genaiconv.Message{Role: roleOf(m.Role), Parts: parts})
	}
	for _, t := range s.options.Tools {
		if t.Function != nil {
			in.Tools = append(in.Tools, definition(t.Type, *t.Function))
		}
	}
	for _, f := range s.options.Functions {
		in.Tools = append(in.Tools, definition("", f))
	}
	return in
}

func definition(kind string, f llms.FunctionDefinition) genaiconv.ToolDefinition {
	return genaiconv.ToolDefinition{Type: kind, Name: f.Name, Description: f.Description, Parameters: f.Parameters}
}

func roleOf(role llms.ChatMessageType) genaiconv.Role {
	switch role {
	case llms.ChatMessageTypeAI:
		return genaiconv.RoleAssistant
	case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
		return genaiconv.RoleUser
	case llms.ChatMessageTypeSystem:
		return genaiconv.RoleSystem
	case llms.ChatMessageTypeFunction, llms.ChatMessageTypeTool:
		return genaiconv.RoleTool
	}
	return genaiconv.Role(role)
}

// partOf is nil for a part that nobody knows.
func partOf(part llms.ContentPart) genaiconv.Part {
	switch p := part.(type) {
	case llms.CachedContent:
		return partOf(p.ContentPart)
	case llms.TextContent:
		return genaiconv.TextPart{Content: p.Text}
	case llms.ImageURLContent:
		return genaiconv.URIPart{Modality: genaiconv.ModalityImage, URI: p.URL}
	case llms.BinaryContent:
		kind, _, _ := strings.Cut(p.MIMEType, "/")
		return genaiconv.BlobPart{Modality: genaiconv.Modality(kind), MIMEType: p.MIMEType, Content: p.Data}
	case llms.ToolCall:
		return toolCall(p)
	case llms.ToolCallResponse:
		return genaiconv.ToolCallResponsePart{ID: p.ToolCallID, Response: p.Content}
	}
	return nil
}

func toolCall(c llms.ToolCall) genaiconv.Part {
	part := genaiconv.ToolCallPart{ID: c.ID}
	if c.FunctionCall != nil {
		part.Name, part.Arguments = c.FunctionCall.Name, c.FunctionCall.Arguments
	}
	return part
}

// output is one message for each answer; see [finishReasons].
func output(choices []*llms.ContentChoice, several bool) []genaiconv.Message {
	var messages []genaiconv.Message
	for _, choice := range choices {
		if choice == nil {
			continue
		}
		parts := answerParts(choice)
		if several || len(messages) == 0 {
			messages = append(messages, genaiconv.Message{Role: genaiconv.RoleAssistant, Parts: parts})
			continue
		}
		messages[0].Parts = append(messages[0].Parts, parts...)
	}
	return messages
}

func answerParts(choice *llms.ContentChoice) (parts genaiconv.Parts) {
	reasoning := choice.ReasoningContent
	if reasoning == "" {
		reasoning, _ = choice.GenerationInfo["ThinkingContent"].(string)
	}
	if reasoning != "" {
		parts = append(parts, genaiconv.ReasoningPart{Content: reasoning})
	}
	if choice.Content != "" {
		parts = append(parts, genaiconv.TextPart{Content: choice.Content})
	}
	for _, call := range choice.ToolCalls {
		parts = append(parts, toolCall(call))
	}
	if len(choice.ToolCalls) == 0 && choice.FuncCall != nil {
		parts = append(parts, toolCall(llms.ToolCall{FunctionCall: choice.FuncCall}))
	}
	return parts
}
