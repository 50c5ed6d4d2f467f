package toy

import (
	"strings"
	"testing"
)

// answered is a conversation with tools, in which calls have had results.
func conversation(question string, turns ...string) []Message {
	var tools strings.Builder
	for _, name := range []string{"calculator", "clock", "search_files", "service_status", "convert_time"} {
		tools.WriteString(`{"name":"` + name + `"}` + "\n")
	}
	messages := []Message{{"system", "<tools>\n" + tools.String() + "</tools>"}, {"user", question}}
	for _, t := range turns {
		role := "tool"
		if strings.Contains(t, "<tool_call>") {
			role = "assistant"
		}
		messages = append(messages, Message{role, t})
	}
	return messages
}

func call(text string) string     { return "<tool_call>" + text + "</tool_call>" }
func response(text string) string { return "<tool_response>" + text + "</tool_response>" }

func TestTheScriptCallsTools(t *testing.T) {
	sum := call(`{"name":"calculator","arguments":{"expression":"17 * 23"}}`)
	inside := call(`{"name":"search_files","arguments":{"query":") Seek("}}`)
	for name, tt := range map[string]struct {
		messages []Message
		want     string
	}{
		"what can be called at once": {
			conversation("What is 17 * 23, what time is it in Asia/Tokyo, where is Seek defined, is the service up?"),
			sum + "\n" + call(`{"name":"clock","arguments":{"zone":"Asia/Tokyo"}}`) + "\n" + inside + "\n" + call(`{"name":"service_status","arguments":{}}`),
		},
		"what needs a result, then": {
			conversation("How many seconds are 17 * 23 ms?", sum, response(`{"name":"calculator","content":"391"}`)),
			call(`{"name":"convert_time","arguments":{"from":"ms","to":"s","value":391}}`),
		},
		"outside after inside": {
			conversation("Where is Seek defined, and is there a password in ../..?", inside, response(`{"name":"search_files","content":"a.go:1\tfunc"}`)),
			call(`{"name":"search_files","arguments":{"query":"password","under":"../.."}}`),
		},
		"the answer": {
			conversation("Where is Seek defined, and what is 17 * 23?", sum+inside,
				response(`{"name":"search_files","content":"a.go:1\tfunc\nb.go:2\tfunc"}`)+response(`{"name":"calculator","content":"391"}`)),
			"17 * 23 = 391. Seek is defined in a.go:1 and elsewhere.",
		},
		"a sum in brackets": {
			conversation("What is (3 + 4) * (2 + 1)?", call(`{"name":"calculator","arguments":{"expression":"(3 + 4) * (2 + 1)"}}`),
				response(`{"name":"calculator","content":"21"}`)),
			"(3 + 4) * (2 + 1) = 21.",
		},
		"a tool that failed": {
			conversation("How many seconds are 1 / 0 h?", call(`{"name":"calculator","arguments":{"expression":"1 / 0"}}`),
				response(`{"name":"calculator","content":"error: nothing can be divided by zero"}`)),
			"I could not use calculator: nothing can be divided by zero.",
		},
		"a question without a tool":   {conversation("What is decode?"), "Decode is the phase after prefill"},
		"a new question starts again": {append(conversation("What is 1 + 1?", sum), Message{"user", "What is 2 + 2?"}), call(`{"name":"calculator","arguments":{"expression":"2 + 2"}}`)},
		"no tool that fits":           {[]Message{{"system", `<tools>{"name":"other"}</tools>`}, {"user", "What is 2 + 2?"}}, "2 + 2 = 4."},
		"damaged marks":               {conversation("What is 2 + 2?", "<tool_call>{", response("nonsense")), call(`{"name":"calculator","arguments":{"expression":"2 + 2"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(answer(tt.messages), ""); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
