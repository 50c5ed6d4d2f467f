package genaitrace_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
)

func TestDoRecordsACallWithOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		got, err := genaitrace.Do(t.Context(), r.Tracer, genaitrace.Request{Model: "m"}, func(ctx context.Context) (string, error) {
			time.Sleep(30 * time.Millisecond)
			call := genaitrace.CallFromContext(ctx)
			assert.Equal(t, call.Span().SpanContext(), trace.SpanContextFromContext(ctx), "what runs below is a child")
			call.SetUsage(genaitrace.Usage{OutputTokens: new(2)})
			return "answer", nil
		})
		require.NoError(t, err)
		assert.Equal(t, "answer", got)
		s := r.span("chat m")
		s.assertStatus("")
		assert.Equal(t, 30*time.Millisecond, s.EndTime().Sub(s.StartTime()))
		assert.Equal(t, map[string]int64{"gen_ai.usage.output_tokens": 2}, usageKeys(s))
	})
}

func TestDoPassesErrorsUnchangedAndRecordsThem(t *testing.T) {
	for name, tt := range map[string]struct {
		err      error
		wantType string
	}{
		"a typed one":          {errReset, "reset"},
		"a wrapped one":        {fmt.Errorf("post: %w", errReset), "reset"},
		"a dropped connection": {io.EOF, "_OTHER"},
		"cancelled":            {context.Canceled, ""},
		"too late":             {context.DeadlineExceeded, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			got, err := genaitrace.Do(t.Context(), r.Tracer, genaitrace.Request{}, func(context.Context) (int, error) { return 7, tt.err })
			assert.Equal(t, 7, got)
			assert.Equal(t, tt.err, err)
			r.span("chat").assertStatus(tt.wantType)
		})
	}
}

// A caller of Do that goes away, or whose time is up, while it waits: the call ends then,
// once, whatever the function makes of it.
func TestDoEndsWithItsContext(t *testing.T) {
	const took = 25 * time.Millisecond
	for name, tt := range map[string]struct {
		bound    func(context.Context) (context.Context, context.CancelFunc)
		answers  bool // although its context has ended
		wantType string
	}{
		"cancelled":                      {bound: cancelledAfter(took)},
		"a deadline":                     {bound: deadlineAfter(took), wantType: "timeout"},
		"answered although cancelled":    {bound: cancelledAfter(took), answers: true},
		"answered although it took long": {bound: deadlineAfter(took), answers: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, cancel := tt.bound(t.Context())
				defer cancel()
				_, err := genaitrace.Do(ctx, r.Tracer, genaitrace.Request{}, func(ctx context.Context) (int, error) {
					<-ctx.Done()
					if tt.answers {
						return 1, nil
					}
					return 0, ctx.Err()
				})
				assert.Equal(t, tt.answers, err == nil)
				s := r.span("chat")
				s.assertStatus(tt.wantType)
				assert.Equal(t, took, s.EndTime().Sub(s.StartTime()))
				assert.Equal(t, took.Seconds(), r.once("gen_ai.client.inference.duration"))
			})
		})
	}
}

func cancelledAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

func deadlineAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

func TestAPanicPassesDo(t *testing.T) {
	r := record(t)
	assert.PanicsWithValue(t, "do", func() {
		_, _ = genaitrace.Do(t.Context(), r.Tracer, genaitrace.Request{}, func(context.Context) (int, error) { panic("do") })
	})
	r.span("chat").assertStatus("panic")
}

func TestDoRunsWhereNothingRecords(t *testing.T) {
	nothing := genaitrace.New(genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	for _, tr := range []*genaitrace.Tracer{nil, nothing} {
		got, err := genaitrace.Do(t.Context(), tr, genaitrace.Request{}, func(ctx context.Context) (int, error) {
			genaitrace.CallFromContext(ctx).SetFinish("stop")
			return 7, io.EOF
		})
		assert.Equal(t, 7, got)
		assert.Equal(t, io.EOF, err)
		assert.PanicsWithValue(t, "do", func() {
			_, _ = genaitrace.Do(t.Context(), tr, genaitrace.Request{}, func(context.Context) (int, error) { panic("do") })
		})
	}
}
