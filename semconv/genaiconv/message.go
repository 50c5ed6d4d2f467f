package genaiconv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// Role says who a message is from. The set is open.
type Role string

// Known roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Modality says what the data of a part is. The set is open.
type Modality string

// Known modalities.
const (
	ModalityImage    Modality = "image"
	ModalityVideo    Modality = "video"
	ModalityAudio    Modality = "audio"
	ModalityDocument Modality = "document"
)

// FinishReason says why generation ended; it is a value of
// gen_ai.response.finish_reasons. The set is open.
type FinishReason string

// Known reasons.
const (
	FinishReasonStop          FinishReason = "stop"
	FinishReasonLength        FinishReason = "length"
	FinishReasonContentFilter FinishReason = "content_filter"
	FinishReasonToolCall      FinishReason = "tool_call"
	FinishReasonError         FinishReason = "error"
)

// Message is an element of gen_ai.input.messages and gen_ai.output.messages.
// It is content: write it only where the content policy says so.
type Message struct {
	Role  Role   `json:"role"`
	Parts Parts  `json:"parts"`
	Name  string `json:"name,omitempty"`

	// FinishReason is read from, and written for, those who still expect it
	// on each message of the output.
	//
	// Deprecated: use [ResponseFinishReasons].
	FinishReason FinishReason `json:"finish_reason,omitempty"`
}

// Parts are the parts of a message, or the value of gen_ai.system_instructions.
type Parts []Part

// Part is one part of a message: one of the types in this package whose name
// ends in Part.
type Part interface {
	json.Marshaler
	partType() string
}

// TextPart is text.
type TextPart struct {
	Content string `json:"content"`
}

// ReasoningPart is what the model thought, where it tells.
type ReasoningPart struct {
	Content string `json:"content"`
}

// ToolCallPart asks the client to call a tool.
type ToolCallPart struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments any    `json:"arguments,omitempty"`
}

// ToolCallResponsePart is what the tool gave back.
type ToolCallResponsePart struct {
	ID       string `json:"id,omitempty"`
	Response any    `json:"response"`
}

// ServerToolCallPart is a call of a tool that the provider runs itself. The
// form of Call is the provider's; by convention it has a field type.
type ServerToolCallPart struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Call any    `json:"server_tool_call"`
}

// ServerToolCallResponsePart is what a tool of the provider gave back.
type ServerToolCallResponsePart struct {
	ID       string `json:"id,omitempty"`
	Response any    `json:"server_tool_call_response"`
}

// BlobPart is data inside the message; in JSON it is base64.
type BlobPart struct {
	Modality Modality `json:"modality"`
	MIMEType string   `json:"mime_type,omitempty"`
	Content  []byte   `json:"content"`
}

// FilePart is a file that was uploaded before.
type FilePart struct {
	Modality Modality `json:"modality"`
	MIMEType string   `json:"mime_type,omitempty"`
	FileID   string   `json:"file_id"`
}

// URIPart is data that lies elsewhere.
type URIPart struct {
	Modality Modality `json:"modality"`
	MIMEType string   `json:"mime_type,omitempty"`
	URI      string   `json:"uri"`
}

// CompactionPart stands for earlier messages that were shortened.
type CompactionPart struct {
	ID      string `json:"id,omitempty"`
	Content string `json:"content,omitempty"`
}

// GenericPart is a part of any other kind. A part whose type is unknown is read
// as one, with its type in GenericType: that is how the convention now writes
// it.
type GenericPart struct {
	GenericType string
	Fields      map[string]any // everything but type and generic_type
}

func (TextPart) partType() string                   { return "text" }
func (ReasoningPart) partType() string              { return "reasoning" }
func (ToolCallPart) partType() string               { return "tool_call" }
func (ToolCallResponsePart) partType() string       { return "tool_call_response" }
func (ServerToolCallPart) partType() string         { return "server_tool_call" }
func (ServerToolCallResponsePart) partType() string { return "server_tool_call_response" }
func (BlobPart) partType() string                   { return "blob" }
func (FilePart) partType() string                   { return "file" }
func (URIPart) partType() string                    { return "uri" }
func (CompactionPart) partType() string             { return "compaction" }
func (GenericPart) partType() string                { return "generic" }

