package llama

import (
	"context"
	"errors"
	"fmt"
	"sync"

	cpp "github.com/hybridgroup/yzma/pkg/llama"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// Config says what an engine runs and how.
type Config struct {
	Library string // folder of libllama and what it loads
	Model   string // GGUF file
	Name    string // of the model, in telemetry
	Slots   int    // requests that run together; 0 means 1
	Context int    // tokens of one slot; 0 means 2048
	Batch   int    // tokens of one step; 0 means 512
	Threads int    // 0 means 1
	Tracer  *genaitrace.Tracer
}

// Request is one prompt.
type Request struct {
	Prompt    string
	MaxTokens int // 0 means 16
}

// Answer is what became of it.
type Answer struct {
	Input, Cached, Output int
	Finish                string // stop or length
}

// ErrClosed is what Generate returns once the engine is closed.
var ErrClosed = errors.New("llama: the engine is closed")

// An Engine runs one model. Its methods are safe for concurrent use.
type Engine struct {
	cfg   Config
	model cpp.Model
	ctx   cpp.Context
	vocab cpp.Vocab
	batch cpp.Batch
	greed cpp.Sampler

	tasks chan *task
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once

	slots   []*slot // of the loop alone
	waiting []*task // of the loop alone
	steps   sync.Mutex
}

var loadLibrary sync.Once

// Open loads the library, once a process, and the model.
func Open(cfg Config) (e *Engine, err error) {
	cfg.Slots, cfg.Context = max(cfg.Slots, 1), orDefault(cfg.Context, 2048)
	cfg.Batch, cfg.Threads = orDefault(cfg.Batch, 512), orDefault(cfg.Threads, 1)
	loadLibrary.Do(func() {
		if err = cpp.Load(cfg.Library); err == nil {
			cpp.LogSet(cpp.LogSilent())
			err = cpp.GGMLBackendLoadAllFromPath(cfg.Library)
			cpp.BackendInit()
		}
	})
	if err != nil {
		return nil, fmt.Errorf("llama: library in %s: %w", cfg.Library, err)
	}
	e = &Engine{cfg: cfg, tasks: make(chan *task), stop: make(chan struct{}), done: make(chan struct{})}
	if e.model, err = cpp.ModelLoadFromFile(cfg.Model, cpp.ModelDefaultParams()); err != nil {
		return nil, fmt.Errorf("llama: model %s: %w", cfg.Model, err)
	}
	params := cpp.ContextDefaultParams()
	params.NCtx, params.NBatch, params.NUbatch = uint32(cfg.Slots*cfg.Context), uint32(cfg.Batch), uint32(cfg.Batch)
	params.NSeqMax = uint32(cfg.Slots)
	params.NThreads, params.NThreadsBatch = int32(cfg.Threads), int32(cfg.Threads)
	params.NoPerf = 0 // its own timings are what this is about
	if e.ctx, err = cpp.InitFromModel(e.model, params); err != nil {
		return nil, errors.Join(fmt.Errorf("llama: context: %w", err), cpp.ModelFree(e.model))
	}
	e.vocab = cpp.ModelGetVocab(e.model)
	e.batch = cpp.BatchInit(int32(cfg.Batch), 0, 1)
	e.greed = cpp.SamplerChainInit(cpp.SamplerChainDefaultParams())
	cpp.SamplerChainAdd(e.greed, cpp.SamplerInitGreedy())
	for i := range cfg.Slots {
		e.slots = append(e.slots, &slot{id: cpp.SeqId(i)})
	}
	go e.run()
	return e, nil
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Close fails what is under way and frees the model.
func (e *Engine) Close() error {
	var err error
	e.once.Do(func() {
		close(e.stop)
		<-e.done
		cpp.SamplerFree(e.greed)
		err = errors.Join(cpp.BatchFree(e.batch), cpp.Free(e.ctx), cpp.ModelFree(e.model))
	})
	return err
}

// Parameters is the number of weights.
func (e *Engine) Parameters() uint64 { return cpp.ModelNParams(e.model) }

// ResetTimings sets what llama.cpp measured to zero. Call it where nothing runs.
func (e *Engine) ResetTimings() error {
	e.steps.Lock()
	defer e.steps.Unlock()
	return cpp.PerfContextReset(e.ctx)
}

// Timings are what llama.cpp measured since ResetTimings, of all requests.
func (e *Engine) Timings() cpp.PerfContextData {
	e.steps.Lock()
	defer e.steps.Unlock()
	return cpp.PerfContext(e.ctx)
}

// Generate answers one request: it waits for a slot, and hands each piece of text to
// send as it comes. It returns when the answer is complete, send fails, ctx ends or the
// engine is closed.
func (e *Engine) Generate(ctx context.Context, req Request, send func(piece string) error) (answer Answer, err error) {
	ctx, inf := e.cfg.Tracer.StartInference(ctx, genaitrace.Request{Model: e.cfg.Name, Stream: true, MaxTokens: orDefault(req.MaxTokens, 16)})
	defer inf.EndErr(&err)
	inf.SetEngine(genaitrace.Engine{Backend: "llama.cpp", DecodingStrategy: "greedy"})

	_, tokenize := inf.StartTokenize(ctx)
	tokens := cpp.Tokenize(e.vocab, req.Prompt, true, false)
	tokenize.SetInputTokens(len(tokens))
	tokenize.End()
	limit := orDefault(req.MaxTokens, 16)
	if len(tokens)+limit > e.cfg.Context {
		return answer, fmt.Errorf("llama: %d tokens of prompt and %d of answer are more than the %d of a slot", len(tokens), limit, e.cfg.Context)
	}

	ctx, abandon := context.WithCancel(ctx)
	defer abandon() // tells the loop, which frees the slot at its next step
	t := &task{ctx: ctx, inf: inf, prompt: tokens, limit: limit, pieces: make(chan piece, limit+1)}
	_, t.queue = inf.StartQueue(ctx)
	select {
	case e.tasks <- t:
	case <-ctx.Done():
		return answer, ctx.Err()
	case <-e.stop:
		return answer, ErrClosed
	}
	for {
		select {
		case p := <-t.pieces:
			if p.last {
				answer, err = p.answer, p.err
				inf.SetUsage(genaitrace.Usage{InputTokens: &answer.Input, CachedTokens: &answer.Cached, OutputTokens: &answer.Output})
				if err == nil {
					inf.SetFinish(answer.Finish)
				}
				return answer, err
			}
			if err := send(p.text); err != nil {
				return answer, err
			}
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
}

// task is a request between Generate and the loop.
type task struct {
	ctx    context.Context //nolint:containedctx // a request's, for as long as it is in the engine
	inf    *genaitrace.Inference
	queue  *genaitrace.Phase
	prompt []cpp.Token
	limit  int
	pieces chan piece // holds them all, so the loop never waits for a reader
}

type piece struct {
	text   string
	last   bool
	answer Answer
	err    error
}

// common is how many tokens a and b begin with alike.
func common(a, b []cpp.Token) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
