package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A verdict is whether one thing that an instrumentation says is true.
type verdict int

const (
	unasked verdict = iota
	right
	silent // where there is something to say
	wrong
)

// A cell is what one column says of one row.
type cell struct {
	row                 string
	ttft, usage, finish verdict
	failed, marked      bool // the server's failure; its status is an error
	unended             bool
	unread              bool     // the client's library stopped before the answer's end
	notes               []string // on what is not right
}

// ok is whether all of it is right.
func (c cell) ok() bool {
	good := func(v verdict) bool { return v == unasked || v == right }
	return good(c.ttft) && good(c.usage) && good(c.finish) && c.failed == c.marked && !c.unended
}

func (c *cell) notef(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// slack is what a time may be off, for rounding and for what a library does between
// reading a chunk and stamping it.
const slack = time.Millisecond

// judge compares what a column said of a row with the truth.
func judge(c column.Column, name string, is truth, log writeLog, sent, by time.Time, spans *spanLog) cell {
	out := cell{row: name, failed: is.failed}
	if out.unended = !spans.settled(); out.unended {
		out.notef("a span never ended")
	}
	span := spans.call()
	if span == nil {
		out.ttft, out.usage, out.finish = missing(!log.began.IsZero()), missing(!is.silent && is.usage != usage{}), missing(is.finish != nil)
		return out
	}
	out.judgeTTFT(c, span, log, sent, by)
	attrs := attribute.NewSet(slices.Clone(span.Attributes())...) // NewSet sorts what it gets
	out.judgeUsage(&attrs, is)
	out.judgeFinish(c, &attrs, is)
	if out.marked = span.Status().Code == codes.Error; out.marked != out.failed {
		out.notef("status %v", span.Status().Code)
	}
	return out
}

func missing(expected bool) verdict {
	if expected {
		return silent
	}
	return unasked
}

func (c *cell) judgeTTFT(col column.Column, span sdktrace.ReadOnlySpan, log writeLog, sent, by time.Time) {
	c.ttft = missing(!log.began.IsZero())
	if col.FirstToken == nil {
		return
	}
	said, ok := col.FirstToken(span, sent)
	switch {
	case !ok && c.ttft == silent:
		c.notef("no TTFT")
	case !ok:
	case log.began.IsZero():
		c.ttft = wrong
		c.notef("TTFT %v where no token came", said.Sub(span.StartTime()))
	case said.Before(log.began.Add(-slack)) || said.After(by.Add(slack)):
		c.ttft = wrong
		c.notef("TTFT %v, true is %v to %v", since(span, said), since(span, log.began), since(span, by))
	default:
		c.ttft = right
	}
}

func since(span sdktrace.ReadOnlySpan, t time.Time) time.Duration {
	return t.Sub(span.StartTime()).Round(10 * time.Microsecond)
}

func (c *cell) judgeUsage(attrs *attribute.Set, is truth) {
	if is.silent {
		return
	}
	c.usage = missing(is.usage != usage{})
	input, hasInput := attrs.Value(genaiconv.UsageInputTokensKey)
	output, hasOutput := attrs.Value(genaiconv.UsageOutputTokensKey)
	if !hasInput && !hasOutput {
		return
	}
	if c.usage = right; hasInput != hasOutput || (usage{int(input.AsInt64()), int(output.AsInt64())}) != is.usage {
		c.usage = wrong
		c.notef("usage %s/%s, true is %v", input.String(), output.String(), is.usage)
	}
}

func (c *cell) judgeFinish(col column.Column, attrs *attribute.Set, is truth) {
	c.finish = missing(len(is.finish) > 0)
	var said []string
	if v, ok := attrs.Value(genaiconv.ResponseFinishReasonsKey); ok {
		said = v.AsStringSlice()
	} else if v, ok := attrs.Value(col.StopReason); ok {
		said = []string{v.AsString()}
	} else {
		return
	}
	if c.finish = right; !slices.Equal(said, is.finish) {
		c.finish = wrong
		c.notef("finish %v, true is %v", said, is.finish)
	}
}

// A spanLog keeps the spans of one cell.
type spanLog struct {
	mu             sync.Mutex
	started, ended int
	spans          []sdktrace.ReadOnlySpan
}

func (l *spanLog) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started++
}

func (l *spanLog) OnEnd(s sdktrace.ReadOnlySpan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
	l.spans = append(l.spans, s)
}

func (*spanLog) Shutdown(context.Context) error   { return nil }
func (*spanLog) ForceFlush(context.Context) error { return nil }

// settled is whether each span that started has ended.
func (l *spanLog) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started > 0 && l.started == l.ended
}

// settle waits until then, or until it is in vain.
func (l *spanLog) settle(patience time.Duration) {
	for end := time.Now().Add(patience); !l.settled() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// call is the span of the call, where it has ended.
func (l *spanLog) call() sdktrace.ReadOnlySpan {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range slices.Backward(l.spans) {
		if s.SpanKind() == trace.SpanKindClient {
			return s
		}
	}
	return nil
}
