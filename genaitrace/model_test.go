package genaitrace_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A world is some requests and batches on which random calls are made, beside a
// plain account of what those calls mean. All times of the account are since the
// world began, and no two calls are made in the same millisecond.
type world struct {
	t       *testing.T
	r       *recording
	rng     *rand.Rand
	began   time.Time
	request []*requestModel
	batch   []*batchModel
}

type requestModel struct {
	w               *world
	inf             *genaitrace.Inference
	ctx             context.Context
	arrived, start  time.Duration
	end             time.Duration
	ended           bool
	phases          []*phaseModel
	away            bool
	awaySince       time.Duration
	asides          []stretch // times between preemption and work
	reported        [6]*time.Duration
	joined          map[*batchModel]bool
	reasoning       bool
	firstVisible    time.Duration
	hasFirstVisible bool
}

type stretch struct{ from, to time.Duration }

type phaseModel struct {
	name   string
	phase  *genaitrace.Phase
	decode *genaitrace.Decode
	stretch
	open  bool
	sane  bool
	ticks []time.Duration
}

type batchModel struct {
	batch   *genaitrace.Batch
	ended   bool
	in      map[*requestModel]time.Duration
	members map[*requestModel]bool
	most    int
	total   time.Duration
}

var phaseNames = []string{
	semconv.SpanQueueWait, semconv.SpanModelLoad, semconv.SpanTokenizerEncode, semconv.SpanSchedulerDispatch,
	semconv.SpanInferencePrefill, semconv.SpanInferenceDecode, semconv.SpanInferencePostprocess,
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// pass lets at least a millisecond go by.
func (w *world) pass() { time.Sleep(time.Duration(1+w.rng.IntN(20)) * time.Millisecond) }

// earlier is a whole millisecond between from and now, now in most cases.
func (w *world) earlier(from time.Duration) time.Duration {
	now := w.now()
	if from = max(from, 0); now <= from || w.rng.IntN(3) > 0 {
		return now
	}
	return from + time.Duration(w.rng.Int64N(int64(now-from)/1e6+1))*time.Millisecond
}

func (w *world) startRequest() {
	arrived := w.earlier(0)
	q := &requestModel{w: w, arrived: arrived, start: w.now(), joined: map[*batchModel]bool{}}
	req, ctx := genaitrace.Request{Model: "m"}, w.t.Context()
	switch w.rng.IntN(3) {
	case 0:
		req.Arrived = w.began.Add(arrived)
		q.start = arrived
	case 1:
		ctx = genaitrace.ContextWithArrival(ctx, w.began.Add(arrived))
	default:
		q.arrived = q.start
	}
	q.ctx, q.inf = w.r.StartInference(ctx, req)
	w.request = append(w.request, q)
}

func (w *world) startBatch() {
	b := &batchModel{in: map[*requestModel]time.Duration{}, members: map[*requestModel]bool{}}
	_, b.batch = w.r.StartBatch(w.t.Context(), genaitrace.BatchFacts{})
	w.batch = append(w.batch, b)
}

// one does one random thing.
func (w *world) one() {
	w.pass()
	if len(w.request) == 0 || w.rng.IntN(30) == 0 && len(w.request) < 4 {
		w.startRequest()
		return
	}
	if w.rng.IntN(25) == 0 && len(w.batch) < 4 {
		w.startBatch()
		return
	}
	q := w.request[w.rng.IntN(len(w.request))]
	switch w.rng.IntN(16) {
	case 0, 1, 2:
		q.startPhase(w.rng.IntN(len(phaseNames)))
		if w.rng.IntN(4) == 0 {
			q.startPhase(5) // more often than others: decode
		}
	case 3, 4, 5:
		q.endPhase()
	case 6, 7, 8, 9, 10:
		q.tick()
	case 11:
		q.preempt()
	case 12:
		q.report()
	case 13, 14:
		w.useBatch(q)
	case 15:
		if w.rng.IntN(6) == 0 {
			q.finish()
		}
	}
}

func (q *requestModel) startPhase(kind int) {
	p := &phaseModel{name: phaseNames[kind], stretch: stretch{from: q.w.now()}, open: true, sane: true}
	switch inf, ctx := q.inf, q.ctx; kind {
	case 0:
		_, p.phase = inf.StartQueue(ctx)
	case 1:
		_, p.phase = inf.StartLoad(ctx)
	case 2:
		_, p.phase = inf.StartTokenize(ctx)
	case 3:
		_, p.phase = inf.StartSchedule(ctx)
	case 4:
		_, p.phase = inf.StartPrefill(ctx, genaitrace.Prompt{})
	case 5:
		_, p.decode = inf.StartDecode(ctx)
	case 6:
		_, p.phase = inf.StartPostprocess(ctx)
	}
	if q.ended {
		return
	}
	q.phases = append(q.phases, p)
	if p.works() {
		q.resume(q.w.now())
	}
}

func (p *phaseModel) works() bool {
	return p.name == semconv.SpanInferencePrefill || p.name == semconv.SpanInferenceDecode
}

func (q *requestModel) resume(at time.Duration) {
	if q.away {
		q.away = false
		q.asides = append(q.asides, stretch{q.awaySince, max(at, q.awaySince)})
	}
}

func (q *requestModel) endPhase() {
	if len(q.phases) == 0 {
		return
	}
	w := q.w
	p := q.phases[w.rng.IntN(len(q.phases))]
	now := w.now()
	end, say := now, time.Time{}
	switch w.rng.IntN(4) {
	case 0:
		end = w.earlier(p.from)
		say = w.began.Add(end)
	case 1:
		say = w.began.Add(p.from - time.Millisecond) // before its start
	case 2:
		say = w.began.Add(now + time.Hour)
	}
	if p.decode != nil {
		p.decode.EndAt(say)
	} else {
		p.phase.EndAt(say)
	}
	if p.open {
		p.open, p.to = false, p.notBefore(end)
		p.sane = !say.Equal(w.began.Add(p.from - time.Millisecond))
	}
}

// notBefore is the end of a phase of which end is said: not before its last token.
func (p *phaseModel) notBefore(end time.Duration) time.Duration {
	if n := len(p.ticks); n > 0 {
		return max(end, p.ticks[n-1])
	}
	return end
}

// tick generates something in some decode phase, open or not.
func (q *requestModel) tick() {
	w := q.w
	var decodes []*phaseModel
	for _, p := range q.phases {
		if p.decode != nil {
			decodes = append(decodes, p)
		}
	}
	if len(decodes) == 0 {
		return
	}
	p := decodes[w.rng.IntN(len(decodes))]
	at, n, reasoning := w.now(), 1, false
	switch w.rng.IntN(5) {
	case 0:
		n = 1 + w.rng.IntN(4)
		p.decode.Tokens(n)
	case 1:
		at = w.earlier(p.from)
		p.decode.TokenAt(w.began.Add(at))
	case 2, 3:
		reasoning = w.rng.IntN(2) == 0
		p.decode.Tick(genaitrace.Tick{Choice: w.rng.IntN(3), Reasoning: reasoning})
	default:
		p.decode.Token()
	}
	if !p.open || q.ended {
		return
	}
	if len(p.ticks) > 0 {
		at = max(at, p.ticks[len(p.ticks)-1])
	}
	for range n {
		p.ticks = append(p.ticks, at)
	}
	q.reasoning = q.reasoning || reasoning
	if !reasoning && (!q.hasFirstVisible || at < q.firstVisible) {
		q.firstVisible, q.hasFirstVisible = at, true
	}
}

func (q *requestModel) preempt() {
	q.inf.Preempt()
	if q.ended {
		return
	}
	for _, p := range q.phases {
		if p.open && p.works() {
			p.open, p.to = false, q.w.now()
		}
	}
	if !q.away {
		q.away, q.awaySince = true, q.w.now()
	}
}

func (q *requestModel) report() {
	var p genaitrace.PhaseTimes
	for i, f := range []**time.Duration{&p.Queue, &p.Load, &p.Tokenize, &p.Schedule, &p.Prefill, &p.Decode} {
		switch q.w.rng.IntN(6) {
		case 0, 1:
			*f = new(time.Duration(q.w.rng.IntN(80)) * time.Millisecond)
			if !q.ended {
				q.reported[i] = *f
			}
		case 2:
			*f = new(time.Duration(-1)) // dropped
		}
	}
	q.inf.RecordPhases(p)
}

func (w *world) useBatch(q *requestModel) {
	if len(w.batch) == 0 {
		return
	}
	b := w.batch[w.rng.IntN(len(w.batch))]
	switch w.rng.IntN(5) {
	case 0, 1, 2:
		b.batch.Join(q.inf)
		if b.ended || q.ended {
			return
		}
		if _, here := b.in[q]; !here {
			b.in[q] = w.now()
			b.members[q], q.joined[b] = true, true
			b.most = max(b.most, len(b.in))
		}
	case 3:
		b.batch.Leave(q.inf)
		b.leave(q, w.now())
	case 4:
		if w.rng.IntN(4) == 0 {
			w.endBatch(b)
		}
	}
}

func (b *batchModel) leave(q *requestModel, at time.Duration) {
	if joined, here := b.in[q]; here && !b.ended {
		b.total += max(at-joined, 0)
		delete(b.in, q)
	}
}

func (w *world) endBatch(b *batchModel) {
	b.batch.End()
	if b.ended {
		return
	}
	for q := range b.in {
		b.leave(q, w.now())
	}
	b.ended = true
}

func (q *requestModel) finish() {
	w := q.w
	end, say := w.now(), time.Time{}
	if w.rng.IntN(4) == 0 {
		end = w.earlier(q.start)
		say = w.began.Add(end)
	}
	q.inf.EndAt(say)
	if q.ended {
		return
	}
	said := end
	for _, p := range q.phases {
		if p.open {
			p.open, p.to = false, p.notBefore(said)
			if p.sane = said >= p.from; !p.sane {
				p.to = w.now()
			}
		}
		end = max(end, p.to)
	}
	q.ended, q.end = true, end
	q.resume(end)
	for _, b := range w.batch {
		b.leave(q, end)
	}
}

// check compares what was recorded with the account.
func (w *world) check() (compared int) {
	for _, q := range w.request {
		if q.check() {
			compared++
		}
	}
	for _, b := range w.batch {
		s := w.span(b.batch.Span())
		assert.False(w.t, s.Parent().IsValid())
		if b.most == 0 {
			assert.False(w.t, s.has(semconv.AIBatchSizeKey))
			continue
		}
		assert.Equal(w.t, int64(b.most), s.int(semconv.AIBatchSizeKey))
		assert.Equal(w.t, int64(b.total)/int64(len(b.members)), s.nanos(semconv.AIBatchAvgLatencyMsKey))
		assert.Len(w.t, s.linked(), len(b.members))
	}
	return compared
}

// span returns the only ended span with the identity of a handle's.
func (w *world) span(of trace.Span) seen {
	w.t.Helper()
	for _, s := range w.r.recorder.Ended() {
		if s.SpanContext().Equal(of.SpanContext()) {
			return seen{s, w.t}
		}
	}
	require.Fail(w.t, "span did not end")
	return seen{}
}

func (q *requestModel) check() (compared bool) {
	t, w := q.w.t, q.w
	s := w.span(q.inf.Span())
	assert.Equal(t, q.start, s.StartTime().Sub(w.began))
	assert.Equal(t, q.end, s.EndTime().Sub(w.began))
	assert.Len(t, s.linked(), len(q.joined))
	for _, p := range q.phases {
		span := p.decode.Span()
		if p.phase != nil {
			span = p.phase.Span()
		}
		child := w.span(span)
		assert.Equal(t, p.name, child.Name())
		assert.Equal(t, s.SpanContext().SpanID(), child.Parent().SpanID(), "parent of %s", p.name)
		assert.Equal(t, p.from, child.StartTime().Sub(w.began))
		if p.sane {
			assert.Equal(t, p.to, child.EndTime().Sub(w.began), "end of %s", p.name)
		}
		assert.Equal(t, len(p.ticks) > 0, child.has(semconv.GenAITokenCountKey))
		if len(p.ticks) > 0 {
			assert.Equal(t, int64(len(p.ticks)), child.int(semconv.GenAITokenCountKey))
		}
	}
	q.checkPreemptions(s)

	first, last, tokens := q.tokens()
	drawn := q.checkReported(s, first, tokens > 0)
	if tokens == 0 {
		assert.False(t, s.has(semconv.LLMTTFTMsKey))
		assert.Empty(t, s.parts())
		return false
	}
	assert.Equal(t, int64(first-q.arrived), s.nanos(semconv.LLMTTFTMsKey))
	assert.Equal(t, int64(last-q.arrived), s.nanos(semconv.GenAILastTokenMsKey))
	assert.Equal(t, q.reasoning && q.hasFirstVisible, s.has(semconv.GenAIFirstVisibleMsKey))
	if q.reasoning && q.hasFirstVisible {
		assert.Equal(t, int64(q.firstVisible-q.arrived), s.nanos(semconv.GenAIFirstVisibleMsKey))
	}
	got := s.parts() // and their sum is right
	want, ok := q.owners(first, drawn)
	if !ok {
		return false
	}
	for name, ns := range got {
		assert.Equal(t, int64(want[name]), ns, "%s of %v, wanted %v", name, got, want)
	}
	return true
}

func (q *requestModel) checkPreemptions(s seen) {
	t := q.w.t
	total := time.Duration(0)
	for _, aside := range q.asides {
		total += aside.to - aside.from
	}
	assert.Equal(t, len(q.asides) > 0, s.has(semconv.GenAIPreemptionCountKey))
	if len(q.asides) > 0 {
		assert.Equal(t, int64(len(q.asides)), s.int(semconv.GenAIPreemptionCountKey))
		assert.Equal(t, int64(total), s.nanos(semconv.GenAIPreemptionDurationMsKey))
	}
	assert.Len(t, s.events(semconv.EventPreempted), min(len(q.asides), 16))
}

// tokens says when the first and the last token came, and how many.
func (q *requestModel) tokens() (first, last time.Duration, n int) {
	first = math.MaxInt64
	for _, p := range q.phases {
		if len(p.ticks) > 0 {
			first, last = min(first, p.ticks[0]), max(last, p.ticks[len(p.ticks)-1])
			n += len(p.ticks)
		}
	}
	return first, last, n
}

// checkReported checks the spans of what the engine reported, and returns where
// they are.
func (q *requestModel) checkReported(s seen, first time.Duration, hasFirst bool) map[string]stretch {
	t, w := q.w.t, q.w
	drawn := map[string]stretch{}
	clamped, known := false, 0
	var order []stretch
	for i, d := range q.reported {
		name := phaseNames[i]
		seenItself := slices.ContainsFunc(q.phases, func(p *phaseModel) bool { return p.name == name })
		var found []seen
		for _, c := range w.r.spans(name) {
			if c.Parent().SpanID() == s.SpanContext().SpanID() && c.has(semconv.GenAITimingSourceKey) {
				found = append(found, c)
			}
		}
		if d == nil || seenItself {
			assert.Empty(t, found, "%s was not reported, or seen itself", name)
			continue
		}
		known++
		if hasFirst {
			assert.Len(t, found, 1, name)
		}
		for _, c := range found {
			at := stretch{c.StartTime().Sub(w.began), c.EndTime().Sub(w.began)}
			assert.True(t, q.start <= at.from && at.from <= at.to && at.to <= max(q.end, q.start), "%s lies in the request", name)
			cut := c.has(semconv.GenAITimingClampedKey)
			if clamped = clamped || cut; cut {
				assert.LessOrEqual(t, at.to-at.from, *d, "%s was cut", name)
			} else {
				assert.Equal(t, *d, at.to-at.from, "length of %s", name)
			}
			if hasFirst && !cut {
				switch name {
				case semconv.SpanInferenceDecode:
					assert.Equal(t, first, at.from)
				case semconv.SpanInferencePrefill:
					assert.Equal(t, first, at.to)
				default:
					assert.LessOrEqual(t, at.to, first, name)
				}
			}
			drawn[name] = at
			order = append(order, at)
		}
	}
	for i := 1; i < len(order); i++ {
		assert.LessOrEqual(t, order[i-1].to, order[i].from, "one after the other: %v", order)
	}
	assert.Equal(t, known > 0, s.has(semconv.GenAITimingSourceKey))
	assert.Equal(t, clamped, s.has(semconv.GenAITimingClampedKey))
	return drawn
}

// owners says whose each millisecond before the first token is, by the letter of
// the definition. ok is false where it does not say: two phases that start together.
func (q *requestModel) owners(first time.Duration, drawn map[string]stretch) (parts map[string]time.Duration, ok bool) {
	type claim struct {
		part string
		stretch
	}
	names := map[string]string{
		semconv.SpanQueueWait: "queue_ms", semconv.SpanModelLoad: "load_ms", semconv.SpanTokenizerEncode: "tokenize_ms",
		semconv.SpanSchedulerDispatch: "schedule_ms", semconv.SpanInferencePrefill: "prefill_ms",
	}
	var observed, reported []claim
	emit := time.Duration(-1)
	for _, p := range q.phases {
		part, ok := names[p.name]
		if !ok || !p.sane {
			continue
		}
		observed = append(observed, claim{part, p.stretch})
		if p.name == semconv.SpanInferencePrefill && p.from <= first {
			emit = max(emit, p.to)
		}
	}
	for _, aside := range q.asides {
		observed = append(observed, claim{"preempted_ms", aside})
	}
	if emit >= 0 {
		observed = append(observed, claim{"emit_ms", stretch{emit, first}})
	}
	for name, at := range drawn {
		if part, ok := names[name]; ok {
			reported = append(reported, claim{part, at})
		}
	}
	parts = map[string]time.Duration{}
	for at := q.arrived; at < first; at += time.Millisecond {
		owner := claim{part: "unattributed_ms"}
		for _, claims := range [][]claim{reported, observed} {
			mine := claim{}
			for _, c := range claims {
				switch {
				case at < c.from || at >= c.to:
				case mine.part != "" && mine.from == c.from && mine.part != c.part:
					return nil, false
				case mine.part == "" || c.from > mine.from:
					mine = c
				}
			}
			if mine.part != "" {
				owner = mine
			}
		}
		parts[owner.part] += time.Millisecond
	}
	return parts, true
}

// Whatever is called in whatever order, the tree, the times and their parts are
// those of a plain account of the calls.
func TestRandomCallsAgreeWithAPlainAccountOfThem(t *testing.T) {
	compared := 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			handled(t)
			w := &world{t: t, r: record(t), rng: rand.New(rand.NewPCG(seed, 5)), began: time.Now()}
			for range 20 + w.rng.IntN(150) {
				w.one()
			}
			for _, q := range w.request {
				w.pass()
				q.finish()
			}
			for _, b := range w.batch {
				w.pass()
				w.endBatch(b)
			}
			compared += w.check()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
	assert.Greater(t, compared, 200, "requests whose parts were compared")
}
