//go:build unix

package contract_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/capture"
)

// aroundRoles has every rule that looks at spans around a span.
const aroundRoles = `
spans:
  gateway: {match: {name: gateway}, optional: true}
  call: {match: {name: call}, optional: true, count: {per: gateway, max: 2000000}, parent: {within: [gateway, call], root: true}}
  engine: {match: {name: engine}, optional: true, count: {per: call, max: 2000000}, parent: {within: gateway, link: call, root: true}}
requests: {chat: {root: gateway, optional: true}, each: {root: call, when: {contains: [engine, call]}, optional: true}}
propagation: [{from: call, to: engine, when: {contains: engine}, optional: true}, {from: gateway, to: call, link: true, optional: true}]
timing:
  - {id: a, on: gateway, optional: true, at_most: [engine.duration, call.duration + 1000h]}
  - {id: b, on: call, optional: true, at_most: [call.duration? + engine.duration?, 1000h], when: {contains: engine}}
  - {id: c, on: call, optional: true, order: [start, engine.start, engine.end], tolerance: {abs: 1000h}}
agree:
  - {keys: [a, b], across: [call, engine], per: call, optional: true}
  - {keys: [a], per: gateway, optional: true}
limits: {siblings: 2000000, spans_per_trace: 2000000}
topology: {isolate_by: [a]}
`

// shapes are traces of n spans that a careless walk makes quadratic.
var shapes = map[string]func(n int) *capture.Capture{
	"wide": func(n int) *capture.Capture {
		root := span("gateway", 0, float64(n))
		for i := range n / 2 {
			root.children = append(root.children, span("call", float64(i), float64(i+1), whole("a", 1), span("engine", float64(i), float64(i+1), whole("a", 1))))
		}
		return traces(root)
	},
	"flat": func(n int) *capture.Capture {
		root := span("call", 0, float64(n), whole("a", 1))
		for i := range n {
			root.children = append(root.children, span([]string{"call", "engine"}[i%2], float64(i), float64(i+1), whole("b", 1)))
		}
		return traces(span("gateway", 0, float64(n), root))
	},
	"deep": func(n int) *capture.Capture {
		top := span("engine", 0, 1, whole("a", 1))
		for i := range n {
			top = span([]string{"gateway", "call", "call"}[i%3], 0, 1, whole("a", 1), top)
		}
		return traces(top)
	},
	"roots": func(n int) *capture.Capture {
		got := &capture.Capture{}
		for i := range n {
			for _, s := range traces(span([]string{"call", "gateway"}[i%2], 0, 1, server, orphaned(capture.OriginRemote), link(9, i))).Spans {
				s.SpanID = spanID(7, i)
				got.Spans = append(got.Spans, s)
			}
		}
		return got
	},
	"broken": func(n int) *capture.Capture { // each end of a hop alone
		var all []*node
		for range n / 2 {
			all = append(all, span("call", 0, 100, client), span("engine", 1, 90, server))
		}
		return traces(all...)
	},
}

// One trace of 32,000 spans takes about as much computing as 32 traces of 1,000; what
// looks at all spans for each span takes 32 times as much.
func TestLargeTracesTakeWorkInProportion(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	c := parse(t, aroundRoles+"severity: {\"*\": error}\n")
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			small, large := make(1_000), make(32_000)
			var apart, together time.Duration
			for range 3 { // what else the process does, such as collecting garbage, passes
				apart = computing(func() {
					for range 32 {
						c.Check(small)
					}
				})
				if together = computing(func() { c.Check(large) }); together < 4*apart {
					return
				}
			}
			assert.Fail(t, "too much", "%v for one trace, %v for the same in 32", together, apart)
		})
	}
}

// computing is how long the process computes in f, whatever else the machine does.
func computing(f func()) time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC() // nothing of before
	before := used()
	f()
	return used() - before
}

// BenchmarkCheckOneTrace checks a single large trace.
func BenchmarkCheckOneTrace(b *testing.B) {
	c := parse(b, aroundRoles)
	for name, make := range shapes {
		got := make(20_000)
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			for b.Loop() {
				c.Check(got)
			}
			b.ReportMetric(float64(b.N)*float64(len(got.Spans))/b.Elapsed().Seconds(), "spans/s")
		})
	}
}
