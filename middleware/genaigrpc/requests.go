package genaigrpc

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

const (
	// maxOpen is how many requests of one stream are followed at a time. What is
	// beyond has no span, and is counted in genai.span.dropped_count.
	maxOpen = 1000
	// maxEarly is how many answers wait for the report of their request.
	maxEarly = 8
	// earlyTime is how long they do.
	earlyTime = 100 * time.Millisecond
	// maxRecent is how many ended requests are remembered, lest what comes late for
	// one is taken for an early answer to the next of the same id.
	maxRecent = 32

	errTypeStream = "stream_error"
)

// requests are the model calls of one RPC, each a request with an id and its
// answers. Those of the same id, and those of none, are answered in their order.
type requests struct {
	method *ModelCall
	start  func(r *request, at time.Time) *genaitrace.Call
	rpc    trace.Span

	mu      sync.Mutex
	given   *genaitrace.Call // of somebody else, who made the RPC for it: its first request
	open    map[string][]*openRequest
	n       int
	dropped int
	closed  bool
	early   []early
	recent  []string
}

// keyed returns what tells the requests of an RPC apart, nil where it is one request.
func keyed(m modelRPC) *requests {
	q, _ := m.(*requests)
	return q
}

// An openRequest is one that may still be answered.
type openRequest struct {
	id      string
	call    *genaitrace.Call
	own     bool // nobody else ends it
	began   time.Time
	last    time.Time // of its last answer, or the request itself
	answers int
	told    bool // its answers say whether they are the last
	held    genaitrace.ChunkKind
}

// An early answer came before gRPC reported its request, which it does when the
// request is written.
type early struct {
	response
	at time.Time
}

func (q *requests) sent(message any, at time.Time) {
	r := q.method.readRequest(message)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	id := r.RequestID
	if queue := q.open[id]; len(queue) > 0 && queue[0].answers > 0 && !queue[0].told {
		q.complete(queue[0], queue[0].last) // its answers do not say when they end; this does
	}
	if q.n >= maxOpen {
		q.dropped++
		return
	}
	o := &openRequest{id: id, call: q.given, began: at, last: at, held: genaitrace.NoChunk}
	if q.given = nil; o.call == nil {
		o.call, o.own = q.start(&r, at), true
	}
	o.call.SetRequest(r.Request)
	o.call.SetAttributes(r.attributes()...)
	if q.open == nil {
		q.open = make(map[string][]*openRequest)
	}
	q.open[id] = append(q.open[id], o)
	q.n++
	q.recent = slices.DeleteFunc(q.recent, func(ended string) bool { return ended == id })
	q.replay(o)
}

// replay gives a request the answers that came before it was known.
func (q *requests) replay(o *openRequest) {
	waiting := q.early
	q.early = nil
	for _, e := range waiting {
		switch {
		case e.id != o.id:
			q.early = append(q.early, e)
		case o.began.Sub(e.at) <= earlyTime:
			q.take(o, e.response, o.began)
		}
	}
}

func (q *requests) answered(message any, at time.Time) {
	r := q.method.readResponse(nil, message)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if o := q.find(&r); o != nil {
		q.take(o, r, at)
		return
	}
	if slices.Contains(q.recent, r.id) {
		return // too late
	}
	q.early = append(atMost(maxEarly-1, q.early), early{r, at})
}

// find returns the request that an answer belongs to. An error without an id
// belongs to the only one that is open.
func (q *requests) find(r *response) *openRequest {
	if queue := q.open[r.id]; len(queue) > 0 {
		return queue[0]
	}
	if r.failed && r.id == "" && q.n == 1 {
		for _, queue := range q.open {
			return queue[0]
		}
	}
	return nil
}

// take notes an answer. One that is the only answer of its request is whole: when
// it came says nothing of the time to a first token. So the first one is held back
// until it is known not to be that.
func (q *requests) take(o *openRequest, r response, at time.Time) {
	if at.Before(o.last) {
		at = o.last
	}
	if o.answers == 0 { // the others say the same
		o.call.SetResponse("", r.model)
		o.call.SetRequest(genaitrace.Request{ModelVersion: r.version})
	}
	o.told = o.told || r.told
	whole := o.answers == 0 && r.final
	if o.answers++; o.answers == 2 {
		o.call.ChunkAt(o.held, o.last)
	}
	switch {
	case o.answers == 1 && !r.told:
		o.held = r.kind
	case !whole:
		o.call.ChunkAt(r.kind, at)
	}
	o.last = at
	switch {
	case r.failed:
		o.call.SetErrorType(errTypeStream)
		o.call.SetTerminal(semconv.GenAIStreamTerminalError)
		q.complete(o, at)
	case r.final:
		if !whole {
			o.call.SetTerminal(semconv.GenAIStreamTerminalDone)
		}
		q.complete(o, at)
	}
}

// complete ends a request that has its last answer.
func (q *requests) complete(o *openRequest, at time.Time) {
	queue := slices.DeleteFunc(q.open[o.id], func(other *openRequest) bool { return other == o })
	if q.open[o.id] = queue; len(queue) == 0 {
		delete(q.open, o.id)
	}
	q.n--
	q.recent = append(atMost(maxRecent-1, q.recent), o.id)
	if o.own {
		o.call.EndAt(at)
	}
}

// atMost returns the last n elements.
func atMost[T any](n int, list []T) []T {
	if len(list) > n {
		return slices.Delete(list, 0, len(list)-n)
	}
	return list
}

func (*requests) begin(bool) {}

func (q *requests) end(how ending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed, q.early = true, nil
	for _, queue := range q.open {
		for _, o := range queue {
			q.endOpen(o, how)
		}
	}
	q.open, q.n = nil, 0
	if q.dropped > 0 {
		q.rpc.SetAttributes(semconv.GenAISpanDroppedCount(q.dropped))
	}
}

// endOpen ends a request whose last answer was not told, or did not come.
func (q *requests) endOpen(o *openRequest, how ending) {
	good := !how.failed && !how.cancelled
	switch {
	case !o.own: // told by the RPC
	case good && o.answers > 0:
		o.call.EndAt(o.last)
	default:
		how.finish(o.call)
	}
}

// lookIdle runs once a time-out, and ends requests that nothing happened to since it
// did before.
func (q *requests) lookIdle(timeout time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := time.Now().Add(-timeout)
	for _, queue := range q.open {
		for _, o := range slices.Clone(queue) {
			if o.last.After(before) {
				continue
			}
			at := o.last
			if o.told || o.answers == 0 { // it waited until now
				o.call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
				at = time.Time{}
			}
			q.complete(o, at)
		}
	}
}
