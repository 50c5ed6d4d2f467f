package genaieino

import (
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// messages are the messages of Eino in the form of the conventions.
func messages(all []*schema.Message) []genaiconv.Message {
	out := make([]genaiconv.Message, 0, len(all))
	for _, msg := range all {
		if msg != nil {
			out = append(out, genaiconv.Message{Role: genaiconv.Role(msg.Role), Name: msg.Name, Parts: parts(msg)})
		}
	}
	return out
}

func parts(msg *schema.Message) (out genaiconv.Parts) {
	if msg.ReasoningContent != "" {
		out = append(out, genaiconv.ReasoningPart{Content: msg.ReasoningContent})
	}
	switch {
	case msg.Role == schema.Tool:
		out = append(out, genaiconv.ToolCallResponsePart{ID: msg.ToolCallID, Response: msg.Content})
	case msg.Content != "":
		out = append(out, genaiconv.TextPart{Content: msg.Content})
	}
	for _, p := range msg.UserInputMultiContent {
		out = appendPart(out, string(p.Type), p.Text, given(p))
	}
	for _, p := range msg.AssistantGenMultiContent {
		out = appendPart(out, string(p.Type), p.Text, generated(p))
	}
	for _, p := range msg.MultiContent {
		out = appendPart(out, string(p.Type), p.Text, &schema.MessagePartCommon{})
	}
	for _, call := range msg.ToolCalls {
		out = append(out, genaiconv.ToolCallPart{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return out
}

// given is what lies behind a part of a user's message.
func given(p schema.MessageInputPart) *schema.MessagePartCommon {
	switch {
	case p.Image != nil:
		return &p.Image.MessagePartCommon
	case p.Audio != nil:
		return &p.Audio.MessagePartCommon
	case p.Video != nil:
		return &p.Video.MessagePartCommon
	case p.File != nil:
		return &p.File.MessagePartCommon
	}
	return nil
}

// generated is what lies behind a part of an answer.
func generated(p schema.MessageOutputPart) *schema.MessagePartCommon {
	switch {
	case p.Image != nil:
		return &p.Image.MessagePartCommon
	case p.Audio != nil:
		return &p.Audio.MessagePartCommon
	case p.Video != nil:
		return &p.Video.MessagePartCommon
	}
	return nil
}

var modalities = map[string]genaiconv.Modality{
	string(schema.ChatMessagePartTypeImageURL): genaiconv.ModalityImage,
	string(schema.ChatMessagePartTypeAudioURL): genaiconv.ModalityAudio,
	string(schema.ChatMessagePartTypeVideoURL): genaiconv.ModalityVideo,
	string(schema.ChatMessagePartTypeFileURL):  genaiconv.ModalityDocument,
}

// appendPart appends a part of several. Data inside the message is told by its kind
// alone: it is long, and nothing could redact it.
func appendPart(out genaiconv.Parts, kind, text string, data *schema.MessagePartCommon) genaiconv.Parts {
	switch {
	case text != "":
		return append(out, genaiconv.TextPart{Content: text})
	case data == nil:
		return out
	case data.URL != nil && !strings.HasPrefix(*data.URL, "data:"):
		return append(out, genaiconv.URIPart{Modality: modalities[kind], MIMEType: data.MIMEType, URI: *data.URL})
	}
	fields := map[string]any{"modality": string(modalities[kind])}
	if data.MIMEType != "" {
		fields["mime_type"] = data.MIMEType
	}
	return append(out, genaiconv.GenericPart{GenericType: "blob", Fields: fields})
}

// definitions are the tools that a model may call. A schema that cannot be made is left
// out.
func definitions(tools []*schema.ToolInfo) []genaiconv.ToolDefinition {
	if len(tools) == 0 {
		return nil
	}
	out := make([]genaiconv.ToolDefinition, 0, len(tools))
	for _, tool := range tools {
		if tool == nil {
			continue
		}
		one := genaiconv.ToolDefinition{Name: tool.Name, Description: tool.Desc}
		if form, err := tool.ToJSONSchema(); err == nil && form != nil {
			one.Parameters = form
		}
		out = append(out, one)
	}
	return out
}
