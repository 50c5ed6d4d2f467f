package toy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
)

// A dialogue is what a conversation with tools has come to since the last question.
type dialogue struct {
	question string
	offered  map[string]bool // names of tools
	uses     []use
}

// A use is a call that was made, and its result.
type use struct {
	chatapi.WrittenCall
	result string
}

// dialogueIn reads a conversation; false where it offers no tools.
func dialogueIn(messages []Message) (d dialogue, offers bool) {
	d.offered = make(map[string]bool)
	for _, m := range messages {
		switch m.Role {
		case "system":
			for _, list := range between(m.Content, chatapi.ToolsStart, chatapi.ToolsEnd) {
				for line := range strings.Lines(list) {
					var tool chatapi.ToolFunction
					if json.Unmarshal([]byte(line), &tool) == nil && tool.Name != "" {
						d.offered[tool.Name] = true
					}
				}
			}
		case "user":
			d.question, d.uses = m.Content, nil
		case "assistant":
			for _, text := range between(m.Content, chatapi.CallStart, chatapi.CallEnd) {
				var u use
				if json.Unmarshal([]byte(text), &u.WrittenCall) == nil {
					d.uses = append(d.uses, u)
				}
			}
		case "tool":
			d.answered(m.Content)
		}
	}
	return d, len(d.offered) > 0
}

// answered gives a result to the first call of its tool that has none.
func (d *dialogue) answered(content string) {
	for _, text := range between(content, chatapi.ResponseStart, chatapi.ResponseEnd) {
		var r chatapi.WrittenResponse
		if json.Unmarshal([]byte(text), &r) != nil {
			continue
		}
		for i := range d.uses {
			if u := &d.uses[i]; u.Name == r.Name && u.result == "" {
				u.result = r.Content
				break
			}
		}
	}
}

// between returns what stands between pairs of marks.
func between(text, start, end string) (all []string) {
	for {
		_, rest, ok := strings.Cut(text, start)
		if !ok {
			return all
		}
		inner, after, ok := strings.Cut(rest, end)
		if !ok {
			return all
		}
		all, text = append(all, inner), after
	}
}

// next is what the script says: the calls that the question needs and that can be made
// now, all at once, or else the answer. It is empty where the question needs no tool.
func (d *dialogue) next() string {
	var calls []string
	for _, step := range script {
		if d.offered[step.tool] && d.made(step) < 0 {
			if arguments := step.arguments(d); arguments != nil {
				if call, err := chatapi.Call(step.tool, arguments); err == nil {
					calls = append(calls, call)
				}
			}
		}
	}
	if len(calls) > 0 {
		return strings.Join(calls, "\n")
	}
	var said []string
	for _, step := range script {
		if i := d.made(step); i >= 0 {
			said = append(said, step.sentence(d, d.uses[i].result))
		}
	}
	return strings.Join(said, " ")
}

// made is the index of the call that a step has led to, or -1.
func (d *dialogue) made(s step) int {
	for i, u := range d.uses {
		if u.Name != s.tool {
			continue
		}
		var arguments map[string]any
		if json.Unmarshal(u.Arguments, &arguments) == nil && (s.only == nil || s.only(arguments)) {
			return i
		}
	}
	return -1
}

// result is what a tool gave back, if it gave something.
func (d *dialogue) result(tool string) (string, bool) {
	for _, u := range d.uses {
		if u.Name == tool && u.result != "" && !strings.HasPrefix(u.result, "error: ") {
			return u.result, true
		}
	}
	return "", false
}

// A step of the script is one thing that a question can ask for.
type step struct {
	tool string
	only func(arguments map[string]any) bool // tells steps of one tool apart
	// arguments of the call; nil where the question does not ask for it, or not yet.
	arguments func(d *dialogue) map[string]any
	// done says the result.
	done string
}

