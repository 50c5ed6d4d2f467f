package cli

import (
	"bytes"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

func TestSettleWaitsForQuiet(t *testing.T) {
	const quiet, grace = 300 * time.Millisecond, 5 * time.Second
	for _, tt := range []struct {
		name     string
		arrivals []time.Duration // after the start
		want     time.Duration
	}{
		{"nothing arrives", nil, quiet},
		{"something arrived before", []time.Duration{-time.Minute}, quiet},
		{"something arrives in time", []time.Duration{200 * time.Millisecond, 450 * time.Millisecond}, 750 * time.Millisecond},
		{"something arrives after quiet", []time.Duration{400 * time.Millisecond}, quiet},
		{"it never becomes quiet", every(100*time.Millisecond, 10*time.Second), grace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var last atomic.Pointer[time.Time]
				last.Store(new(time.Time))
				for _, after := range tt.arrivals {
					time.AfterFunc(after, func() { last.Store(new(began.Add(after))) })
				}
				synctest.Wait()
				settle(func() time.Time { return *last.Load() }, quiet, grace, nil)
				assert.Equal(t, tt.want, time.Since(began))
			})
		})
	}
}

func TestSettleGivesUpAtASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		time.AfterFunc(time.Second, func() { signals <- os.Interrupt })
		began := time.Now()
		settle(time.Now, time.Minute, time.Hour, signals)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

func every(step, until time.Duration) []time.Duration {
	var times []time.Duration
	for t := step; t <= until; t += step {
		times = append(times, t)
	}
	return times
}

// Where the source does not say where the parent is, that of a server may be elsewhere.
func TestTheParentOfAServerMayBeElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		span capture.Span
		told bool
	}{
		"server":         {capture.Span{Kind: trace.SpanKindServer}, false},
		"consumer":       {capture.Span{Kind: trace.SpanKindConsumer}, false},
		"server, local":  {capture.Span{Kind: trace.SpanKindServer, ParentOrigin: capture.OriginLocal}, true},
		"internal":       {capture.Span{Kind: trace.SpanKindInternal}, true},
		"client, remote": {capture.Span{Kind: trace.SpanKindClient, ParentOrigin: capture.OriginRemote}, false},
	} {
		var stderr bytes.Buffer
		c.span.TraceID, c.span.SpanID, c.span.ParentID = trace.TraceID{1}, trace.SpanID{1}, trace.SpanID{2}
		s := server{app: &app{stderr: &stderr}}
		s.noteOpen(&capture.Capture{Spans: []*capture.Span{&c.span}})
		assert.Equal(t, c.told, stderr.Len() > 0, "%s: %s", name, &stderr)
	}
}
