package llama

import (
	"fmt"

	cpp "github.com/hybridgroup/yzma/pkg/llama"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// slot is a place in the batch with its own sequence in the KV cache, which keeps what
// the last request left there.
type slot struct {
	id     cpp.SeqId
	cached []cpp.Token // what the KV cache holds of the sequence

	task    *task // nil where the slot is free
	next    int   // first token of the prompt that is not computed yet
	reused  int   // tokens of the prompt that the cache had
	output  int
	last    cpp.Token // the newest token, which the next step computes
	prefill *genaitrace.Phase
	decode  *genaitrace.Decode
	logits  int32 // place in the batch whose logits give the next token; -1 for none
}

// run is the only goroutine that touches the model.
func (e *Engine) run() {
	defer close(e.done)
	for {
		if !e.receive() {
			e.fail(ErrClosed)
			return
		}
		e.admit()
		if err := e.step(); err != nil {
			e.fail(err)
		}
	}
}

// receive takes new tasks: all that are there, and where nothing runs it waits for one.
func (e *Engine) receive() bool {
	for e.idle() && len(e.waiting) == 0 {
		select {
		case t := <-e.tasks:
			e.waiting = append(e.waiting, t)
		case <-e.stop:
			return false
		}
	}
	for {
		select {
		case t := <-e.tasks:
			e.waiting = append(e.waiting, t)
		case <-e.stop:
			return false
		default:
			return true
		}
	}
}

func (e *Engine) idle() bool {
	for _, s := range e.slots {
		if s.task != nil {
			return false
		}
	}
	return true
}

// admit gives free slots to the tasks that wait longest, each the slot whose cache
// begins like its prompt.
func (e *Engine) admit() {
	for len(e.waiting) > 0 {
		t := e.waiting[0]
		if t.ctx.Err() != nil {
			e.waiting = e.waiting[1:] // Generate has returned
			continue
		}
		var best *slot
		for _, s := range e.slots {
			if s.task == nil && (best == nil || common(s.cached, t.prompt) > common(best.cached, t.prompt)) {
				best = s
			}
		}
		if best == nil {
			return
		}
		e.waiting = e.waiting[1:]
		t.queue.End()
		best.take(e, t)
	}
}

// take starts a task in the slot. The last token of the prompt is always computed, since
// its logits give the first token.
func (s *slot) take(e *Engine, t *task) {
	s.reused = min(common(s.cached, t.prompt), len(t.prompt)-1)
	if memory, err := cpp.GetMemory(e.ctx); err == nil {
		if ok, err := cpp.MemorySeqRm(memory, s.id, cpp.Pos(s.reused), -1); !ok || err != nil {
			s.reused = 0
			_, _ = cpp.MemorySeqRm(memory, s.id, 0, -1) // the whole sequence can always go
		}
	}
	s.cached = append(s.cached[:0], t.prompt[:s.reused]...)
	s.task, s.next, s.output, s.decode = t, s.reused, 0, nil
	_, s.prefill = t.inf.StartPrefill(t.ctx, genaitrace.Prompt{Tokens: len(t.prompt), Cached: &s.reused})
}

// step computes one batch: a token of each slot that decodes, and as much of the others'
// prompts as fits.
func (e *Engine) step() error {
	if err := e.batch.Clear(); err != nil {
		return err
	}
	room := e.cfg.Batch
	for _, s := range e.slots {
		s.logits = -1
		if s.task != nil && s.task.ctx.Err() != nil {
			s.end(nil) // it was cancelled; Generate has said so
		}
		if s.task == nil || s.decode == nil {
			continue
		}
		if err := e.add(s, s.last, true); err != nil {
			return err
		}
		room--
	}
	for _, s := range e.slots {
		if s.task == nil || s.decode != nil {
			continue
		}
		for ; s.next < len(s.task.prompt) && room > 0; room-- {
			last := s.next == len(s.task.prompt)-1
			if err := e.add(s, s.task.prompt[s.next], last); err != nil {
				return err
			}
			s.next++
		}
	}
	if e.batch.NTokens == 0 {
		return nil
	}
	e.steps.Lock()
	status, err := cpp.Decode(e.ctx, e.batch)
	e.steps.Unlock()
	if err != nil || status != 0 {
		return fmt.Errorf("llama: decode ended with %d: %w", status, err)
	}
	for _, s := range e.slots {
		if s.logits >= 0 {
			e.emit(s)
		}
	}
	return nil
}

// add puts a token of the slot into the batch.
func (e *Engine) add(s *slot, token cpp.Token, logits bool) error {
	if logits {
		s.logits = e.batch.NTokens
	}
	err := e.batch.Add(token, cpp.Pos(len(s.cached)), []cpp.SeqId{s.id}, logits)
	s.cached = append(s.cached, token)
	return err
}

// emit takes the next token of the slot, and ends the request with its last one.
func (e *Engine) emit(s *slot) {
	e.steps.Lock()
	token := cpp.SamplerSample(e.greed, e.ctx, s.logits)
	e.steps.Unlock()
	if s.decode == nil {
		s.prefill.End()
		_, s.decode = s.task.inf.StartDecode(s.task.ctx)
	}
	if cpp.VocabIsEOG(e.vocab, token) {
		s.end(&piece{last: true, answer: s.answer("stop")})
		return
	}
	s.decode.Token()
	s.output++
	s.last = token
	var text [64]byte
	n := cpp.TokenToPiece(e.vocab, token, text[:], 0, false)
	s.task.pieces <- piece{text: string(text[:max(n, 0)])}
	if s.output == s.task.limit {
		s.end(&piece{last: true, answer: s.answer("length")})
	}
}

func (s *slot) answer(finish string) Answer {
	return Answer{Input: len(s.task.prompt), Cached: s.reused, Output: s.output, Finish: finish}
}

// end frees the slot; its part of the KV cache stays for the next request.
func (s *slot) end(last *piece) {
	if s.decode != nil {
		s.decode.End()
	}
	s.prefill.End()
	if last != nil {
		s.task.pieces <- *last
	}
	s.task = nil
}

// fail ends everything that is under way.
func (e *Engine) fail(err error) {
	for _, s := range e.slots {
		if s.task != nil {
			s.end(&piece{last: true, answer: s.answer(""), err: err})
		}
		s.cached = s.cached[:0] // what the cache holds is not known any more
	}
	for _, t := range e.waiting {
		t.pieces <- piece{last: true, err: err}
	}
	e.waiting = nil
	if memory, clearErr := cpp.GetMemory(e.ctx); clearErr == nil {
		_ = cpp.MemoryClear(memory, true)
	}
}
