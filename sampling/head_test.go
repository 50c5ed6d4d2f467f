package sampling_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// TestWhatCalleesAreTold has a local root that ends well: what it tells its callees
// at its start, and whether it is exported.
func TestWhatCalleesAreTold(t *testing.T) {
	errorsOnly, tenth, all := sampling.Errors(), sampling.Any(sampling.Errors(), sampling.Baseline(0.1)), sampling.Baseline(1)
	for _, c := range []struct {
		name       string
		policy     sampling.Policy
		head       sampling.Head
		trust      sampling.Trust
		r          float64
		sampled    bool // the caller
		tracestate string
		told       bool
		toldState  string
		kept       bool
	}{
		{name: "nothing is certain", policy: errorsOnly, r: 0.99},
		{name: "the baseline is certain", policy: tenth, r: 0.95, told: true, toldState: "ot=th:e6666666666668", kept: true},
		{name: "what is not in it is not", policy: tenth, r: 0.85},
		{name: "everything is kept", policy: all, told: true, toldState: "ot=th:0", kept: true},
		{name: "by ratio, and then kept", policy: errorsOnly, head: sampling.HeadRatio(0.5), r: 0.5, told: true, toldState: "ot=th:8", kept: true},
		{name: "not by ratio", policy: errorsOnly, head: sampling.HeadRatio(0.5), r: 0.49},
		{name: "by ratio 1", policy: errorsOnly, head: sampling.HeadRatio(1), told: true, toldState: "ot=th:0", kept: true},
		{name: "nobody by ratio 0, but kept", policy: tenth, head: sampling.HeadRatio(0), r: 0.95, kept: true},
		{name: "always, and dropped", policy: errorsOnly, head: sampling.HeadAlways(), told: true, toldState: "ot=th:0"},

		{name: "a flag alone is not believed", policy: errorsOnly, sampled: true},
		{name: "nor one that says everything is sampled", policy: errorsOnly, sampled: true, tracestate: "ot=th:0"},
		{name: "a consistent caller is", policy: errorsOnly, sampled: true, r: 0.5, tracestate: "ot=th:8", told: true, toldState: "ot=th:8", kept: true},
		{name: "also with a randomness of its own", policy: errorsOnly, sampled: true, tracestate: "ot=rv:90000000000000;th:8", told: true, toldState: "ot=rv:90000000000000;th:8", kept: true},
		{name: "an inconsistent one is not", policy: errorsOnly, sampled: true, r: 0.49, tracestate: "ot=th:8"},
		{name: "nor one that did not sample", policy: errorsOnly, r: 0.5, tracestate: "ot=th:8"},
		{name: "the likelier of both counts", policy: tenth, sampled: true, r: 0.95, tracestate: "ot=th:8", told: true, toldState: "ot=th:8", kept: true},
		{name: "a caller that is certain", policy: errorsOnly, sampled: true, tracestate: "genai=c:1;k:1,ot=th:0", told: true, toldState: "genai=c:1;k:1,ot=th:0", kept: true},
		{name: "a caller that was told to keep", policy: errorsOnly, sampled: true, tracestate: "genai=k:1", told: true, toldState: "genai=k:1", kept: true},
		{name: "certainty without sampling is none", policy: errorsOnly, tracestate: "genai=c:1;k:1", toldState: "genai=c:1"},
		{name: "layers end with a process", policy: errorsOnly, tracestate: "genai=l:ff;c:1", toldState: "genai=c:1"},
		{name: "foreign members pass", policy: errorsOnly, tracestate: "a=b,ot=th:8;x:y,c=d", toldState: "ot=x:y,a=b,c=d"},
		{name: "broken members pass", policy: errorsOnly, sampled: true, tracestate: "ot=th:xyz", toldState: ""},

		{name: "every flag is believed", policy: errorsOnly, trust: sampling.TrustSampled, sampled: true, told: true, toldState: "genai=k:1", kept: true},
		{name: "with its probability", policy: errorsOnly, trust: sampling.TrustSampled, sampled: true, r: 0.9, tracestate: "ot=th:8", told: true, toldState: "genai=k:1,ot=th:8", kept: true},
		{name: "nobody is believed", policy: errorsOnly, trust: sampling.TrustNone, sampled: true, r: 0.9, tracestate: "genai=k:1,ot=th:8"},
		{name: "but we ourselves", policy: tenth, trust: sampling.TrustNone, sampled: true, r: 0.95, tracestate: "genai=k:1,ot=th:8", told: true, toldState: "ot=th:e6666666666668", kept: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.policy, sampling.WithHead(c.head), sampling.WithTrust(c.trust))
			ctx, span := s.Start(remote(c.r, c.sampled, c.tracestate), "root")
			_, child := s.Start(ctx, "child")
			assert.Equal(t, c.told, span.SpanContext().IsSampled())
			assertState(t, c.toldState, span.SpanContext().TraceState())
			assert.Equal(t, span.SpanContext().TraceState(), child.SpanContext().TraceState())
			assert.Equal(t, c.told, child.SpanContext().IsSampled())
			child.End()
			span.End()
			if !c.kept {
				assert.Empty(t, s.exported())
				return
			}
			assert.ElementsMatch(t, []string{"child", "root"}, s.exported())
		})
	}
}

