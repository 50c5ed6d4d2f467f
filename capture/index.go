package capture

// The tree by index, for code that visits every span: indexes are those of Spans,
// and −1 stands for none.

// ParentIndex returns the place of the captured parent of Spans[i].
func (t *Trace) ParentIndex(i int) int { return int(t.links[i].parent) }

// FirstChild returns the place of the first child of Spans[i].
func (t *Trace) FirstChild(i int) int { return int(t.links[i].child) }

// NextSibling returns the place of the child after Spans[i] of the same parent.
func (t *Trace) NextSibling(i int) int { return int(t.links[i].next) }
