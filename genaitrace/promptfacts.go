package genaitrace

import (
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// PromptFacts is what may be known of a prompt by those who may not read it
// ([Tracer.DescribePrompt]). Zero values and nil are unknown and leave no attribute.
type PromptFacts struct {
	// Name and Version are those of the template.
	Name, Version string
	// Hash is the keyed hash of the messages; without [WithHashKey] there is none.
	Hash string
	// Roles are the roles of the first 32 messages; one that is no usual role is
	// _OTHER.
	Roles []string
	// LengthBucket is the range of the length in tokens; see [WithMetricDimensions].
	LengthBucket string
	// TemplateDepth is how many templates stand inside one another, from 1.
	TemplateDepth int
	// PlaceholderDensity is the share of the prompt that came from variables, and
	// ReferenceSpan the share from where the first begins to where the last ends; 0
	// to 1.
	PlaceholderDensity, ReferenceSpan *float64
	// EntropyBucket is the range of the entropy of the characters, in bits.
	EntropyBucket string
}

// A PromptText is a prompt to describe. All fields are optional.
type PromptText struct {
	// Messages are the prompt.
	Messages []genaiconv.Message
	// Template is what the prompt was made from, and Rendered what it became; empty,
	// that is the text of the messages.
	Template *PromptTemplate
	Rendered string
	// Tokens is the length of the prompt in tokens; zero is unknown.
	Tokens int
}

// DescribePrompt returns the facts of a prompt. It keeps nothing of its text, and
// works whether or not anything records. It goes over the text once for the hash,
// where there is a key, and over its first 64 KiB for the entropy.
//
// The facts are few on purpose: ranges, shares and a keyed hash. What they let guess
// of a text is about as much as its length does.
func (t *Tracer) DescribePrompt(p PromptText) PromptFacts {
	f := PromptFacts{
		LengthBucket:  lengthBucket(p.Tokens, p.Tokens > 0),
		Roles:         rolesOf(p.Messages),
		EntropyBucket: entropyBucket(p.Messages),
	}
	if t != nil && t.content != nil && len(p.Messages) > 0 {
		f.Hash = t.content.Hasher.Messages(p.Messages)
	}
	if p.Template != nil {
		f.Name, f.Version = p.Template.name, p.Template.version
		f.TemplateDepth = p.Template.depth
		length := len(p.Rendered)
		if length == 0 {
			length = textLength(p.Messages)
		}
		f.PlaceholderDensity, f.ReferenceSpan = p.Template.shares(length)
	}
	return f
}

// maxRoles is how many roles a span tells.
const maxRoles = 32

func rolesOf(messages []genaiconv.Message) []string {
	if len(messages) == 0 {
		return nil
	}
	roles := make([]string, 0, min(len(messages), maxRoles))
	for i := range messages[:min(len(messages), maxRoles)] {
		role := string(messages[i].Role)
		switch role {
		case "system", "developer", "user", "assistant", "model", "tool", "function":
		default:
			role = bound.Other
		}
		roles = append(roles, role)
	}
	return roles
}

// eachText calls f with the texts of messages until it returns false.
func eachText(messages []genaiconv.Message, f func(string) bool) {
	for i := range messages {
		for _, part := range messages[i].Parts {
			text := ""
			switch p := part.(type) {
			case genaiconv.TextPart:
				text = p.Content
			case genaiconv.ReasoningPart:
				text = p.Content
			}
			if text != "" && !f(text) {
				return
			}
		}
	}
}

func textLength(messages []genaiconv.Message) (n int) {
	eachText(messages, func(text string) bool {
		n += len(text)
		return true
	})
	return n
}

// maxEntropyText is how much of a prompt its entropy is taken from, in bytes.
const maxEntropyText = 64 << 10

// entropyBucket is the range of the Shannon entropy of the characters, in bits: the
// sum of −p·log2(p) over the share p of each.
func entropyBucket(messages []genaiconv.Message) string {
	var ascii [128]int
	var others map[rune]int
	left, total := maxEntropyText, 0
	eachText(messages, func(text string) bool {
		text = text[:min(len(text), left)]
		left -= len(text)
		for _, r := range text {
			total++
			if r < 128 {
				ascii[r]++
				continue
			}
			if others == nil {
				others = map[rune]int{}
			}
			others[r]++
		}
		return left > 0
	})
	if total == 0 {
		return ""
	}
	bits := 0.0
	add := func(n int) {
		if n > 0 {
			p := float64(n) / float64(total)
			bits -= p * math.Log2(p)
		}
	}
	for _, n := range ascii {
		add(n)
	}
	for _, n := range others {
		add(n)
	}
	if whole := int(bits); whole < 8 {
		return strconv.Itoa(whole) + "-" + strconv.Itoa(whole+1)
	}
	return "8+"
}

// clean bounds what the caller may have set.
func (f *PromptFacts) clean() *PromptFacts {
	kept := *f
	kept.Name, kept.Version = bound.String(f.Name, maxName), bound.String(f.Version, maxName)
	kept.Hash = ""
	if isPromptHash(f.Hash) {
		kept.Hash = f.Hash
	}
	kept.LengthBucket, kept.EntropyBucket = bound.String(f.LengthBucket, maxReason), bound.String(f.EntropyBucket, maxReason)
	kept.Roles = slices.Clone(f.Roles[:min(len(f.Roles), maxRoles)])
	for i := range kept.Roles {
		kept.Roles[i] = bound.String(kept.Roles[i], maxReason)
	}
	kept.PlaceholderDensity, kept.ReferenceSpan = shareOf(f.PlaceholderDensity), shareOf(f.ReferenceSpan)
	return &kept
}

// isPromptHash reports whether s is what [Tracer.Hash] returns, so that nobody takes a
// text for its hash.
func isPromptHash(s string) bool {
	if len(s) != 16 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// shareOf is a copy of a share from 0 to 1, nil where it is none.
func shareOf(v *float64) *float64 {
	if !isFinite(v) || *v < 0 || *v > 1 {
		return nil
	}
	return new(*v)
}

// appendTo appends every known fact.
func (f *PromptFacts) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	if f == nil {
		return attrs
	}
	attrs = f.appendReference(attrs)
	if len(f.Roles) > 0 {
		attrs = append(attrs, semconv.GenAIPromptRoles(f.Roles...))
	}
	if f.TemplateDepth > 0 {
		attrs = append(attrs, semconv.GenAIPromptTemplateDepth(f.TemplateDepth))
	}
	if f.PlaceholderDensity != nil {
		attrs = append(attrs, semconv.GenAIPromptPlaceholderDensity(*f.PlaceholderDensity))
	}
	if f.ReferenceSpan != nil {
		attrs = append(attrs, semconv.GenAIPromptReferenceSpan(*f.ReferenceSpan))
	}
	if f.EntropyBucket != "" {
		attrs = append(attrs, semconv.GenAIPromptEntropyBucket(f.EntropyBucket))
	}
	return attrs
}

// appendReference appends what tells which prompt it was.
func (f *PromptFacts) appendReference(attrs []attribute.KeyValue) []attribute.KeyValue {
	if f == nil {
		return attrs
	}
	for _, kv := range [...]attribute.KeyValue{
		genaiconv.PromptName(f.Name), genaiconv.PromptVersion(f.Version),
		semconv.GenAIPromptHash(f.Hash), semconv.GenAIPromptLengthBucket(f.LengthBucket),
	} {
		if kv.Value.AsString() != "" {
			attrs = append(attrs, kv)
		}
	}
	return attrs
}

// SetPrompt notes the facts of the prompt ([Tracer.DescribePrompt]) for the span and
// the completion record.
func (c *Call) SetPrompt(facts PromptFacts) {
	if c == nil || c.t == nil || c.gateway {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done.Load() {
		c.prompt = facts.clean()
	}
}

// SetPrompt notes the facts of the prompt; see [Call.SetPrompt].
func (inf *Inference) SetPrompt(facts PromptFacts) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if !inf.ended {
		inf.prompt = facts.clean()
	}
}

// SetPrompt notes the facts of the prompt that was made, for the span of
// [Tracer.StartTemplate].
func (o *Operation) SetPrompt(facts PromptFacts) {
	if o == nil || o.t == nil {
		return
	}
	for _, fact := range facts.clean().appendTo(nil) {
		o.note(fact)
	}
}
