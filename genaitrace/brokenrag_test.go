package genaitrace_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A reporter stands for the *testing.T of a test that is to fail.
type reporter struct {
	mu   sync.Mutex
	text strings.Builder
	end  []func()
}

func (*reporter) Helper()             {}
func (*reporter) Logf(string, ...any) {}
func (r *reporter) Failed() bool      { return r.said() != "" }
func (r *reporter) Cleanup(f func())  { r.end = append(r.end, f) }
func (r *reporter) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.text, format+"\n", args...)
}
func (r *reporter) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func (r *reporter) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// A ragService answers from what its search finds in two indexes at once.
type ragService struct {
	*genaitrace.Tracer

	// search asks both indexes, each by ask.
	search func(ctx context.Context, tr *genaitrace.Tracer)
}

// ask is the question to one index. The second is slow.
func ask(ctx context.Context, tr *genaitrace.Tracer, index string) error {
	_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: index, Type: semconv.GenAIRetrieverTypeDense, TopK: 5})
	defer search.End()
	time.Sleep(20 * time.Millisecond)
	if index == "tickets" {
		time.Sleep(time.Second)
	}
	search.SetHits(3)
	return ctx.Err()
}

func (s ragService) answer(ctx context.Context) {
	ctx, entry := s.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /v1/ask"})
	defer entry.End()
	s.search(ctx, s.Tracer)
	_, call := s.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
	defer call.End()
	time.Sleep(100 * time.Millisecond)
	call.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct")
	call.SetUsage(genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(512)})
	call.SetFinish("stop")
}

// endsInAGoroutine starts a span here and ends it in a goroutine that nobody waits for:
// it takes the first answer, and the request is over before the span is.
func endsInAGoroutine(ctx context.Context, tr *genaitrace.Tracer) {
	found := make(chan string, 2)
	for _, index := range []string{"handbook", "tickets"} {
		searchCtx, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: "all", Type: semconv.GenAIRetrieverTypeHybrid})
		go func() {
			defer search.End()
			_ = ask(searchCtx, tr, index)
			search.SetHits(3)
			found <- index
		}()
	}
	<-found
}

// losesItsContext hands the questions to workers over a channel that carries no
// context: what they record is in traces of its own.
func losesItsContext(_ context.Context, tr *genaitrace.Tracer) {
	questions := make(chan string)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for index := range questions {
				_ = ask(context.Background(), tr, index)
			}
		})
	}
	for _, index := range []string{"handbook", "tickets"} {
		questions <- index
	}
	close(questions)
	workers.Wait()
}

// searchesInAGroup is both of them mended.
func searchesInAGroup(ctx context.Context, tr *genaitrace.Tracer) {
	group := tr.NewGroup(ctx)
	for _, index := range []string{"handbook", "tickets"} {
		group.Go("search."+index, func(ctx context.Context) error { return ask(ctx, tr, index) })
	}
	_ = group.Wait()
}

// The two ways to break a trace that fan-out invites, found by the contract, and the
// way that has neither.
func TestTheContractCatchesABrokenFanOutAndAGroupMendsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		search func(context.Context, *genaitrace.Tracer)
		found  []string // empty: the contract holds
	}{
		"the span ends in a goroutine":        {endsInAGoroutine, []string{"topology.outlives", "retrieval all", "after its parent POST /v1/ask"}},
		"the context is lost over a channel":  {losesItsContext, []string{"span.parent", "retrieval span is not inside pipeline", "seen      2 times"}},
		"the searches are tasks of one group": {searchesInAGroup, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				verdict := &reporter{}
				obs := contracttest.New(verdict, contracttest.Builtin("rag"))
				tr := genaitrace.New(genaitrace.WithTracerProvider(obs.TracerProvider()), genaitrace.WithMeterProvider(obs.MeterProvider()))
				ragService{tr, tt.search}.answer(t.Context())
				time.Sleep(time.Minute) // all goroutines are through
				obs.Require(verdict, "rag")
				for _, end := range verdict.end {
					end()
				}
				assert.Equal(t, tt.found != nil, verdict.Failed(), verdict.said())
				for _, want := range tt.found {
					assert.Contains(t, verdict.said(), want)
				}
			})
		})
	}
}
