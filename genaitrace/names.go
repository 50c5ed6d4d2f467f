package genaitrace

import (
	"strings"
	"sync"
)

// A nameKind is which spans share a bound on their names.
type nameKind uint8

const (
	retrievalName nameKind = iota
	toolName
	agentName
	workflowName
	createName
	planName
	memoryName
	taskName
	nameKinds
)

// A nameCache holds the first 100 names that spans of a kind got from what a caller
// chose, so that each is made once. The zero value holds none. It is safe for
// concurrent use.
type nameCache struct {
	mu   sync.RWMutex
	made map[string]string
}

// spanName is "{operation} {name}", or the operation alone where the name is unknown,
// and once this process has had too many of them. Without an operation it is the name,
// else plain.
func (c *nameCache) spanName(operation, name, plain string) string {
	if name == "" {
		return plain
	}
	c.mu.RLock()
	known, ok := c.made[name]
	full := len(c.made) >= maxDistinct
	c.mu.RUnlock()
	switch {
	case ok:
		return known
	case full:
		return plain
	}
	return c.make(operation, name, plain)
}

func (c *nameCache) make(operation, name, plain string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.made[name]; ok {
		return known
	}
	if len(c.made) >= maxDistinct {
		return plain
	}
	if c.made == nil {
		c.made = map[string]string{}
	}
	made := strings.Clone(name)
	if operation != "" {
		made = operation + " " + name
	}
	c.made[strings.Clone(name)] = made
	return made
}

// suffixed is the name of an operation that is named after something.
func (t *Tracer) suffixed(kind nameKind, operation, name string) string {
	return t.names[kind].spanName(operation, name, operation)
}

// chosen is a name that the caller chose alone.
func (t *Tracer) chosen(kind nameKind, name, plain string) string {
	return t.names[kind].spanName("", name, plain)
}
