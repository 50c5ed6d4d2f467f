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

func deprecation(text string) string {
	if text == "" {
		return ""
	}
	return "Deprecated: " + sentence(text)
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
	if a.Sampling {
		facts = append(facts, "Samplers read it: give it when the span starts")
	}
	return strings.Join(facts, ". ") + "."
}

// metricFacts is the short list under an instrument.
func metricFacts(m Metric) string {
	facts := []string{"Unit: " + m.Unit}
	if m.Stability != "" {
		facts = append(facts, "Stability: "+m.Stability)
	}
	if len(m.Attributes) > 0 {
		facts = append(facts, "May carry: "+strings.Join(m.Attributes, ", "))
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
