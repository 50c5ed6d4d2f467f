package genaitrace

import (
	"fmt"
	"text/template/parse"
)

// A PromptTemplate is the shape of a prompt template, without its text. It is
// immutable.
type PromptTemplate struct {
	name, version string
	depth         int
	exact         bool // there is no text that depends on data
	placeholders  int
	static        int // bytes of text that is always the same,
	head, tail    int // of which so many stand before the first and after the last placeholder
}

const (
	// maxTemplateDepth bounds templates that call themselves.
	maxTemplateDepth = 32
	// maxTemplateCalls bounds templates that call others many times.
	maxTemplateCalls = 1000
)

// ParsePromptTemplate reads a template in the language of text/template, also that of
// others who write {{name}}; its functions need not be known. Do it once, where the
// service starts.
func ParsePromptTemplate(name, version, source string) (*PromptTemplate, error) {
	trees := map[string]*parse.Tree{}
	root := parse.New(name)
	root.Mode = parse.SkipFuncCheck
	if _, err := root.Parse(source, "", "", trees); err != nil {
		return nil, fmt.Errorf("genaitrace: prompt template: %w", err)
	}
	t := &PromptTemplate{name: name, version: version, exact: true}
	w := templateWalk{PromptTemplate: t, trees: trees}
	w.walk(root.Root, 1)
	return t, nil
}

// A templateWalk learns the shape of a template.
type templateWalk struct {
	*PromptTemplate

	trees map[string]*parse.Tree
	calls int
}

// walk goes over a template that stands so deep.
func (t *templateWalk) walk(list *parse.ListNode, depth int) {
	if list == nil {
		return
	}
	t.depth = max(t.depth, depth)
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			t.static += len(n.Text)
			t.tail += len(n.Text)
			if t.placeholders == 0 {
				t.head += len(n.Text)
			}
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 { // else it says nothing
				t.placeholders++
				t.tail = 0
			}
		case *parse.IfNode:
			t.branches(&n.BranchNode, depth)
		case *parse.WithNode:
			t.branches(&n.BranchNode, depth)
		case *parse.RangeNode:
			t.branches(&n.BranchNode, depth)
		case *parse.TemplateNode:
			t.calls++
			inner := t.trees[n.Name]
			if inner == nil || depth == maxTemplateDepth || t.calls > maxTemplateCalls {
				t.exact = false
				continue
			}
			t.walk(inner.Root, depth+1)
		}
	}
}

// branches go by data, so that nobody knows how much of them is used.
func (t *templateWalk) branches(b *parse.BranchNode, depth int) {
	t.exact = false
	t.walk(b.List, depth)
	t.walk(b.ElseList, depth)
}

// shares are the density of placeholders and their span in a text of so many bytes
// that the template made; nil where they cannot be known.
func (t *PromptTemplate) shares(length int) (density, span *float64) {
	if !t.exact || length <= 0 || length < t.static {
		return nil, nil
	}
	whole := float64(length)
	density = new(float64(length-t.static) / whole)
	if t.placeholders > 0 {
		span = new(float64(length-t.head-t.tail) / whole)
	}
	return density, span
}
