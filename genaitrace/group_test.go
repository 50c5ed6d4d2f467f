package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestTheTasksOfAGroupAreBelowItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx := genaitrace.ContextWith(t.Context(), genaitrace.TenantID("acme"))
		ctx, search := r.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: "handbook"})
		group := r.NewGroup(ctx)
		for i, name := range []string{"search.dense", "search.sparse"} {
			group.Go(name, func(ctx context.Context) error {
				time.Sleep(time.Duration(1+i) * time.Second)
				trace.SpanFromContext(ctx).SetAttributes(attribute.Bool("mine", true))
				_, below := r.StartCall(ctx, genaitrace.Request{Model: name})
				below.End()
				return nil
			})
		}
		require.NoError(t, group.Wait())
		search.End()

		parent := r.span("retrieval handbook").SpanContext()
		for i, name := range []string{"search.dense", "search.sparse"} {
			task := r.span(name)
			assert.Equal(t, parent.SpanID(), task.Parent().SpanID())
			assert.Equal(t, time.Duration(1+i)*time.Second, task.EndTime().Sub(task.StartTime()))
			assert.Equal(t, []string{"genai.tenant.id", "mine"}, keys(task.Attributes()))
			assert.Equal(t, task.SpanContext().SpanID(), r.span("chat "+name).Parent().SpanID())
			task.assertStatus("")
		}
		assert.Empty(t, r.faults())
	})
}

func TestTheFirstTaskThatFailsCancelsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
		group := r.NewGroup(ctx)
		group.Go("fails", func(context.Context) error {
			time.Sleep(time.Second)
			return typedError("index_gone")
		})
		group.Go("waits", func(ctx context.Context) error {
			<-ctx.Done()
			assert.Equal(t, typedError("index_gone"), context.Cause(ctx))
			return ctx.Err()
		})
		group.Go("does not care", func(context.Context) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		synctest.Wait()
		time.Sleep(2 * time.Second)
		group.Go("comes too late", func(ctx context.Context) error { return ctx.Err() })
		assert.Equal(t, typedError("index_gone"), group.Wait())
		assert.Equal(t, typedError("index_gone"), group.Wait(), "the same again")
		search.End()

		r.span("fails").assertStatus("index_gone")
		r.span("waits").assertStatus("") // cancelled is not failed
		r.span("does not care").assertStatus("")
		r.span("comes too late").assertStatus("")
		assert.Equal(t, time.Second, r.span("waits").EndTime().Sub(r.span("waits").StartTime()))
		assert.NoError(t, t.Context().Err(), "the context around is untouched")
	})
}

func TestTheCallerCancelsAGroup(t *testing.T) {
	r := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	group := r.NewGroup(ctx)
	group.Go("waits", func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("search: %w", ctx.Err())
	})
	cancel()
	assert.ErrorIs(t, group.Wait(), context.Canceled)
	r.span("waits").assertStatus("")
}

func TestAPanicOfATaskGoesOnInWait(t *testing.T) {
	for name, value := range map[string]any{"a text": "secret", "an error": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
			group := r.NewGroup(ctx)
			group.Go("panics", func(context.Context) error { panic(value) })
			group.Go("is told", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			for range 2 {
				caught := func() (v any) {
					defer func() { v = recover() }()
					_ = group.Wait()
					return nil
				}()
				crash, ok := caught.(*genaitrace.PanicError)
				require.True(t, ok, "%T", caught)
				assert.Equal(t, value, crash.Value)
				assert.Contains(t, string(crash.Stack), "group_test.go", "where it happened")
				assert.Contains(t, crash.Error(), fmt.Sprint(value))
				assert.Equal(t, value == io.ErrUnexpectedEOF, errors.Is(crash, io.ErrUnexpectedEOF))
			}
			search.End()
			s := r.span("panics")
			s.assertStatus("panic")
			assert.Empty(t, s.Status().Description)
			assert.Len(t, r.recorder.Ended(), 3)
		})
	}
}

func TestATaskWhoseGoroutineExitsHasFailed(t *testing.T) {
	r := record(t)
	group := r.NewGroup(t.Context())
	group.Go("exits", func(context.Context) error { runtime.Goexit(); return nil })
	assert.EqualError(t, group.Wait(), "task: its goroutine exited")
	r.span("exits").assertStatus("_OTHER")
}

func TestAGroupHasALimit(t *testing.T) {
	for _, limit := range []int{1, 3, 0, -1} {
		synctest.Test(t, func(t *testing.T) {
			r := record(t)
			group := r.NewGroup(t.Context())
			group.SetLimit(limit)
			var running, most atomic.Int64
			began := time.Now()
			for range 9 {
				group.Go("task", func(context.Context) error {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second)
					running.Add(-1)
					return nil
				})
			}
			assert.NoError(t, group.Wait())
			want := int64(limit)
			if limit < 1 {
				want = 9
			}
			assert.LessOrEqual(t, most.Load(), want)
			assert.Equal(t, time.Duration(9/want)*time.Second, time.Since(began))
			assert.Len(t, r.spans("task"), 9)
		})
	}
}

