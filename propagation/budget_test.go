package propagation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// size is what HTTP/2 and gRPC count.
func size(m propagation.Map) (n int) {
	for key, value := range m {
		n += len(key) + len(value) + 32
	}
	return n
}

// bulky is a context with as much of each kind of data as told, in bytes.
func bulky(t testing.TB, state, chain, bag int) context.Context {
	t.Helper()
	var list []string
	for i := 0; state > 0; i++ {
		list = append(list, fmt.Sprintf("v%02d=%s", i, strings.Repeat("s", min(state, 90))))
		state -= 90
	}
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "Tracestate": {strings.Join(list, ",")}}
	ctx := propagation.W3C.Extract(context.Background(), h)
	ctx = propagation.ContextWithCallerMark(ctx)
	if chain > 0 {
		c := propagation.PromptChain{TraceID: trace.SpanContextFromContext(ctx).TraceID()}
		for ; chain > 0; chain -= 100 {
			c.Hops = append(c.Hops, propagation.Hop{Name: strings.Repeat("h", min(chain, 100))})
		}
		ctx = propagation.ContextWithPromptChain(ctx, c)
	}
	if bag > 0 {
		var members []baggage.Member
		for i := 0; bag > 0; i++ {
			m, err := baggage.NewMember(fmt.Sprintf("k%02d", i), strings.Repeat("b", min(bag, 90)))
			require.NoError(t, err)
			members = append(members, m)
			bag -= 90
		}
		b, err := baggage.New(members...)
		require.NoError(t, err)
		ctx = baggage.ContextWithBaggage(ctx, b)
	}
	return ctx
}

func inject(b *propagation.Bridge, ctx context.Context) propagation.Map {
	m := propagation.Map{}
	b.Inject(ctx, m)
	return m
}

// Baggage goes first, then the chain, then the tracestate of others; what ranks
// higher is untouched as long as something below it is left.
func TestWhatDoesNotFitIsLeftOutInAFixedOrder(t *testing.T) {
	for _, tt := range []struct {
		name              string
		state, chain, bag int
		keeps             string // of state, chain, bag: + whole, ~ a part, - nothing
	}{
		{"all fit", 500, 500, 500, "+++"},
		{"baggage is too much", 500, 500, 5700, "++~"},
		{"chain and baggage are too much", 1000, 3100, 500, "+-+"},
		{"the chain leaves no room", 900, 2735, 200, "++-"},
		{"the tracestate leaves little room", 2800, 1000, 2000, "+-~"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := bulky(t, tt.state, tt.chain, tt.bag)
			unbounded := inject(propagation.New(propagation.WithPromptChain(), propagation.WithBudget(1<<20)), ctx)
			bridge := propagation.New(propagation.WithPromptChain())
			got := inject(bridge, ctx)
			assert.LessOrEqual(t, size(got), 4096)
			assert.Equal(t, benchTraceparent, got["traceparent"])
			keeps := ""
			for _, key := range []string{"tracestate", "x-prompt-trace", "baggage"} {
				switch got[key] {
				case unbounded[key]:
					keeps += "+"
				case "":
					keeps += "-"
				default:
					keeps += "~"
				}
			}
			assert.Equal(t, tt.keeps, keeps)

			stats := bridge.Stats()
			assert.EqualValues(t, strings.Count(unbounded["baggage"], "=")-strings.Count(got["baggage"], "="), stats.ShedBaggageMembers)
			assert.EqualValues(t, strings.Count(keeps[1:2], "-"), stats.ShedPromptChains)
			assert.EqualValues(t, 0, stats.ShedStateMembers)
			assert.Equal(t, got, inject(bridge, ctx), "the same each time")
		})
	}
}

func TestATracestateIsCutAsTheSpecificationSays(t *testing.T) {
	long := func(key string) string { return key + "=" + strings.Repeat("l", 130) }
	short := func(key string) string { return key + "=" + strings.Repeat("s", 120) }
	own := "genai=c:1;m:" + strings.Repeat("m", 96) + ";p:" + strings.Repeat("p", 96)
	h := propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "Tracestate": {strings.Join([]string{
		own, short("a"), long("b"), short("c"), long("d"), short("e"), "0x=1", short("f"), long("g"), short("h"), short("i"), short("j"),
	}, ",")}}
	ctx := propagation.W3C.Extract(context.Background(), h)
	const overhead = len("traceparent") + 55 + 32 + len("tracestate") + 32
	for shed, keeps := range [][]string{
		{own, short("a"), long("b"), short("c"), long("d"), short("e"), "0x=1", short("f"), long("g"), short("h"), short("i"), short("j")},
		{own, short("a"), long("b"), short("c"), long("d"), short("e"), "0x=1", short("f"), short("h"), short("i"), short("j")},
		{own, short("a"), long("b"), short("c"), short("e"), "0x=1", short("f"), short("h"), short("i"), short("j")},
		{own, short("a"), short("c"), short("e"), "0x=1", short("f"), short("h"), short("i"), short("j")},
	} {
		want := strings.Join(keeps, ",")
		bridge := propagation.New(propagation.WithBudget(overhead + len(want)))
		got := inject(bridge, ctx)
		assert.True(t, want == got["tracestate"], "%d gone: %s", shed, got["tracestate"])
		assert.EqualValues(t, shed, bridge.Stats().ShedStateMembers)

		got = inject(propagation.New(propagation.WithBudget(overhead+len(want)-1)), ctx)
		assert.Less(t, len(got["tracestate"]), len(want)-100, "one byte less costs a whole member")
		assert.GreaterOrEqual(t, len(got["tracestate"]), 512, "which is what everybody must pass on")
	}
	assert.Equal(t, h["Tracestate"][0], tracestateOf(h["Tracestate"][0]), "a format alone has no budget")
}

