package chatapi

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The shapes of tools.
type (
	// Tool is a function that the model may ask for.
	Tool struct {
		Type     string       `json:"type"`
		Function ToolFunction `json:"function"`
	}

	// ToolFunction says what the model is told of it; Parameters is a JSON schema.
	ToolFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}

	// ToolCall is what the model asks for, or in a stream a piece of it: its first piece
	// has the name, later ones have more of the arguments.
	ToolCall struct {
		Index    *int     `json:"index,omitempty"` // in a stream
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function Function `json:"function"`
	}

	// Function is the name of a tool, and its arguments, which are JSON as the model
	// wrote it: possibly none.
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
)

// A Turn is a message as the model reads it: text alone.
type Turn struct{ Role, Content string }

// How models write of tools, in the form of Hermes and Qwen. What stands between the
// marks is JSON, whose strings have < escaped, so that no argument can hold a mark.
const (
	ToolsStart    = "<tools>"
	ToolsEnd      = "</tools>"
	CallStart     = "<tool_call>"
	CallEnd       = "</tool_call>"
	ResponseStart = "<tool_response>"
	ResponseEnd   = "</tool_response>"
)

// A WrittenCall is what stands between CallStart and CallEnd.
type WrittenCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A WrittenResponse is what stands between ResponseStart and ResponseEnd.
type WrittenResponse struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Turns is the conversation as a chat template renders it: the tools in a system
// message of their own, calls and results as text.
func (r *Request) Turns() []Turn {
	turns := make([]Turn, 0, len(r.Messages)+1)
	if len(r.Tools) > 0 {
		var list strings.Builder
		list.WriteString("You may call functions. Write each call as " + CallStart + `{"name":…,"arguments":{…}}` + CallEnd + ".\n" + ToolsStart + "\n")
		for _, t := range r.Tools {
			list.WriteString(written(t.Function) + "\n")
		}
		list.WriteString(ToolsEnd)
		turns = append(turns, Turn{"system", list.String()})
	}
	names := make(map[string]string) // of calls, by their identifier
	for _, m := range r.Messages {
		content := string(m.Content)
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
			arguments := json.RawMessage(c.Function.Arguments)
			if !json.Valid(arguments) { // the model reads what it wrote
				arguments = json.RawMessage(written(c.Function.Arguments))
			}
			content += CallStart + written(WrittenCall{c.Function.Name, arguments}) + CallEnd + "\n"
		}
		if m.Role == "tool" {
			content = ResponseStart + written(WrittenResponse{names[m.ToolCallID], content}) + ResponseEnd
		}
		turns = append(turns, Turn{m.Role, content})
	}
	return turns
}

func written(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "{}" // it was JSON when it came
	}
	return string(data)
}

// checkTools says what is wrong with the tools of a request and the answers to them.
func (r *Request) checkTools() error {
	for i, t := range r.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return badRequest("tools[%d] is %q with the name %q, want a function with a name", i, t.Type, t.Function.Name)
		}
	}
	asked := make(map[string]bool)
	for i, m := range r.Messages {
		for _, c := range m.ToolCalls {
			asked[c.ID] = true
		}
		if m.Role == "tool" && !asked[m.ToolCallID] {
			return badRequest("messages[%d].tool_call_id is %q, which no message before it asks for", i, m.ToolCallID)
		}
	}
	return nil
}

// A callParser takes the calls out of the text that a model writes, as it comes.
type callParser struct {
	held  string // not decided yet
	in    func(*callParser) (Delta, bool)
	calls int
	after bool // right after a call, where blanks mean nothing
}

func newCallParser() *callParser { return &callParser{in: (*callParser).text} }

// feed returns what a further piece of text makes certain.
func (p *callParser) feed(piece string) (deltas []Delta) {
	p.held += piece
	for more := true; more; {
		var d Delta
		if d, more = p.in(p); d.Content != "" || len(d.ToolCalls) > 0 {
			deltas = append(deltas, d)
		}
	}
	return deltas
}

// end returns what is left at the end of the text: what was no call is text.
func (p *callParser) end() []Delta {
	rest := p.held
	p.held = ""
	switch {
	case rest == "":
		return nil
	case p.calls > 0 && p.after && strings.TrimSpace(rest) == "":
		return nil
	}
	return []Delta{{Content: rest}}
}

// text passes text on until a call begins.
func (p *callParser) text() (d Delta, more bool) {
	if p.after {
		p.held = strings.TrimLeft(p.held, " \n\r\t")
		p.after = p.held == ""
	}
	before, rest, begins := strings.Cut(p.held, CallStart)
	if begins {
		p.held, p.in = rest, (*callParser).head
		return Delta{Content: before}, true
	}
	certain := len(p.held) - overlap(p.held, CallStart)
	d.Content, p.held = p.held[:certain], p.held[certain:]
	return d, false
}

var callHead = regexp.MustCompile(`^\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*\S`)

// head waits for the name of a call.
func (p *callParser) head() (d Delta, more bool) {
	m := callHead.FindStringSubmatchIndex(p.held)
	if m == nil {
		if malformed, rest, ends := strings.Cut(p.held, CallEnd); ends {
			p.held, p.in = rest, (*callParser).text
			return Delta{Content: CallStart + malformed + CallEnd}, true
		}
		return Delta{}, false
	}
	name := p.held[m[2]:m[3]]
	p.held, p.in = p.held[m[1]-1:], (*callParser).arguments
	p.calls++
	d = p.piece("")
	call := &d.ToolCalls[0]
	call.ID, call.Type, call.Function.Name = "call_"+rand.Text()[:16], "function", name
	return d, true
}

// arguments passes the arguments on, but for the brace that closes the call.
func (p *callParser) arguments() (d Delta, more bool) {
	arguments, rest, ends := strings.Cut(p.held, CallEnd)
	if ends {
		arguments = strings.TrimSuffix(strings.TrimRight(arguments, " \n\r\t"), "}")
		p.held, p.in, p.after = rest, (*callParser).text, true
		if arguments == "" {
			return Delta{}, true
		}
		return p.piece(arguments), true
	}
	certain := len(p.held) - overlap(p.held, CallEnd)
	certain = len(strings.TrimSuffix(strings.TrimRight(p.held[:certain], " \n\r\t"), "}"))
	if certain == 0 {
		return Delta{}, false
	}
	d, p.held = p.piece(p.held[:certain]), p.held[certain:]
	return d, false
}

// piece is more of the arguments of the last call.
func (p *callParser) piece(arguments string) Delta {
	return Delta{ToolCalls: []ToolCall{{Index: new(p.calls - 1), Function: Function{Arguments: arguments}}}}
}

// overlap is how many bytes at the end of s begin mark.
func overlap(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}

// Call is a call as models write it.
func Call(name string, arguments any) (string, error) {
	data, err := json.Marshal(arguments)
	if err != nil {
		return "", fmt.Errorf("arguments of %s: %w", name, err)
	}
	return CallStart + written(WrittenCall{name, data}) + CallEnd, nil
}
