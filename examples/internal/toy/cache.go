package toy

import (
	"container/list"
	"sync"
)

// blockTokens is the unit of the prefix cache. What is left over at the end of a
// prompt is not cached.
const blockTokens = 16

// prefixCache remembers which prompts have been computed, in blocks that are
// chained to the block before them, as engines keep their KV cache. The least
// recently used block goes first; what hung on it is then not found any more and
// follows in time.
type prefixCache struct {
	limit int

	mu     sync.Mutex
	blocks map[blockKey]*list.Element
	recent *list.List // of *block, the most recently used first
	lastID uint64
}

type blockKey struct {
	parent uint64 // 0 for the first block of a prompt
	tokens [blockTokens]string
}

type block struct {
	key blockKey
	id  uint64
}

func newPrefixCache(limit int) *prefixCache {
	return &prefixCache{limit: limit, blocks: make(map[blockKey]*list.Element), recent: list.New()}
}

// longest returns how many tokens of prompt, from its first on, are cached. The
// last token never is: an engine must compute it to have an output.
func (c *prefixCache) longest(prompt []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parent uint64
	n := 0
	for ; n+blockTokens < len(prompt); n += blockTokens {
		known, ok := c.blocks[blockKey{parent, [blockTokens]string(prompt[n:])}]
		if !ok {
			break
		}
		c.recent.MoveToFront(known)
		parent = known.Value.(*block).id
	}
	return n
}

// add remembers tokens.
func (c *prefixCache) add(tokens []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parent uint64
	for ; len(tokens) >= blockTokens; tokens = tokens[blockTokens:] {
		key := blockKey{parent, [blockTokens]string(tokens)}
		known, ok := c.blocks[key]
		if ok {
			c.recent.MoveToFront(known)
		} else {
			c.lastID++
			known = c.recent.PushFront(&block{key, c.lastID})
			c.blocks[key] = known
		}
		parent = known.Value.(*block).id
		if len(c.blocks) > c.limit {
			oldest := c.recent.Remove(c.recent.Back()).(*block)
			delete(c.blocks, oldest.key)
		}
	}
}
