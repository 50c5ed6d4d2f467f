package spec

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// maxNodes bounds a file after its aliases are put in.
const maxNodes = 100_000

// resolve puts what an anchor names in the place of each alias, because parts of
// the file are decoded on their own.
func resolve(root ast.Node) error {
	r := resolver{anchors: map[string]ast.Node{}, open: map[string]bool{}}
	_, err := r.node(root)
	return err
}

type resolver struct {
	anchors map[string]ast.Node
	open    map[string]bool // anchors whose value is being read
	nodes   int
}

// node returns what stands for n.
func (r *resolver) node(n ast.Node) (ast.Node, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, at(n, fmt.Sprintf("the file has more than %d values, aliases counted", maxNodes))
	}
	var err error
	switch n := n.(type) {
	case *ast.AnchorNode:
		name := n.Name.String()
		r.open[name] = true
		value, err := r.node(n.Value)
		delete(r.open, name)
		r.anchors[name] = value
		return value, err
	case *ast.AliasNode:
		name := n.Value.String()
		value, ok := r.anchors[name]
		switch {
		case r.open[name]:
			return nil, at(n, fmt.Sprintf("*%s stands inside the value that it names", name))
		case !ok:
			return nil, at(n, fmt.Sprintf("*%s names nothing: &%s must stand before it", name, name))
		}
		return r.node(value) // counts what it holds
	case *ast.MappingNode:
		for _, v := range n.Values {
			if v.Value, err = r.node(v.Value); err != nil {
				return nil, err
			}
		}
	case *ast.SequenceNode:
		for i := range n.Values {
			if n.Values[i], err = r.node(n.Values[i]); err != nil {
				return nil, err
			}
		}
	case *ast.MappingValueNode:
		n.Value, err = r.node(n.Value)
	}
	return n, err
}