func TestAPanicGivesItsSlotBack(t *testing.T) {
	r := record(t)
	group := r.NewGroup(t.Context())
	group.SetLimit(1)
	group.Go("panics", func(context.Context) error { panic("x") })
	group.Go("runs", func(context.Context) error { return nil })
	assert.Panics(t, func() { _ = group.Wait() })
	assert.Len(t, r.recorder.Ended(), 2)
}

// The span around is over when its tasks still run: the trace is whole, but its times
// say something else than it did. That is counted and not passed over.
func TestATaskThatOutlivesTheSpanAboveIsAFault(t *testing.T) {
	reported := handled(t)
	r := record(t)
	ctx, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
	group := r.NewGroup(ctx)
	release := make(chan struct{})
	group.Go("in time", func(context.Context) error { return nil })
	require.Eventually(t, func() bool { return len(r.spans("in time")) == 1 }, time.Minute, time.Millisecond)
	for range 2 {
		group.Go("too late", func(context.Context) error { <-release; return nil })
	}
	search.End()
	close(release)
	require.NoError(t, group.Wait())

	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultParent: 2}, r.faults())
	require.Len(t, reported(), 1)
	assert.ErrorContains(t, reported()[0], "call Wait before you end that")
	assert.False(t, r.span("in time").has(semconv.GenAISpanOutlivedParentKey))
	for _, s := range r.spans("too late") {
		assert.True(t, s.value(semconv.GenAISpanOutlivedParentKey).AsBool())
		assert.Equal(t, r.span("retrieval").SpanContext().SpanID(), s.Parent().SpanID())
	}
}

func TestTheNamesOfTasksAreBounded(t *testing.T) {
	r := record(t)
	group := r.NewGroup(t.Context())
	group.SetLimit(1)
	for i := range 150 {
		group.Go(fmt.Sprint("n", i), func(context.Context) error { return nil })
	}
	group.Go("", func(context.Context) error { return nil })
	require.NoError(t, group.Wait())
	assert.Len(t, r.spans("task"), 51)
}

// Tasks run, and errors and panics count, where nothing records too.
func TestAGroupWorksWhereNothingRecords(t *testing.T) {
	var nilTracer *genaitrace.Tracer
	unsampled := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))))
	for name, group := range map[string]*genaitrace.Group{
		"unsampled": unsampled.NewGroup(t.Context()), "nil Tracer": nilTracer.NewGroup(t.Context()),
		"zero Tracer": new(genaitrace.Tracer).NewGroup(t.Context()), "zero Group": {},
	} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int64
			group.SetLimit(2)
			for range 5 {
				group.Go("task", func(ctx context.Context) error {
					ran.Add(1)
					return ctx.Err()
				})
			}
			group.Go("fails", func(context.Context) error { time.Sleep(time.Millisecond); return io.ErrNoProgress })
			_ = group.Wait()
			assert.GreaterOrEqual(t, ran.Load(), int64(5))
		})
	}
	empty := unsampled.NewGroup(t.Context())
	assert.NoError(t, empty.Wait())
	assert.NoError(t, new(genaitrace.Group).Wait())
}

func TestAGroupIsSafeForConcurrentUse(t *testing.T) {
	r := record(t)
	ctx, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
	group := r.NewGroup(ctx)
	var tasks []func()
	for i := range 8 {
		tasks = append(tasks, func() {
			for j := range 20 {
				group.SetLimit(1 + (i+j)%3)
				group.Go("task", func(context.Context) error {
					if j == 19 {
						return typedError("last")
					}
					return nil
				})
			}
		})
	}
	together(tasks...)
	assert.Equal(t, typedError("last"), group.Wait())
	search.End()
	assert.Len(t, r.spans("task"), 160)
	assert.Empty(t, r.faults())
}

// A task has no role, which the record of an error must have; what failed in it has one,
// and a record of its own.
func TestATaskThatFailsLeavesTheRecordToWhatFailedInIt(t *testing.T) {
	tr, captured := observed(t)
	group := tr.NewGroup(t.Context())
	group.Go("search.dense", func(ctx context.Context) (err error) {
		_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{})
		defer search.EndErr(&err)
		return typedError("index_gone")
	})
	require.Error(t, group.Wait())
	logged := logsNamed(captured(), semconv.EventGenAIException)
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0].Attributes, semconv.GenAISpanRole(semconv.GenAISpanRoleRetrieval))
}