// sentence says a result, or that there is none.
func (s step) sentence(d *dialogue, result string) string {
	if why, failed := strings.CutPrefix(result, "error: "); failed {
		return fmt.Sprintf("I could not use %s: %s.", s.tool, strings.TrimSuffix(why, "."))
	}
	first, _, more := strings.Cut(strings.TrimSpace(result), "\n")
	first, _, _ = strings.Cut(first, "\t") // of a place in a file, without its text
	if more {
		first += " and elsewhere"
	}
	return strings.NewReplacer("{result}", first, "{question}", d.asked(s)).Replace(s.done)
}

// asked is what a step was called with, for its sentence.
func (d *dialogue) asked(s step) string {
	for _, key := range []string{"expression", "to", "zone", "query"} {
		if v, ok := s.arguments(d)[key].(string); ok {
			return strings.TrimSuffix(strings.TrimPrefix(v, ") "), "(") // those of a search for a function
		}
	}
	return ""
}

var (
	arithmetic = regexp.MustCompile(`[(\d][\d.\s()]*(?:[-+*/][-+\d.\s()]*)*[-+*/][\s(]*[\d.]+\)*`)
	timeOf     = regexp.MustCompile(`(?i)\btime (?:is it )?in (\w+(?:/\w+)?)`)
	defined    = regexp.MustCompile(`(?i)\bwhere (?:is|are) (\w+)`)
	howMany    = regexp.MustCompile(`(?i)\bhow many (milliseconds|seconds|minutes|hours)\b[^?]*?[\d)] ?(ms|s|min|h)\b`)
	outside    = regexp.MustCompile(`(?i)\ban? (\w+) in ([./\w-]*\.\.[./\w-]*)`)
)

var units = map[string]string{"milliseconds": "ms", "seconds": "s", "minutes": "min", "hours": "h"}

// script is what the engine does with tools, in the order in which it tells the results.
var script = []step{
	{
		tool: "calculator",
		arguments: func(d *dialogue) map[string]any {
			if sum := strings.TrimSpace(arithmetic.FindString(d.question)); sum != "" {
				return map[string]any{"expression": sum}
			}
			return nil
		},
		done: "{question} = {result}.",
	},
	{
		tool: "convert_time", // once the sum is known
		arguments: func(d *dialogue) map[string]any {
			sum, known := d.result("calculator")
			unit := howMany.FindStringSubmatch(d.question)
			if !known || unit == nil || json.Unmarshal([]byte(sum), new(float64)) != nil {
				return nil
			}
			return map[string]any{"value": json.Number(sum), "from": unit[2], "to": units[strings.ToLower(unit[1])]}
		},
		done: "That is {result} {question}.",
	},
	{
		tool: "clock",
		arguments: func(d *dialogue) map[string]any {
			if zone := timeOf.FindStringSubmatch(d.question); zone != nil {
				return map[string]any{"zone": zone[1]}
			}
			return nil
		},
		done: "In {question} it is {result}.",
	},
	{
		tool: "search_files",
		only: func(arguments map[string]any) bool { return arguments["under"] == nil },
		arguments: func(d *dialogue) map[string]any {
			if name := defined.FindStringSubmatch(d.question); name != nil {
				return map[string]any{"query": ") " + name[1] + "("}
			}
			return nil
		},
		done: "{question} is defined in {result}.",
	},
	{
		tool: "service_status",
		arguments: func(d *dialogue) map[string]any {
			if words := normalize(d.question); strings.Contains(words, " service ") {
				return map[string]any{}
			}
			return nil
		},
		done: "The service says: {result}.",
	},
	{
		tool: "search_files", // outside, once the search inside has a result
		only: func(arguments map[string]any) bool { return arguments["under"] != nil },
		arguments: func(d *dialogue) map[string]any {
			what := outside.FindStringSubmatch(d.question)
			if _, searched := d.result("search_files"); what == nil || !searched && defined.MatchString(d.question) {
				return nil
			}
			return map[string]any{"query": what[1], "under": what[2]}
		},
		done: "“{question}” stands in {result}.",
	},
}
