package genailangchain

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/tmc/langchaingo/llms"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// The names under which the clients write token counts.
var (
	inputKeys     = []string{"PromptTokens", "InputTokens", "input_tokens", "prompt_tokens"}
	outputKeys    = []string{"CompletionTokens", "OutputTokens", "output_tokens", "completion_tokens"}
	cachedKeys    = []string{"PromptCachedTokens", "CacheReadInputTokens", "CachedTokens"}
	writtenKeys   = []string{"CacheCreationInputTokens"}
	reasoningKeys = []string{"ReasoningTokens", "ThinkingTokens", "CompletionReasoningTokens"}
)

// usageOf reads what the client says of the tokens. It repeats the counts of the whole
// answer in each choice; only where it writes output_tokens alone, and several answers
// were asked for, are they those of the choice.
func usageOf(choices []*llms.ContentChoice, several bool) (u genaitrace.Usage) {
	info := infoOf(choices[0])
	u = genaitrace.Usage{
		InputTokens: info.count(inputKeys...), OutputTokens: info.count(outputKeys...),
		CacheWriteTokens: info.count(writtenKeys...), ReasoningTokens: info.count(reasoningKeys...),
	}
	if _, guessed := info["CacheHit"]; !guessed { // what Ollama's client thinks of its own cache
		u.CachedTokens = info.count(cachedKeys...)
	}
	if info.count("InputTokens") != nil && info.count("PromptTokens") == nil {
		// Anthropic counts the tokens of its cache apart.
		*u.InputTokens += known(u.CachedTokens) + known(u.CacheWriteTokens)
	}
	if several && info.count("CompletionTokens", "OutputTokens") == nil && u.OutputTokens != nil {
		for _, choice := range choices[1:] {
			*u.OutputTokens += known(infoOf(choice).count("output_tokens"))
		}
	}
	return u
}

func known(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// info is what a client adds to an answer.
type info map[string]any

func infoOf(choice *llms.ContentChoice) info {
	if choice == nil {
		return nil
	}
	if usage, ok := choice.GenerationInfo["usage"]; ok { // Mistral's, a struct
		return fields(usage)
	}
	return choice.GenerationInfo
}

// fields are the exported fields of a struct.
func fields(v any) info {
	value := reflect.Indirect(reflect.ValueOf(v))
	if value.Kind() != reflect.Struct {
		return nil
	}
	out := info{}
	for field, content := range value.Fields() {
		if field.IsExported() {
			out[field.Name] = content.Interface()
		}
	}
	return out
}

// count returns the first of the counts that is known: the clients write 0 where the
// server told none.
func (i info) count(keys ...string) *int {
	for _, key := range keys {
		value := reflect.ValueOf(i[key])
		n := 0
		switch {
		case value.CanInt():
			n = int(value.Int())
		case value.CanUint():
			n = int(value.Uint())
		case value.CanFloat(): // from JSON
			n = int(value.Float())
		}
		if n > 0 {
			return &n
		}
	}
	return nil
}

// finishReasons are those of the answers. Where one was asked for, the choices are the
// parts of it, as Anthropic's client gives them.
func finishReasons(choices []*llms.ContentChoice, several bool) (reasons []string) {
	for _, choice := range choices {
		if choice == nil || choice.StopReason == "" {
			continue
		}
		reasons = append(reasons, finishReason(choice.StopReason))
		if !several {
			break
		}
	}
	return reasons
}

// finishReason is a reason as the API spells it: Google's client has a Go name of it.
func finishReason(reason string) string {
	name, ok := strings.CutPrefix(reason, "FinishReason")
	if !ok {
		return reason
	}
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// complete reports whether the answer says why it ended.
func complete(answer *llms.ContentResponse) bool {
	return answer != nil && len(finishReasons(answer.Choices, false)) > 0
}