// With every format, and the smallest budget, our own member still fits.
func TestOurOwnMemberAlwaysFits(t *testing.T) {
	ctx := bulky(t, 2800, 3000, 5700)
	ctx = propagation.ContextWithMember(ctx, propagation.Member{
		Caller: true, ModelID: strings.Repeat("m", 96), PipelineID: strings.Repeat("p", 96), Keep: true,
	})
	bridge := propagation.New(append(everything, propagation.WithBudget(1))...)
	got := inject(bridge, ctx)
	assert.True(t, strings.HasPrefix(got["tracestate"], "genai=c:1;"), got["tracestate"])
	assert.NotContains(t, got, "x-prompt-trace")
	assert.Equal(t, traceHex, got["trace-id"])
	assert.NotZero(t, bridge.Stats().ShedStateMembers)
}

// Nobody writes what its own kind refuses to read.
func TestAChainThatIsWrittenIsRead(t *testing.T) {
	bridge := propagation.New(propagation.WithPromptChain(), propagation.WithBudget(1<<16))
	for causes, arrives := range map[int]bool{8: true, 32: false} {
		ctx := inSpan(context.Background(), 1)
		for range propagation.MaxHops {
			ids := make([]trace.SpanID, causes)
			for i := range ids {
				ids[i] = spanID(byte(i + 1))
			}
			ctx = propagation.ContextWithHop(ctx, "hop", ids...)
		}
		shed := bridge.Stats().ShedPromptChains
		got := inject(bridge, ctx)
		_, read := propagation.PromptChainFromContext(bridge.Extract(context.Background(), got))
		assert.Equal(t, arrives, read, "%d bytes", len(got["x-prompt-trace"]))
		assert.Equal(t, read, got["x-prompt-trace"] != "")
		assert.Equal(t, !arrives, bridge.Stats().ShedPromptChains > shed)
	}
}

func TestTheMostImportantBaggageStays(t *testing.T) {
	ctx := bulky(t, 0, 0, 5700)
	for range 5 {
		got := inject(propagation.New(), ctx)["baggage"]
		assert.True(t, strings.HasPrefix(got, "k00="), "in the order of the keys")
		assert.NotContains(t, got, "k62=")
		got = inject(propagation.New(propagation.WithBaggageFirst("none", "k62", "k10")), ctx)["baggage"]
		assert.True(t, strings.HasPrefix(got, "k62="))
		assert.Less(t, strings.Index(got, ",k10="), strings.Index(got, ",k00="))
	}
}

func TestBaggageStaysWithinItsOwnLimits(t *testing.T) {
	var bag baggage.Baggage
	for i := range 100 {
		m, err := baggage.NewMemberRaw(fmt.Sprintf("k%03d", i), strings.Repeat("x", i%7))
		require.NoError(t, err)
		bag, err = bag.SetMember(m)
		require.NoError(t, err)
	}
	unwritable, err := baggage.NewMemberRaw("schlüssel", "x")
	require.NoError(t, err)
	bag, err = bag.SetMember(unwritable)
	require.NoError(t, err)
	bridge := propagation.New(propagation.WithBudget(1 << 20))
	got := inject(bridge, baggage.ContextWithBaggage(context.Background(), bag))
	assert.Equal(t, 64, strings.Count(got["baggage"], "="))
	assert.EqualValues(t, 37, bridge.Stats().ShedBaggageMembers)
	assert.Equal(t, 64, baggage.FromContext(bridge.Extract(context.Background(), got)).Len(), "the peer reads what was written")

	big, err := baggage.NewMemberRaw("big", strings.Repeat("x", 9000))
	require.NoError(t, err)
	bag, err = bag.SetMember(big)
	require.NoError(t, err)
	got = inject(bridge, baggage.ContextWithBaggage(context.Background(), bag))
	assert.NotContains(t, got["baggage"], "big")
	assert.Contains(t, got["baggage"], "k000")
}

func TestTooMuchBaggageIsRefusedAsAWholeAndCounted(t *testing.T) {
	bridge := propagation.New()
	half := "k=" + strings.Repeat("v", 4094)
	for fields, ok := range map[*[]string]bool{
		{half, "l" + half[1:4095]}:            true, // 8192 with the comma
		{half, "l" + half[1:]}:                false,
		{strings.Repeat("a=1,", 1<<18) + "x"}: false,
	} {
		ctx := bridge.Extract(context.Background(), propagation.HTTPHeader{"Baggage": *fields, "Traceparent": {benchTraceparent}})
		assert.Equal(t, ok, baggage.FromContext(ctx).Len() > 0)
		assert.True(t, trace.SpanContextFromContext(ctx).IsValid())
	}
	assert.EqualValues(t, 2, bridge.Stats().RefusedBaggage)
}

// Whatever the sizes are, the budget holds, the traceparent is there, and the same
// context gives the same headers.
func TestTheBudgetHoldsForEverySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		budget := 1024 + r.IntN(8000)
		ctx := bulky(t, r.IntN(2900), r.IntN(3200), r.IntN(5700))
		bridge := propagation.New(propagation.WithPromptChain(), propagation.WithFormats(propagation.TraceBin), propagation.WithBudget(budget))
		got := inject(bridge, ctx)
		require.LessOrEqual(t, size(got), budget)
		require.Equal(t, benchTraceparent, got["traceparent"])
		require.Equal(t, got, inject(bridge, ctx))
	}
}
