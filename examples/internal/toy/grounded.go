package toy

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// A source is a text that the conversation gives to answer from.
type source struct{ number, title, text string }

// sourcesStart is the line before the sources of a system message. Each source begins
// with its number and title: [1] README.md § Install.
const sourcesStart = "\nSources:\n"

var sourceHead = regexp.MustCompile(`(?m)^\[(\d{1,2})\] (.+)$`)

// sourcesIn returns the sources of the last system message that has some.
func sourcesIn(messages []Message) (sources []source, given bool) {
	for _, m := range messages {
		_, list, ok := strings.Cut(m.Content, sourcesStart)
		if m.Role != "system" || !ok {
			continue
		}
		sources, given = nil, true
		heads := sourceHead.FindAllStringSubmatchIndex(list, -1)
		for i, head := range heads {
			end := len(list)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			sources = append(sources, source{list[head[2]:head[3]], list[head[4]:head[5]], list[head[1]:end]})
		}
	}
	return sources, given
}

// shortSentence is how many words a sentence has that is not quoted alone.
const shortSentence = 7

// quote answers with the sentence of the sources that shares most with the question,
// word for word, and says where it stands. It adds nothing of its own.
func quote(question string, sources []source) string {
	type sentence struct {
		source source
		text   string
		words  map[string]bool
	}
	var sentences []sentence
	rarity := make(map[string]float64) // in how many sentences a word is, first
	for _, s := range sources {
		for _, paragraph := range paragraphEnd.Split(fence.ReplaceAllString(s.text, "\n\n"), -1) {
			texts := sentencesOf(paragraph)
			for i, text := range texts {
				words := stems(text)
				for w := range words {
					rarity[w]++
				}
				if i+1 < len(texts) && len(strings.Fields(text)) < shortSentence {
					text += " " + texts[i+1] // what is short is often said to begin with
				}
				sentences = append(sentences, sentence{s, text, words})
			}
		}
	}
	asked := stems(question)
	best, most := sentence{}, 0.0
	for _, s := range sentences {
		score := 0.0
		for w := range asked {
			if s.words[w] {
				score += math.Log(1 + float64(len(sentences))/rarity[w])
			}
		}
		score /= 1 + float64(len(s.words))/20 // a long sentence holds many words by chance
		if score > most {
			best, most = s, score
		}
	}
	if most == 0 {
		return "The sources do not answer that."
	}
	return fmt.Sprintf("%s says: “%s” [%s]", best.source.title, best.text, best.source.number)
}

var (
	sentenceEnd  = regexp.MustCompile(`[.!?]["”)*]*\s+`)
	paragraphEnd = regexp.MustCompile(`\n\s*\n|\n\s*[-*|] `) // items and rows stand alone
	fence        = regexp.MustCompile("(?s)```.*?(```|$)")
)

// sentencesOf splits a paragraph, an item of a list or a row of a table of Markdown.
func sentencesOf(paragraph string) (sentences []string) {
	add := func(text string) {
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "**", "")
		if text = strings.Trim(text, "-*| "); len(strings.Fields(normalize(text))) >= 3 {
			sentences = append(sentences, text)
		}
	}
	start := 0
	for _, end := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
		add(paragraph[start:end[1]])
		start = end[1]
	}
	add(paragraph[start:])
	return sentences
}

// stems returns the words of text that carry meaning, without the s of plurals.
func stems(text string) map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsSeq(normalize(text)) {
		if len(w) > 3 {
			w = strings.TrimSuffix(w, "s")
		}
		if len(w) > 1 && !fillers[w] {
			words[w] = true
		}
	}
	return words
}

var fillers = map[string]bool{
	"the": true, "an": true, "is": true, "are": true, "was": true, "be": true, "of": true, "to": true, "in": true,
	"on": true, "at": true, "it": true, "its": true, "for": true, "and": true, "or": true, "not": true, "what": true,
	"why": true, "how": true, "doe": true, "do": true, "which": true, "when": true, "who": true, "where": true,
	"that": true, "thi": true, "with": true, "by": true, "as": true, "from": true, "can": true, "good": true,
	"there": true, "has": true, "have": true, "explain": true, "mean": true, "does": true, "this": true,
}
