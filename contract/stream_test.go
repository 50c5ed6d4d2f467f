package contract_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

func randomBytes(r *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func TestTheOrderAndTheChunksOfSpansDoNotMatter(t *testing.T) {
	c := parse(t, everything)
	seen := map[string]bool{}
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 1))
		got := randomCapture(randomBytes(r, 2000))
		withoutTwins(got)
		want := c.Check(got)
		for _, f := range want.Findings {
			seen[f.Rule] = true
		}
		for range 3 {
			spans := slices.Clone(got.Spans)
			r.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
			k := c.NewChecker()
			k.Add(&capture.Capture{Metrics: got.Metrics})
			for len(spans) > 0 {
				n := 1 + r.IntN(len(spans))
				k.Add(&capture.Capture{Spans: spans[:n:n]})
				spans = spans[n:]
			}
			k.Add(&capture.Capture{Logs: got.Logs})
			have := k.Report()
			require.Equal(t, listed(want.Findings), listed(have.Findings), "seed %d", seed)
			require.Equal(t, listed(want.Accepted), listed(have.Accepted), "seed %d", seed)
			require.Equal(t, want.Rules, have.Rules, "seed %d", seed)
			require.Equal(t, want.Requests, have.Requests, "seed %d", seed)
			require.Equal(t, want.Summary(), have.Summary(), "seed %d", seed)
		}
	}
	assert.Greater(t, len(seen), 45, "the captures break most rules")
}

// withoutTwins gives spans whose identifier is taken one of their own: which of two
// is the parent depends on their order.
func withoutTwins(got *capture.Capture) {
	type id struct {
		trace trace.TraceID
		span  trace.SpanID
	}
	seen := map[id]bool{}
	for i, s := range got.Spans {
		if seen[id{s.TraceID, s.SpanID}] {
			s.SpanID = spanID(1, i)
		}
		seen[id{s.TraceID, s.SpanID}] = true
	}
}

// listed shows findings with all that they hold.
func listed(findings []contract.Finding) string {
	var b strings.Builder
	for i := range findings {
		b.WriteString(findings[i].Text())
	}
	return b.String()
}

// requestsOf makes n traces, each of its own minute.
func requestsOf(n int) []*node {
	var all []*node
	for i := range n {
		at := float64(i) * 60_000
		all = append(all, span("gateway", at, at+100, span("call", at+1, at+90)))
	}
	return all
}

const gatewayAndCall = `
spans:
  gateway: {match: {name: gateway}}
  call: {match: {name: call}, parent: {is: gateway}}
requests: {chat: {root: gateway, requires: [call]}}
`

func TestATraceIsCheckedOnceItIsQuiet(t *testing.T) {
	c := parse(t, gatewayAndCall)
	k := c.NewChecker(contract.WithQuiet(time.Minute))
	for _, s := range traces(requestsOf(1000)...).Spans {
		k.Add(&capture.Capture{Spans: []*capture.Span{s}})
	}
	late := span("call", 5, 6, func(s *capture.Span) { s.SpanID, s.ParentID = spanID(1, 7), spanID(1, 1) })
	k.Add(traces(late))
	r := k.Report()
	assert.Empty(t, r.Findings)
	assert.Equal(t, 1000, r.Requests["chat"])
	assert.Equal(t, 1000, r.Traces)
	assert.Equal(t, 1, r.Late, "its trace was checked long ago")
	assert.Zero(t, r.Evicted)
	assert.Contains(t, r.Summary(), ", 1 late span not checked")
}

func TestASpanThatComesLateIsStillOfItsTrace(t *testing.T) {
	// Each root comes after the calls of the next ten traces.
	c := parse(t, gatewayAndCall)
	k := c.NewChecker(contract.WithQuiet(time.Hour))
	spans := traces(requestsOf(200)...).Spans
	for i := 1; i < len(spans); i += 2 {
		k.Add(&capture.Capture{Spans: []*capture.Span{spans[i]}})
		if i > 20 {
			k.Add(&capture.Capture{Spans: []*capture.Span{spans[i-21]}})
		}
	}
	for i := len(spans) - 20; i < len(spans); i += 2 {
		k.Add(&capture.Capture{Spans: []*capture.Span{spans[i]}})
	}
	r := k.Report()
	assert.Empty(t, r.Findings)
	assert.Zero(t, r.Late)
	assert.Equal(t, 200, r.Requests["chat"])
}