// assertState compares tracestates without regard to order, and to when the request
// began.
func assertState(t *testing.T, want string, got trace.TraceState) {
	t.Helper()
	got = withoutStart(got)
	expected, err := trace.ParseTraceState(want)
	assert.NoError(t, err)
	assert.Equal(t, expected.Len(), got.Len(), "%s", got)
	expected.Walk(func(key, value string) bool {
		return assert.ElementsMatch(t, fields(value), fields(got.Get(key)), "%s", got)
	})
}

func withoutStart(state trace.TraceState) trace.TraceState {
	rest := slices.DeleteFunc(fields(state.Get("genai")), func(field string) bool { return strings.HasPrefix(field, "t:") })
	if len(rest) == 0 {
		return state.Delete("genai")
	}
	state, err := state.Insert("genai", strings.Join(rest, ";"))
	if err != nil {
		panic(err)
	}
	return state
}

func fields(list string) []string {
	var all []string
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j] != ';' {
			j++
		}
		all, i = append(all, list[i:j]), j+1
	}
	slices.Sort(all)
	return all
}

func TestACallerThatIsCertainMakesItsCalleeKeep(t *testing.T) {
	gateway, engine := serve(t, sampling.Errors()), serve(t, sampling.Slow(time.Hour))
	ctx, root := gateway.Start(context.Background(), "gateway")
	call := func(name string) {
		ctx, client := gateway.Start(ctx, "call "+name)
		_, server := engine.Start(trace.ContextWithRemoteSpanContext(context.Background(), trace.SpanContextFromContext(ctx)), name)
		server.End()
		client.End()
	}
	call("first")
	_, failed := gateway.Start(ctx, "failed")
	failed.SetStatus(codes.Error, "")
	failed.End()
	call("second")
	call("third")
	root.End()
	assert.Equal(t, []string{"second", "third"}, engine.exported())
	assert.Equal(t, "remote", attr(engine.span("second"), semconv.GenAISamplingReasonKey))
	assert.Equal(t, "th:0", engine.span("second").SpanContext.TraceState().Get("ot"))
	assert.Len(t, gateway.exported(), 5)
}

func TestALaterRootOfAKeptTraceIsKeptAndTold(t *testing.T) {
	s := serve(t, sampling.Errors())
	s.run(shape{fails: true})
	_, retry := s.Start(remote(0, false, "genai=c:1"), "retry")
	assert.True(t, retry.SpanContext().IsSampled())
	assertState(t, "genai=k:1;c:1,ot=th:0", retry.SpanContext().TraceState())
	retry.End()
	assert.Equal(t, []string{"span", "retry"}, s.exported())
}

func TestALaterRootOfADroppedTraceIsJudgedAfresh(t *testing.T) {
	s := serve(t, sampling.Errors())
	s.run(shape{name: "first"})
	s.run(shape{name: "retry", fails: true})
	assert.Equal(t, []string{"retry"}, s.exported())
	assert.Empty(t, attr(s.span("retry"), semconv.GenAISamplingPartialKey), "a local trace of its own")
}

func TestKeepKeepsWhatIsHeldAndWhatComes(t *testing.T) {
	s := serve(t, sampling.Errors())
	ctx, root := s.Start(context.Background(), "root")
	_, before := s.Start(ctx, "before")
	before.End()
	s.tail.Keep(ctx, "debug header")
	s.tail.Keep(ctx, "again")
	assert.Equal(t, []string{"before"}, s.exported())
	_, after := s.Start(ctx, "after")
	assert.True(t, after.SpanContext().IsSampled())
	after.End()
	root.End()
	assert.Equal(t, []string{"before", "after", "root"}, s.exported())
	assert.Equal(t, "debug header", attr(s.span("root"), semconv.GenAISamplingReasonKey))
	for _, span := range s.exporter.all() {
		assert.True(t, span.SpanContext.IsSampled(), span.Name)
	}
	assert.Empty(t, s.span("root").SpanContext.TraceState().Get("ot"), "nobody knows how likely that was")
	assert.Equal(t, map[string]int64{"forced": 1}, s.metric("genai.sampling.traces", semconv.GenAISamplingReasonKey))
}

