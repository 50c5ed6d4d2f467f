package genailangchain

import (
	"container/list"
	"context"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"
	"time"
)

const (
	maxOpen     = 1000
	maxOpenTime = 15 * time.Minute
)

// abandonedError is how a span ends whose end nobody reported.
type abandonedError struct{}

func (abandonedError) Error() string     { return "no callback reported the end" }
func (abandonedError) ErrorType() string { return "abandoned" }

// openSpans are the spans whose end is still to come. The zero value has none. Each ends
// once: whoever takes it out ends it.
type openSpans struct {
	mu    sync.Mutex
	by    map[openKey][]*openSpan // the last that started stands last
	order list.List               // all of them, the oldest first
}

// An openKey is what a start and its end have in common.
type openKey struct {
	ctx  context.Context //nolint:containedctx // its identity is the key
	kind kind
}

// An openSpan is one whose end is still to come.
type openSpan struct {
	end   func(result any, err error)
	query uint64 // hash of what a search looks for, which its end repeats

	key   openKey
	place *list.Element
	stop  func() bool // takes back the watch over the context, if any
	timer *time.Timer
}

var seed = maphash.MakeSeed()

func hash(query string) uint64 { return maphash.String(seed, query) }

// add takes a span that has started in ctx. It ends with ctx, after maxOpenTime, or where
// there are too many, unless somebody ends it before.
func (o *openSpans) add(ctx context.Context, k kind, s *openSpan) {
	if !reflect.ValueOf(ctx).Comparable() {
		s.end(nil, abandonedError{})
		return
	}
	s.key = openKey{ctx, k}
	if oldest := o.insert(s); oldest != nil {
		oldest.end(nil, abandonedError{})
	}
}

func (o *openSpans) insert(s *openSpan) (tooMany *openSpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.order.Len() == maxOpen {
		tooMany, _ = o.order.Front().Value.(*openSpan)
		o.remove(tooMany)
	}
	if o.by == nil {
		o.by = make(map[openKey][]*openSpan)
	}
	o.by[s.key] = append(o.by[s.key], s)
	s.place = o.order.PushBack(s)
	s.timer = time.AfterFunc(maxOpenTime, func() { o.giveUp(s, abandonedError{}) })
	if ctx := s.key.ctx; ctx.Done() != nil {
		s.stop = context.AfterFunc(ctx, func() { o.giveUp(s, ctx.Err()) })
	}
	return tooMany
}

// end ends the last span that started in ctx, of a search the last with its query.
func (o *openSpans) end(ctx context.Context, k kind, query uint64, result any, err error) {
	if !reflect.ValueOf(ctx).Comparable() {
		return
	}
	if s := o.take(openKey{ctx, k}, query); s != nil {
		s.end(result, err)
	}
}

func (o *openSpans) take(key openKey, query uint64) *openSpan {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range slices.Backward(o.by[key]) {
		if s.query == query {
			o.remove(s)
			return s
		}
	}
	return nil
}

// giveUp ends a span that nobody else has ended.
func (o *openSpans) giveUp(s *openSpan, err error) {
	o.mu.Lock()
	mine := o.remove(s)
	o.mu.Unlock()
	if mine {
		s.end(nil, err)
	}
}

// remove takes a span out, and reports whether it was there. o.mu is held.
func (o *openSpans) remove(s *openSpan) bool {
	at := slices.Index(o.by[s.key], s)
	if at < 0 {
		return false
	}
	if o.by[s.key] = slices.Delete(o.by[s.key], at, at+1); len(o.by[s.key]) == 0 {
		delete(o.by, s.key)
	}
	o.order.Remove(s.place)
	s.timer.Stop()
	if s.stop != nil {
		s.stop()
	}
	return true
}