// A host whose clock is a century ahead must not make all other traces look quiet.
func TestAClockThatIsFarAheadClosesNoOtherTrace(t *testing.T) {
	c := parse(t, gatewayAndCall)
	century := float64(100 * 365 * 24 * time.Hour / time.Millisecond)
	for _, broken := range []int{1, 2, 50} {
		t.Run(fmt.Sprint(broken), func(t *testing.T) {
			k := c.NewChecker(contract.WithQuiet(time.Minute))
			var all []*node
			for i := range 200 {
				at := float64(i) * 100
				all = append(all, span("gateway", at, at+900, span("call", at+1, at+90)))
			}
			for i := range broken {
				at := century + float64(i)
				all = append(all, span("gateway", at, at+900, span("call", at+1, at+90)))
			}
			spans := traces(all...).Spans
			// Calls first, as exporters send them; ten requests are under way at a time.
			slices.SortStableFunc(spans, func(a, b *capture.Span) int {
				return int(a.End.Sub(epoch).Milliseconds()%int64(century)) - int(b.End.Sub(epoch).Milliseconds()%int64(century))
			})
			for _, s := range spans {
				k.Add(&capture.Capture{Spans: []*capture.Span{s}})
			}
			r := k.Report()
			assert.Empty(t, r.Findings)
			assert.Zero(t, r.Late)
			assert.Equal(t, 200+broken, r.Requests["chat"])
		})
	}
}

func TestOpenTracesAreBoundedInBytes(t *testing.T) {
	c := parse(t, gatewayAndCall)
	k := c.NewChecker(contract.WithQuiet(time.Hour), contract.WithMaxOpenBytes(20_000))
	for i := range 500 { // all at once, and none of them quiet
		k.Add(traces(span("gateway", 0, 100, span("call", 1, 90), func(s *capture.Span) { s.TraceID = traceID(i + 1) })))
	}
	r := k.Report()
	assert.Greater(t, r.Evicted, 400)
	assert.Contains(t, r.Summary(), fmt.Sprintf(", %d traces checked early", r.Evicted))
}

func TestAnOddCaptureDoesNotPanic(t *testing.T) {
	c := parse(t, everything)
	k := c.NewChecker(contract.WithQuiet(time.Second))
	k.Add(nil)
	k.Add(&capture.Capture{})
	k.Add(&capture.Capture{Spans: []*capture.Span{nil, {}, {}}, Metrics: []*capture.Metric{nil, {}}, Logs: []*capture.Log{nil, {}}, Dropped: 3})
	same := &capture.Span{Name: "job", SpanID: spanID(1, 1), TraceID: traceID(1), Start: ms(0), End: ms(1)}
	k.Add(&capture.Capture{Spans: []*capture.Span{same, same}})
	r := k.Report()
	assert.Equal(t, 2, r.Spans, "two are there twice")
	assert.Equal(t, 3, r.Dropped)
	assert.Contains(t, rulesOf(r), "topology.repeated")
	assert.True(t, parse(t, roleOfJobs).Check(&capture.Capture{}).Empty())
}

func TestAContractIsSafeForConcurrentUse(t *testing.T) {
	c := parse(t, everything)
	want := listed(c.Check(small()).Findings)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				assert.Equal(t, want, listed(c.Check(small()).Findings))
			}
		})
	}
	wait.Wait()
}

// An exporter that had no answer in time sends its spans again.
func TestWhatIsDeliveredTwiceCountsOnce(t *testing.T) {
	c := parse(t, `
spans:
  gateway: {match: {name: gateway}, count: {max: 1}}
  call: {match: {name: call}, parent: {is: gateway}, count: {per: gateway, exactly: 1}}
requests: {chat: {root: gateway, requires: [call]}}
limits: {spans_per_trace: 2}
`)
	for _, quiet := range []time.Duration{0, time.Minute} {
		k := c.NewChecker(contract.WithQuiet(quiet))
		for range 3 { // decoded anew each time
			k.Add(traces(span("gateway", 0, 100, text("k", "v"), event("e", 5), link(7, 8), span("call", 1, 90))))
		}
		r := k.Report()
		assert.Equal(t, []string{"topology.repeated"}, rulesOf(r))
		assert.False(t, r.Failed(false))
		require.Len(t, r.Findings, 2)
		assert.Equal(t, "gateway came 3 times, the same in everything", r.Findings[1].Message)
		assert.Equal(t, 2, r.Spans)
		assert.Equal(t, map[string]int{"chat": 1}, r.Requests)
	}
}
