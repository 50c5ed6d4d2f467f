package main

import (
	"fmt"
	"strings"
)

// commentWidth is the column where generated comments break.
const commentWidth = 77

// comment writes text as a Go comment; an empty line separates paragraphs.
func comment(text string) string {
	var lines []string
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			lines = append(lines, "//")
		}
		line := "//"
		for _, word := range strings.Fields(paragraph) {
			if len([]rune(line))+1+len([]rune(word)) > commentWidth && line != "//" {
				lines = append(lines, line)
				line = "//"
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// paragraphs joins the texts that are not empty.
func paragraphs(texts ...string) string {
	var some []string
	for _, text := range texts {
		if text != "" {
			some = append(some, text)
		}
	}
	return strings.Join(some, "\n\n")
}

func sentence(text string) string {
	return strings.TrimSuffix(strings.TrimSpace(text), ".") + "."
}

func deprecation(text, replacement string) string {
	if text == "" {
		return ""
	}
	if replacement != "" {
		text += "; use " + replacement
	}
	return "Deprecated: " + sentence(text)
}

// note is an explanation that a reader of the code needs as well.
func note(text string) string {
	if text == "" {
		return ""
	}
	return sentence(capital(text))
}

// capital begins a text with a capital letter, unless it begins with a name.
func capital(text string) string {
	if first, _, _ := strings.Cut(text, " "); strings.ContainsAny(first, "._") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// unseen says what of an entry is an assumption.
func unseen(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Not seen in the release, and taken from the text before it: %s.", strings.Join(parts, ", "))
}

// in says the unit of a number where that is more than a count or a ratio.
func in(unit string) string {
	if unit == "" || unit == "1" || strings.HasPrefix(unit, "{") {
		return ""
	}
	return ", in " + unit
}

// attributeFacts is the short list under a key.
func attributeFacts(a Attribute) string {
	facts := []string{"Type: " + a.Type}
	if a.Unit != "" {
		facts = append(facts, "Unit: "+a.Unit)
	}
	if len(a.Examples) > 0 {
		facts = append(facts, "Example: "+examples(a.Examples))
	}
	if a.Official != "" {
		facts = append(facts, "Official twin: "+a.Official)
	}
	if a.Stability != "" {
		facts = append(facts, "Stability: "+a.Stability)
	}
	if a.Content {
		facts = append(facts, "May hold text of a user: off unless asked for")
	}
	if a.Sampling {
		facts = append(facts, "Samplers read it: give it when the span starts")
	}
	return strings.Join(facts, ". ") + "."
}

// levelTitles are the levels as a heading of a list of keys.
var levelTitles = map[string]string{
	"required":    "Required",
	"conditional": "Under a condition",
	"recommended": "Recommended",
	"opt_in":      "On request",
}

// metricFacts is the short list under an instrument.
func metricFacts(m Metric) string {
	facts := []string{"Unit: " + m.Unit}
	if m.Stability != "" {
		facts = append(facts, "Stability: "+m.Stability)
	}
	if m.Streaming {
		facts = append(facts, "For streamed responses only")
	}
	for _, level := range levels {
		var keys []string
		for _, r := range m.Attributes {
			if r.Level == level {
				keys = append(keys, r.Key)
			}
		}
		if len(keys) > 0 {
			facts = append(facts, levelTitles[level]+": "+strings.Join(keys, ", "))
		}
	}
	return strings.Join(facts, ". ") + "."
}

func examples(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = literal(v)
	}
	return strings.Join(texts, ", ")
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		return "[" + examples(v) + "]"
	default:
		return fmt.Sprint(v)
	}
}
