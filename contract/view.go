package contract

import (
	"slices"
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
// index, and −1 stands for none.
type view struct {
	program *program
	cache   *infoCache
	trace   *capture.Trace
	spans   []*capture.Span

	outside []bool    // not in the scope of the contract
	roles   []roleSet // of the span
	above   []roleSet // of the spans above it
	below   []roleSet // of the span and those below it
	orphan  []bool    // a span above was not captured
	any     roleSet   // of all spans
	order   []int32   // the spans from the roots on, each after its parent
	base    time.Time // what moments count from: the first start that is known

	first []int32    // the place of the first attribute of each span in infos
	infos []*keyInfo // what is known of each attribute of each span
	facts []int32    // for each span and key the place of its attribute, from 1

	over     []int32   // see nearest
	totals   [][]total // by the number of an atom, see below
	totalled []bool    // which of them are of this trace
}

func newView(p *program) view {
	return view{program: p, cache: &infoCache{p.keys, map[attribute.Key]*keyInfo{}}, totals: make([][]total, len(p.atoms))}
}

func (v *view) load(t *capture.Trace) {
	v.trace, v.spans = t, t.Spans
	n := len(t.Spans)
	v.outside = resize(v.outside, n)
	v.roles, v.above, v.below = resize(v.roles, n), resize(v.above, n), resize(v.below, n)
	v.facts = resize(v.facts, n*len(v.program.keys.canonical))
	v.first, v.infos = resize(v.first, n), resize(v.infos, 0)
	v.totalled = resize(v.totalled, len(v.program.atoms))
	v.base, v.any = time.Time{}, 0
	for i, s := range t.Spans {
		if v.base.IsZero() {
			v.base = s.Start
		}
		v.loadFacts(i, s)
	}
	for i, s := range t.Spans {
		v.outside[i] = v.program.scope.excludes(s)
		if v.outside[i] {
			continue
		}
		v.roles[i] = v.program.rolesOf(v, i)
		v.any |= v.roles[i]
	}
	v.loadTree()
}

// loadTree goes along the tree and not along the spans, because a child may stand
// before its parent where clocks are off.
func (v *view) loadTree() {
	t := v.trace
	v.order, v.orphan = resize(v.order, 0), resize(v.orphan, len(v.spans))
	for root, s := range v.spans {
		if t.ParentIndex(root) >= 0 {
			continue
		}
		orphan := s.ParentID.IsValid()
		for i := root; i >= 0; i = v.next(i, root) {
			v.order = append(v.order, int32(i))
			v.orphan[i] = orphan
			if p := t.ParentIndex(i); p >= 0 {
				v.above[i] = v.above[p] | v.roles[p]
			}
		}
	}
	for _, i := range slices.Backward(v.order) {
		v.below[i] |= v.roles[i]
		if p := t.ParentIndex(int(i)); p >= 0 {
			v.below[p] |= v.below[i]
		}
	}
}

// next returns what follows i in the tree under root, parents before their
// children.
func (v *view) next(i, root int) int {
	if c := v.trace.FirstChild(i); c >= 0 {
		return c
	}
	for ; i != root; i = v.trace.ParentIndex(i) {
		if n := v.trace.NextSibling(i); n >= 0 {
			return n
		}
	}
	return -1
}

// nearest returns for each span the next one above it that has the role. The answer
// is good until the next call.
func (v *view) nearest(role int) []int32 {
	v.over = resize(v.over, len(v.spans))
	for _, i := range v.order {
		switch p := v.trace.ParentIndex(int(i)); {
		case p < 0:
			v.over[i] = -1
		case v.roles[p]&(1<<role) != 0:
			v.over[i] = int32(p)
		default:
			v.over[i] = v.over[p]
		}
	}
	return v.over
}

func (v *view) loadFacts(i int, s *capture.Span) {
	facts := v.row(i)
	v.first[i] = int32(len(v.infos))
	for j := range s.Attributes {
		info := v.cache.get(s.Attributes[j].Key)
		v.infos = append(v.infos, info)
		if info.id != noKey && (info.exact || facts[info.id] == 0) {
			facts[info.id] = int32(j) + 1
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

// among is fact for the attributes of an event, a metric or a log record.
func (v *view) among(attributes capture.Attributes, id keyID) (kv *attribute.KeyValue, info *keyInfo) {
	for j := range attributes {
		if is := v.cache.get(attributes[j].Key); is.id == id && (kv == nil || is.exact) {
			kv, info = &attributes[j], is
		}
	}
	return kv, info
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
	for _, id := range known.httpStatus {
		if code, ok := v.number(i, id); ok && code >= 400 {
			return true
		}
	}
	for _, id := range known.rpcStatus {
		if code, ok := v.number(i, id); ok && code != 0 {
			return true
		}
		if code := v.text(i, id); code != "" && code != "OK" && code != "0" {
			return true
		}
	}
	return false
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
	return !v.hasEither(i, known.httpMethod) || v.hasEither(i, known.httpStatus)
}

func (v *view) hasEither(i int, ids [2]keyID) bool { return v.has(i, ids[0]) || v.has(i, ids[1]) }

// since is a moment in nanoseconds from the base on; false where it is not known.
func (v *view) since(t time.Time) (float64, bool) {
	return float64(t.Sub(v.base)), !t.IsZero()
}

// firstRole returns a role of a span for messages, empty where it has none.
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

// maxInfos bounds caches, of text no longer than maxKey: keys and names are chosen by
// whoever records.
const maxInfos = 1 << 14

func (c *infoCache) get(key attribute.Key) *keyInfo {
	if info, ok := c.seen[key]; ok {
		return info
	}
	info := c.keys.info(key)
	if len(c.seen) < maxInfos && len(key) <= maxKey {
		c.seen[key] = &info
	}
	return &info
}