// MarshalJSON writes the part with its type.
func (p TextPart) MarshalJSON() ([]byte, error) {
	type plain TextPart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p ReasoningPart) MarshalJSON() ([]byte, error) {
	type plain ReasoningPart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p ToolCallPart) MarshalJSON() ([]byte, error) {
	type plain ToolCallPart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p ToolCallResponsePart) MarshalJSON() ([]byte, error) {
	type plain ToolCallResponsePart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p ServerToolCallPart) MarshalJSON() ([]byte, error) {
	type plain ServerToolCallPart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p ServerToolCallResponsePart) MarshalJSON() ([]byte, error) {
	type plain ServerToolCallResponsePart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p BlobPart) MarshalJSON() ([]byte, error) {
	type plain BlobPart
	if p.Content == nil {
		p.Content = []byte{} // the convention wants a string
	}
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p FilePart) MarshalJSON() ([]byte, error) {
	type plain FilePart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p URIPart) MarshalJSON() ([]byte, error) {
	type plain URIPart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type.
func (p CompactionPart) MarshalJSON() ([]byte, error) {
	type plain CompactionPart
	return marshalPart(p, plain(p))
}

// MarshalJSON writes the part with its type. Fields cannot replace the type.
func (p GenericPart) MarshalJSON() ([]byte, error) {
	fields := maps.Clone(p.Fields)
	delete(fields, "type")
	delete(fields, "generic_type")
	if p.GenericType != "" {
		if fields == nil {
			fields = map[string]any{}
		}
		fields["generic_type"] = p.GenericType
	}
	if fields == nil {
		return marshalPart(p, struct{}{})
	}
	return marshalPart(p, fields)
}

// marshalPart puts the type of a part in front of its fields.
func marshalPart(p Part, fields any) ([]byte, error) {
	text, err := marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("genaiconv: part of type %s: %w", p.partType(), err)
	}
	front := `{"type":"` + p.partType() + `"`
	if len(text) > len("{}") {
		front += ","
	}
	return append([]byte(front), text[1:]...), nil
}

// UnmarshalJSON reads parts by their type.
func (p *Parts) UnmarshalJSON(text []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	if raw == nil {
		*p = nil
		return nil
	}
	parts := make(Parts, len(raw))
	for i, text := range raw {
		var err error
		if parts[i], err = unmarshalPart(text); err != nil {
			return fmt.Errorf("genaiconv: part %d: %w", i, err)
		}
	}
	*p = parts
	return nil
}

// MarshalJSON writes a list, an empty one for nil: the convention requires it.
func (p Parts) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("[]"), nil
	}
	return marshal([]Part(p))
}

func unmarshalPart(text []byte) (Part, error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	switch kind.Type {
	case "text":
		return readPart[TextPart](text)
	case "reasoning":
		return readPart[ReasoningPart](text)
	case "tool_call":
		return readPart[ToolCallPart](text)
	case "tool_call_response":
		return readPart[ToolCallResponsePart](text)
	case "server_tool_call":
		return readPart[ServerToolCallPart](text)
	case "server_tool_call_response":
		return readPart[ServerToolCallResponsePart](text)
	case "blob":
		return readPart[BlobPart](text)
	case "file":
		return readPart[FilePart](text)
	case "uri":
		return readPart[URIPart](text)
	case "compaction":
		return readPart[CompactionPart](text)
	}
	fields, err := readFields(text)
	if err != nil {
		return nil, err
	}
	generic := GenericPart{GenericType: kind.Type}
	if kind.Type == "generic" {
		generic.GenericType, _ = fields["generic_type"].(string)
	}
	delete(fields, "type")
	delete(fields, "generic_type")
	if len(fields) > 0 {
		generic.Fields = fields
	}
	return generic, nil
}

func readPart[P Part](text []byte) (Part, error) {
	var p P
	err := json.Unmarshal(text, &p)
	return p, err
}

func readFields(text []byte) (map[string]any, error) {
	var fields map[string]any
	err := json.Unmarshal(text, &fields)
	return fields, err
}

// ToolDefinition is an element of gen_ai.tool.definitions.
type ToolDefinition struct {
	Type        string `json:"type"` // function if it is empty
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  any    `json:"parameters,omitempty"` // a JSON schema
}

// MarshalJSON writes the definition with its type.
func (d ToolDefinition) MarshalJSON() ([]byte, error) {
	type plain ToolDefinition
	if d.Type == "" {
		d.Type = "function"
	}
	return marshal(plain(d))
}

// RetrievalDocument is an element of gen_ai.retrieval.documents. What is not
// known is left out.
type RetrievalDocument struct {
	ID    string   `json:"id,omitempty"`
	Score *float64 `json:"score,omitempty"`
}

// marshal is json.Marshal without the escapes that only HTML needs: they would
// cost six bytes for one in every prompt that holds code.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
