package toy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// Model is the only model that the engine has.
const Model = "toy-1"

// Config sizes an engine. Zero fields take the defaults of [New].
type Config struct {
	Slots  int // requests served at the same time; 2
	Queued int // requests that may wait for a slot; 64

	ChunkTokens int           // prompt tokens of one forward pass; 32
	PassTime    time.Duration // of every forward pass over the prompt; 8 ms
	PrefillTime time.Duration // of every prompt token that is not cached; 3 ms
	DecodeTime  time.Duration // of every output token after the first; 12 ms

	CacheBlocks int // blocks of 16 tokens that the prefix cache holds; 256
	MaxTokens   int // output tokens of a request that sets no limit; 256

	// Fault, if set, is asked before output token n leaves, counted from 0. Its
	// error ends the request. It lets a test break the engine in mid-stream.
	Fault func(n int) error
}

func (c *Config) setDefaults() {
	set(&c.Slots, 2)
	set(&c.Queued, 64)
	set(&c.ChunkTokens, 32)
	set(&c.PassTime, 8*time.Millisecond)
	set(&c.PrefillTime, 3*time.Millisecond)
	set(&c.DecodeTime, 12*time.Millisecond)
	set(&c.CacheBlocks, 256)
	set(&c.MaxTokens, 256)
}

func set[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// An Engine answers chat requests. It is safe for concurrent use.
type Engine struct {
	cfg       Config
	tracer    *genaitrace.Tracer
	scheduler *scheduler
	cache     *prefixCache
}

// New makes an engine that records with tracer; with a nil one it records nothing.
func New(cfg Config, tracer *genaitrace.Tracer) *Engine {
	cfg.setDefaults()
	return &Engine{
		cfg:       cfg,
		tracer:    tracer,
		scheduler: newScheduler(cfg.Slots, cfg.Queued),
		cache:     newPrefixCache(cfg.CacheBlocks),
	}
}

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Request is one conversation to go on with.
type Request struct {
	Messages    []Message
	MaxTokens   int      // 0: the engine's limit
	Temperature *float64 // recorded; the rules have nothing to sample
}

// Result says how a request ended.
type Result struct {
	InputTokens  int
	CachedTokens int // of InputTokens
	OutputTokens int
	FinishReason string // stop or length

	// Queue, Prefill and Decode are how long these phases took.
	Queue, Prefill, Decode time.Duration
}

// Generate answers req and hands every token to emit as it leaves. It stops with
// the error of ctx or of emit, and with [ErrOverloaded] where too many requests
// wait.
func (e *Engine) Generate(ctx context.Context, req Request, emit func(token string) error) (res Result, err error) {
	limit := e.cfg.MaxTokens
	if req.MaxTokens > 0 {
		limit = min(limit, req.MaxTokens)
	}
	ctx, inf := e.tracer.StartInference(ctx, genaitrace.Request{
		Provider:    "toy",
		Model:       Model,
		Stream:      true,
		MaxTokens:   limit,
		Temperature: req.Temperature,
	})
	defer inf.EndErr(&err)

	begin := time.Now()
	if err := e.wait(ctx, inf); err != nil {
		return res, err
	}
	res.Queue = time.Since(begin)
	defer e.scheduler.release()

	prompt := e.tokenize(ctx, inf, req.Messages)
	res.InputTokens = len(prompt)

	begin = time.Now()
	res.CachedTokens, err = e.prefill(ctx, inf, prompt)
	if err != nil {
		return res, err
	}
	res.Prefill = time.Since(begin)
	begin = time.Now()
	output, finish, err := e.decode(ctx, inf, answer(req.Messages), limit, emit)
	res.OutputTokens, res.FinishReason, res.Decode = len(output), finish, time.Since(begin)
	inf.SetUsage(genaitrace.Usage{
		InputTokens:  &res.InputTokens,
		CachedTokens: &res.CachedTokens,
		OutputTokens: &res.OutputTokens,
	})
	if err != nil {
		return res, err
	}
	inf.SetFinish(finish)
	e.postprocess(ctx, inf, prompt, output)
	return res, nil
}

// wait is the time in the queue.
func (e *Engine) wait(ctx context.Context, inf *genaitrace.Inference) (err error) {
	ctx, queue := inf.StartQueue(ctx)
	defer queue.EndErr(&err)
	return e.scheduler.acquire(ctx)
}

// tokenize renders the conversation as the model would see it and splits it.
func (e *Engine) tokenize(ctx context.Context, inf *genaitrace.Inference, messages []Message) []string {
	_, phase := inf.StartTokenize(ctx)
	defer phase.End()

	var prompt strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&prompt, "<|%s|>%s\n", m.Role, m.Content)
	}
	prompt.WriteString("<|assistant|>")
	tokens := tokenize(prompt.String())
	phase.SetInputTokens(len(tokens))
	return tokens
}

// prefill computes what the cache does not hold, one chunk a forward pass. The
// last pass yields the first output token.
func (e *Engine) prefill(ctx context.Context, inf *genaitrace.Inference, prompt []string) (cached int, err error) {
	cached = e.cache.longest(prompt)
	ctx, phase := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: len(prompt), Cached: &cached})
	defer phase.EndErr(&err)

	for done := cached; done < len(prompt); {
		n := min(e.cfg.ChunkTokens, len(prompt)-done)
		if err := sleep(ctx, e.cfg.PassTime+time.Duration(n)*e.cfg.PrefillTime); err != nil {
			return cached, err
		}
		done += n
	}
	e.cache.add(prompt)
	return cached, nil
}

// decode lets the answer out token by token and returns what left.
func (e *Engine) decode(ctx context.Context, inf *genaitrace.Inference, answer []string, limit int, emit func(string) error) (output []string, finish string, err error) {
	ctx, phase := inf.StartDecode(ctx)
	defer phase.EndErr(&err)

	for n, token := range answer {
		if n == limit {
			inf.EarlyStop(semconv.GenAIEarlyStopReasonLength)
			return answer[:n], "length", nil
		}
		if n > 0 {
			if err := sleep(ctx, e.cfg.DecodeTime); err != nil {
				return answer[:n], "", err
			}
		}
		if e.cfg.Fault != nil {
			if err := e.cfg.Fault(n); err != nil {
				return answer[:n], "", err
			}
		}
		phase.Token()
		if err := emit(token); err != nil {
			return answer[:n+1], "", err
		}
	}
	return answer, "stop", nil
}

// postprocess keeps the answer in the cache: it is the start of the next turn's
// prompt.
func (e *Engine) postprocess(ctx context.Context, inf *genaitrace.Inference, prompt, output []string) {
	_, phase := inf.StartPostprocess(ctx)
	defer phase.End()
	e.cache.add(append(prompt[:len(prompt):len(prompt)], output...))
}

// sleep stands for work that takes d.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
