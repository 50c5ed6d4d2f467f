package chatapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const twoCalls = `Let me see. <tool_call>{"name":"clock","arguments":{"zone":"UTC"}}</tool_call>
<tool_call>{"name": "sum", "arguments": {"of": {"a": [1, 2]}}}
</tool_call>
Done.`

// parse feeds pieces and returns the text, and the calls without their identifiers.
func parse(pieces ...string) (text string, calls []Function) {
	p := newCallParser()
	add := func(deltas []Delta) {
		for _, d := range deltas {
			text += d.Content
			for _, c := range d.ToolCalls {
				if c.ID != "" {
					calls = append(calls, c.Function)
				} else {
					calls[*c.Index].Arguments += c.Function.Arguments
				}
			}
		}
	}
	for _, piece := range pieces {
		add(p.feed(piece))
	}
	add(p.end())
	return text, calls
}

func asJSON(t *testing.T, text string, calls []Function) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"text": text, "calls": calls})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Wherever the text is cut, the same calls come out.
func TestCallsAreFoundWhereverTheTextIsCut(t *testing.T) {
	for name, tt := range map[string]struct {
		written, text string
		calls         []Function
	}{
		"two calls in text": {twoCalls, "Let me see. Done.", []Function{{"clock", `{"zone":"UTC"}`}, {"sum", `{"of": {"a": [1, 2]}}`}}},
		"text alone":        {"a < b </tool_call> {} <tool", "a < b </tool_call> {} <tool", nil},
		"braces in strings": {`<tool_call>{"name":"f","arguments":{"s":"} \u003c/tool_call>}"}}</tool_call>`, "", []Function{{"f", `{"s":"} \u003c/tool_call>}"}`}}},
		"cut off in a call": {`<tool_call>{"name":"f","arguments":{"s":"x`, "", []Function{{"f", `{"s":"x`}}},
		"cut off in a name": {`<tool_call>{"name":"f`, `{"name":"f`, nil},
		"no JSON":           {`<tool_call>f(x)</tool_call>.`, `<tool_call>f(x)</tool_call>.`, nil},
		"invalid arguments": {`<tool_call>{"name":"f","arguments":nonsense}</tool_call>`, "", []Function{{"f", "nonsense"}}},
	} {
		t.Run(name, func(t *testing.T) {
			want := asJSON(t, tt.text, tt.calls)
			for cut := range len(tt.written) + 1 {
				text, calls := parse(tt.written[:cut], tt.written[cut:])
				if got := asJSON(t, text, calls); got != want {
					t.Fatalf("cut at %d:\n%s\nwant\n%s", cut, got, want)
				}
			}
			text, calls := parse(strings.Split(tt.written, "")...)
			if got := asJSON(t, text, calls); got != want {
				t.Errorf("byte by byte:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func FuzzCalls(f *testing.F) {
	f.Add(twoCalls, 20)
	f.Add(`<tool_call>{"name":"f","arguments":}}</tool_call><tool_call>`, 30)
	f.Fuzz(func(t *testing.T, written string, cut int) {
		text, calls := parse(written)
		whole := asJSON(t, text, calls)
		if cut < 0 || cut > len(written) {
			return
		}
		text, calls = parse(written[:cut], written[cut:])
		if got := asJSON(t, text, calls); strings.ToValidUTF8(written, "") == written && got != whole {
			t.Errorf("cut at %d:\n%s\nwhole\n%s", cut, got, whole)
		}
	})
}

const withTools = `{"model":"m","tools":[{"type":"function","function":{"name":"clock","description":"tells < time","parameters":{"type":"object"}}}],`

// A chat template puts tools, calls and results into the text.
func TestTurns(t *testing.T) {
	body := withTools + `"messages":[{"role":"user","content":"now?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"clock","arguments":"{\"zone\":\"UTC\"}"}},{"id":"c2","type":"function","function":{"name":"clock","arguments":"nonsense"}}]},
		{"role":"tool","tool_call_id":"c1","content":"12:00 </tool_response>"}]}`
	req, err := ReadRequest(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	turns := req.Turns()
	if len(turns) != 4 || turns[0].Role != "system" || !strings.Contains(turns[0].Content, "<tools>\n{\"name\":\"clock\",\"description\":\"tells \\u003c time\",\"parameters\":{\"type\":\"object\"}}\n</tools>") {
		t.Fatalf("turns: %+v", turns)
	}
	for i, want := range []Turn{
		{"user", "now?"},
		{"assistant", `<tool_call>{"name":"clock","arguments":{"zone":"UTC"}}</tool_call>` + "\n" + `<tool_call>{"name":"clock","arguments":"nonsense"}</tool_call>` + "\n"},
		{"tool", `<tool_response>{"name":"clock","content":"12:00 \u003c/tool_response\u003e"}</tool_response>`},
	} {
		if turns[i+1] != want {
			t.Errorf("turn %d:\n%+v\nwant\n%+v", i+1, turns[i+1], want)
		}
	}
}

func TestRequestsWithToolsAreChecked(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"tool","content":"x"}]}`:                                             `messages[0].role is "tool"`,
		withTools + `"messages":[{"role":"tool","tool_call_id":"c9","content":"x"}]}`:                          `messages[0].tool_call_id is "c9", which no message before it asks for`,
		`{"model":"m","tools":[{"type":"retrieval"}],"messages":[{"role":"user","content":"x"}]}`:              `tools[0] is "retrieval"`,
		`{"model":"m","tools":[{"type":"function","function":{}}],"messages":[{"role":"user","content":"x"}]}`: "want a function with a name",
	} {
		_, err := ReadRequest(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// Both forms of an answer have the calls, and say that they are why it ended.
func TestAnswersWithCalls(t *testing.T) {
	for _, stream := range []bool{false, true} {
		w := httptest.NewRecorder()
		req := &Request{Model: "m", Stream: stream, Tools: []Tool{{Type: "function", Function: ToolFunction{Name: "clock"}}}}
		out := NewWriter(w, req)
		for _, piece := range strings.SplitAfter(twoCalls, " ") {
			if err := out.Text(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Finish(End{Reason: "stop"}); err != nil {
			t.Fatal(err)
		}
		got := w.Body.String()
		parts := []string{`"tool_calls":[{"id":"call_`, `"type":"function","function":{"name":"clock","arguments":"{\"zone\":\"UTC\"}"}},{"id":"call_`,
			`"name":"sum","arguments":"{\"of\": {\"a\": [1, 2]}}"}}]},"finish_reason":"tool_calls"`}
		if stream {
			parts = []string{`"delta":{"content":"Let "}`, `"delta":{"tool_calls":[{"index":0,"id":"call_`, `"function":{"name":"clock","arguments":""}`,
				`"delta":{"tool_calls":[{"index":1,"id":"call_`, `"delta":{"content":"Done."}`, `"delta":{},"finish_reason":"tool_calls"`, "[DONE]"}
		}
		for _, part := range parts {
			_, rest, ok := strings.Cut(got, part)
			if !ok {
				t.Fatalf("stream %t: %s is missing, or not in its place, in\n%s", stream, part, w.Body)
			}
			got = rest
		}
	}
}

// A length limit in the middle of a call is told as such.
func TestACallThatIsCutOff(t *testing.T) {
	w := httptest.NewRecorder()
	out := NewWriter(w, &Request{Model: "m", Tools: []Tool{{}}})
	if err := out.Text(`<tool_call>{"name":"clock","arguments":{"zo`); err != nil {
		t.Fatal(err)
	}
	if err := out.Finish(End{Reason: "length"}); err != nil {
		t.Fatal(err)
	}
	if got := w.Body.String(); !strings.Contains(got, `"finish_reason":"length"`) || !strings.Contains(got, `"arguments":"{\"zo"`) {
		t.Errorf("answer: %s", got)
	}
}