func TestKeepWorksBeforeTheFirstSpanAndWithoutATrace(t *testing.T) {
	s := serve(t, sampling.Errors())
	s.tail.Keep(context.Background(), "no trace")
	ctx := remote(0, false, "")
	s.tail.Keep(ctx, "debug header")
	s.tail.Keep(ctx, "debug header")
	_, root := s.Start(ctx, "root")
	assert.True(t, root.SpanContext().IsSampled())
	root.End()
	assert.Equal(t, []string{"root"}, s.exported())
	assert.Equal(t, map[string]int64{"forced": 1}, s.metric("genai.sampling.traces", semconv.GenAISamplingReasonKey))
}

func TestLayersAreRecordedInTheirShareOfTraces(t *testing.T) {
	role := func(name string) trace.SpanStartOption {
		return trace.WithAttributes(attribute.String("genai.span.role", name))
	}
	p := sampling.Layers(sampling.Any(sampling.Errors(), sampling.Baseline(0.5)),
		sampling.Layer{Select: kernels, Ratio: 0.25},
		sampling.Layer{Select: sampling.Selector{Name: "never*"}, Ratio: 0})
	for _, c := range []struct {
		r     float64
		fails bool
		want  []string
	}{
		{0.9, false, []string{"kernel", "below", "forward", "root"}},
		{0.6, false, []string{"forward", "root"}}, // kernels are in one of four traces, others in two
		{0.4, false, []string{}},
		{0.4, true, []string{"forward", "root"}}, // nobody knew
	} {
		s := serve(t, p)
		ctx, root := s.Start(remote(c.r, false, ""), "root", role("kernel")) // a root is never thinned out
		inner, forward := s.Start(ctx, "forward", role("forward"))
		kernelCtx, kernel := s.Start(inner, "kernel", role("kernel"))
		_, below := s.Start(kernelCtx, "below")
		_, never := s.Start(inner, "never ever")
		if c.fails {
			root.SetStatus(codes.Error, "")
		}
		for _, span := range []trace.Span{never, below, kernel, forward, root} {
			span.End()
		}
		assert.ElementsMatch(t, c.want, s.exported())
		for _, span := range s.exporter.all() {
			th := "th:8"
			if c.fails {
				th = "th:0"
			} else if span.Name == "kernel" || span.Name == "below" {
				th = "th:c"
			}
			assert.Equal(t, th, span.SpanContext.TraceState().Get("ot"), span.Name)
		}
	}
}

func TestTheExporterIsNotTraced(t *testing.T) {
	var s *service
	var seen []string
	e := &exporter{}
	e.before = func(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
		ctx, span := s.Start(ctx, "rpc")
		_, inner := s.Start(ctx, "dns")
		assert.False(t, span.IsRecording() || inner.IsRecording())
		assert.False(t, span.SpanContext().IsSampled())
		inner.End()
		span.End()
		for _, span := range spans {
			seen = append(seen, span.Name())
		}
		return nil
	}
	s = serveTo(t, e, sampling.Baseline(1))
	s.request("a", time.Second, false)
	s.flush()
	s.flush()
	assert.Equal(t, []string{"a.a", "a.b", "a"}, seen)
}

func FuzzTraceState(f *testing.F) {
	f.Add("genai=c:1;k:1,ot=th:8;rv:00000000000000", uint64(1), true)
	f.Add("ot=th:;rv:,genai=l:;;k:2", uint64(0), true)
	f.Add("genai=l:f;k,ot=x", uint64(1)<<55, false)
	f.Add("genai=t:199bd0c4e10;k:1,ot=th:0", uint64(1)<<55, true)
	f.Add("genai=t:-1;t:fffffffffffffffff", uint64(1), false)
	f.Fuzz(func(t *testing.T, list string, r uint64, sampled bool) {
		state, err := trace.ParseTraceState(list)
		if err != nil {
			return
		}
		for _, trust := range []sampling.Trust{sampling.TrustConsistent, sampling.TrustSampled, sampling.TrustNone} {
			s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.5)), sampling.WithTrust(trust))
			caller := trace.SpanContextFromContext(remote(float64(r%(1<<56))/(1<<56), sampled, "")).WithTraceState(state)
			ctx, root := s.Start(trace.ContextWithRemoteSpanContext(context.Background(), caller), "root", trace.WithSpanKind(trace.SpanKindServer))
			_, child := s.Start(ctx, "child")
			told := root.SpanContext().TraceState()
			_, err := trace.ParseTraceState(told.String())
			assert.NoError(t, err, "what is sent on can be read")
			state.Walk(func(key, value string) bool {
				return key == "ot" || key == "genai" || assert.Equal(t, value, told.Get(key), "foreign members pass")
			})
			child.End()
			root.End()
			assert.Equal(t, root.SpanContext().IsSampled(), len(s.exported()) == 2, "what is told is true")
			for _, span := range s.exporter.all() {
				_, err := trace.ParseTraceState(span.SpanContext.TraceState().String())
				assert.NoError(t, err)
			}
			s.shutdown()
		}
	})
}
