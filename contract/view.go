package contract

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/capture"
)

// roleSet holds roles as bits.
type roleSet uint64

// maxRoles bounds the roles of a contract.
const maxRoles = 64

// view is one trace as the rules see it: which roles each span has, and where each
// fact stands. It is used for one trace after the other. Spans are named by their
// index.
type view struct {
	program *program
	cache   *infoCache
	trace   *capture.Trace
	spans   []*capture.Span

	outside []bool    // not in the scope of the contract
	roles   []roleSet // of the span
	above   []roleSet // of the spans above it
	below   []roleSet // of the span and those below it

	first []int32    // the place of the first attribute of each span in infos
	infos []*keyInfo // what is known of each attribute of each span
	facts []int32    // for each span and key the place of its attribute, from 1
}

func (v *view) load(t *capture.Trace) {
	v.trace, v.spans = t, t.Spans
	n := len(t.Spans)
	v.outside = resize(v.outside, n)
	v.roles, v.above, v.below = resize(v.roles, n), resize(v.above, n), resize(v.below, n)
	v.facts = resize(v.facts, n*len(v.program.keys.canonical))
	v.first, v.infos = resize(v.first, n), v.infos[:0]
	for i, s := range t.Spans {
		v.loadFacts(i, s)
	}
	for i, s := range t.Spans {
		v.outside[i] = v.program.scope.excludes(s)
		if v.outside[i] {
			continue
		}
		for r := range v.program.roles {
			if v.program.roles[r].match.holds(v, i) {
				v.roles[i] |= 1 << r
			}
		}
	}
	// A child may stand before its parent where clocks are off, so both ways are
	// walked along the tree.
	for i := range t.Spans {
		if t.ParentIndex(i) < 0 {
			v.spread(i)
		}
	}
}

// spread fills above and below for the tree under root, without recursion.
func (v *view) spread(root int) {
	t := v.trace
	i := root
	for {
		v.below[i] = v.roles[i]
		if p := t.ParentIndex(i); p >= 0 {
			v.above[i] = v.above[p] | v.roles[p]
		}
		if c := t.FirstChild(i); c >= 0 {
			i = c
			continue
		}
		for {
			if i == root {
				return
			}
			p := t.ParentIndex(i)
			v.below[p] |= v.below[i]
			if next := t.NextSibling(i); next >= 0 {
				i = next
				break
			}
			i = p
		}
	}
}

func (v *view) loadFacts(i int, s *capture.Span) {
	facts := v.row(i)
	v.first[i] = int32(len(v.infos)) //nolint:gosec // a capture in memory holds fewer
	for j := range s.Attributes {
		info := v.cache.get(s.Attributes[j].Key)
		v.infos = append(v.infos, info)
		if info.id != noKey && (info.exact || facts[info.id] == 0) {
			facts[info.id] = int32(j) + 1 //nolint:gosec // a span holds fewer
		}
	}
}

func (v *view) row(i int) []int32 {
	n := len(v.program.keys.canonical)
	return v.facts[i*n : (i+1)*n]
}

// info returns what is known of the j-th attribute of a span.
func (v *view) info(i, j int) *keyInfo { return v.infos[int(v.first[i])+j] }

// has reports whether a span has an attribute, whatever its spelling.
func (v *view) has(i int, id keyID) bool {
	return v.facts[i*len(v.program.keys.canonical)+int(id)] != 0
}

// fact returns an attribute of a span, whatever its spelling; nil where it is
// absent.
func (v *view) fact(i int, id keyID) (*attribute.KeyValue, *keyInfo) {
	at := v.facts[i*len(v.program.keys.canonical)+int(id)]
	if at == 0 {
		return nil, nil
	}
	return &v.spans[i].Attributes[at-1], v.info(i, int(at)-1)
}

// text returns a text attribute of a span, empty where it is absent.
func (v *view) text(i int, id keyID) string {
	kv, info := v.fact(i, id)
	if kv == nil || kv.Value.Type() != attribute.STRING {
		return ""
	}
	return info.text(kv.Value.AsString())
}

// number returns an attribute as a number of the canonical key.
func (v *view) number(i int, id keyID) (float64, bool) {
	kv, info := v.fact(i, id)
	if kv == nil {
		return 0, false
	}
	return number(kv.Value, info.factor)
}

// failed reports whether the operation of a span went wrong, also where the status
// of the span does not say so: a server that refuses a request has not failed.
func (v *view) failed(i int) bool {
	s := v.spans[i]
	known := &v.program.known
	if s.Status == codes.Error || v.has(i, known.errorType) {
		return true
	}
	if code, ok := v.number(i, known.httpStatus); ok && code >= 400 {
		return true
	}
	code := v.text(i, known.rpcStatus)
	return code != "" && code != "OK"
}

// completed reports whether the operation of a span went to its end: it has not
// failed, and nobody left before.
func (v *view) completed(i int) bool {
	if v.failed(i) {
		return false
	}
	known := &v.program.known
	switch v.text(i, known.terminal) {
	case "client_cancelled", "timeout", "truncated", "error", "http_error":
		return false
	}
	// A server that has not answered was left before it could.
	return !v.has(i, known.httpMethod) || v.has(i, known.httpStatus)
}

// since is a moment in nanoseconds from the start of the trace.
func (v *view) since(t time.Time) float64 { return float64(t.Sub(v.spans[0].Start)) }

// roleNames returns the roles of a set, for messages.
func (v *view) firstRole(i int) string {
	for r := range v.program.roles {
		if v.roles[i]&(1<<r) != 0 {
			return v.program.roles[r].name
		}
	}
	return ""
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n || cap(s) > 1<<16 && n < cap(s)/8 {
		return make([]T, n, n+n/4)
	}
	s = s[:n]
	clear(s)
	return s
}

// infoCache keeps what is known of the keys that telemetry carries.
type infoCache struct {
	keys *keys
	seen map[attribute.Key]*keyInfo
}

// maxInfos bounds the cache: keys are chosen by whoever records.
const maxInfos = 1 << 14

func (c *infoCache) get(key attribute.Key) *keyInfo {
	if info, ok := c.seen[key]; ok {
		return info
	}
	info := c.keys.info(key)
	if len(c.seen) < maxInfos {
		c.seen[key] = &info
	}
	return &info
}
