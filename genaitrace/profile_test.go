package genaitrace_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// labelling makes a recording whose Tracer labels goroutines.
func labelling(t *testing.T, opts ...sdktrace.TracerProviderOption) *recording {
	t.Helper()
	r := record(t, opts...)
	r.Tracer = genaitrace.New(append(providers(r), genaitrace.WithProfileLabels())...)
	return r
}

// labelsHere are the labels of the goroutine that calls it, as its profile has
// them: nil where there are none.
func labelsHere(t *testing.T) map[string]string {
	t.Helper()
	onlyOne.Lock() // in the profile, goroutines that read their labels look alike
	defer onlyOne.Unlock()
	return readLabels(t)
}

var onlyOne sync.Mutex

func phaseHere(t *testing.T) string { t.Helper(); return labelsHere(t)["phase"] }

func readLabels(t *testing.T) map[string]string {
	t.Helper()
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	for record := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(record, "genaitrace_test.readLabels") {
			continue
		}
		for line := range strings.SplitSeq(record, "\n") {
			if text, ok := strings.CutPrefix(line, "# labels: "); ok {
				var labels map[string]string
				require.NoError(t, json.Unmarshal([]byte(text), &labels))
				return labels
			}
		}
		return nil
	}
	require.Fail(t, "the goroutine is not in its own profile", profile.String())
	return nil
}

func TestEachPhaseLabelsItsGoroutineUntilItEnds(t *testing.T) {
	for name, parent := range map[string]func() context.Context{
		"no labels before": t.Context,
		"labels of the service before": func() context.Context {
			ctx := pprof.WithLabels(t.Context(), pprof.Labels("handler", "generate"))
			pprof.SetGoroutineLabels(ctx)
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer pprof.SetGoroutineLabels(context.Background())
			r := labelling(t)
			ctx := parent()
			before := labelsHere(t)
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			assert.Equal(t, before, labelsHere(t), "an inference is no phase")
			_, queue := inf.StartQueue(ctx)
			assert.Equal(t, before, labelsHere(t), "what waits needs no CPU")
			queue.End()
			for want, start := range map[string]func(context.Context) (context.Context, *genaitrace.Phase){
				"tokenize": inf.StartTokenize, "schedule": inf.StartSchedule, "postprocess": inf.StartPostprocess,
				"prefill": func(ctx context.Context) (context.Context, *genaitrace.Phase) {
					return inf.StartPrefill(ctx, genaitrace.Prompt{})
				},
				"decode": func(ctx context.Context) (context.Context, *genaitrace.Phase) {
					ctx, d := inf.StartDecode(ctx)
					return ctx, &d.Phase
				},
			} {
				below, phase := start(ctx)
				sc := phase.Span().SpanContext()
				labels := map[string]string{"phase": want, "trace_id": sc.TraceID().String(), "span_id": sc.SpanID().String()}
				for k, v := range before {
					labels[k] = v
				}
				assert.Equal(t, labels, labelsHere(t))
				pprof.Do(below, pprof.Labels("step", "1"), func(context.Context) {
					assert.Equal(t, want, phaseHere(t), "the context carries them")
				})
				assert.Equal(t, labels, labelsHere(t))
				started := make(chan map[string]string)
				go func() { started <- labelsHere(t) }()
				assert.Equal(t, labels, <-started, "goroutines inherit them")
				phase.End()
				phase.End()
				assert.Equal(t, before, labelsHere(t), "after %s", want)
			}
			inf.End()
		})
	}
}

func TestLabelsFollowThePhaseThatStartedLast(t *testing.T) {
	r := labelling(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	defer inf.End()

	// One inside the other.
	inside, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	_, tokenize := inf.StartTokenize(inside)
	assert.Equal(t, "tokenize", phaseHere(t))
	tokenize.End()
	assert.Equal(t, "prefill", phaseHere(t))
	prefill.End()
	assert.Empty(t, labelsHere(t))

	// Overlapping: the next one starts before the last one has ended.
	_, prefill = inf.StartPrefill(ctx, genaitrace.Prompt{})
	_, decode := inf.StartDecode(ctx)
	prefill.End()
	assert.Equal(t, "decode", phaseHere(t))
	decode.End()
	assert.Empty(t, labelsHere(t))

	// One after the other, with the context of the one before.
	ctx, tokenize = inf.StartTokenize(ctx)
	tokenize.End()
	ctx, prefill = inf.StartPrefill(ctx, genaitrace.Prompt{})
	prefill.End()
	assert.Empty(t, labelsHere(t), "not those of a phase that has ended")
	inf.StartDecode(ctx)
	assert.Equal(t, "decode", phaseHere(t))

	// An inference inside a phase.
	below, inner := r.StartInference(pprof.WithLabels(ctx, pprof.Labels()), genaitrace.Request{})
	inner.StartPrefill(below, genaitrace.Prompt{})
	assert.Equal(t, "prefill", phaseHere(t))
	inner.End()
	inf.End()
	assert.Empty(t, labelsHere(t))
}

func TestPhasesThatEndWithTheirInferenceGiveTheLabelsBack(t *testing.T) {
	r := labelling(t)
	serve := func() (err error) {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		defer inf.EndErr(&err)
		inf.StartPrefill(ctx, genaitrace.Prompt{})
		inf.StartDecode(ctx)
		assert.Equal(t, "decode", phaseHere(t))
		panic("engine")
	}
	assert.Panics(t, func() { _ = serve() })
	assert.Empty(t, labelsHere(t))
}

// Go labels the calling goroutine alone: what a phase that ends elsewhere does is
// said in the documentation of the option.
func TestAPhaseThatEndsOnAnotherGoroutine(t *testing.T) {
	r := labelling(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	other := make(chan map[string]string)
	go func() {
		prefill.End()
		other <- labelsHere(t)
	}()
	assert.Empty(t, <-other, "the labels of the context that the phase was started in")
	assert.Equal(t, "prefill", phaseHere(t), "it keeps them until its next phase")
	_, decode := inf.StartDecode(ctx)
	assert.Equal(t, "decode", phaseHere(t))
	decode.End()
	assert.Empty(t, labelsHere(t))
	inf.End()
}

func TestGoroutinesAreLabelledAlsoWhereTheSpanIsNotSampled(t *testing.T) {
	r := labelling(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, decode := inf.StartDecode(ctx)
	sc := trace.SpanContextFromContext(ctx)
	assert.Equal(t, map[string]string{"phase": "decode", "trace_id": sc.TraceID().String(), "span_id": sc.SpanID().String()}, labelsHere(t))
	decode.End()
	assert.Empty(t, labelsHere(t))
	inf.End()
}

func TestWithoutTheOptionNoGoroutineIsLabelled(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	ctx, decode := inf.StartDecode(ctx)
	assert.Empty(t, labelsHere(t))
	pprof.ForLabels(ctx, func(key, _ string) bool { assert.Fail(t, "label in the context", key); return true })
	decode.End()
	inf.End()
}

func TestLabelsOfManyRequestsAreTheirGoroutinesOwn(t *testing.T) {
	r := labelling(t)
	request := func() {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, decode := inf.StartDecode(ctx)
		assert.Equal(t, decode.Span().SpanContext().TraceID().String(), labelsHere(t)["trace_id"])
		decode.End()
		assert.Empty(t, labelsHere(t))
		inf.End()
	}
	together(slices.Repeat([]func(){request}, 8)...)
}

// A real CPU profile splits by phase and by trace.
func TestACPUProfileSplitsByPhaseAndTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("burns CPU")
	}
	r := labelling(t)
	var profile bytes.Buffer
	require.NoError(t, pprof.StartCPUProfile(&profile))
	traces := map[string]bool{}
	for range 2 {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		traces[trace.SpanContextFromContext(ctx).TraceID().String()] = true
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		burn(3)
		prefill.End()
		burn(1)
		_, decode := inf.StartDecode(ctx)
		for range genaitrace.RangeTokens(decode, yields("a"), nil) {
			burn(1)
		}
		inf.End()
	}
	pprof.StopCPUProfile()

	phases, ids := cpuTime(t, profile.Bytes(), "phase"), cpuTime(t, profile.Bytes(), "trace_id")
	assert.Greater(t, phases["prefill"], phases["decode"], "%v", phases)
	assert.Positive(t, phases["decode"])
	assert.Positive(t, phases[""], "what is outside of phases")
	assert.Len(t, phases, 3)
	delete(ids, "")
	assert.Len(t, ids, len(traces))
	for id := range ids {
		assert.True(t, traces[id], id)
	}
}

// burn does some hundred million steps, so that a loaded machine takes as many
// samples of it as an idle one.
func burn(hundreds int) {
	x := uint64(1)
	for range hundreds * 100_000_000 {
		x ^= x << 13
		x ^= x >> 7
	}
	burned = x
}

var burned uint64

// cpuTime is the nanoseconds of a CPU profile by the values of a label. It reads
// what it needs of profile.proto: samples (2) with values (2) and labels (3) of a
// key (1) and a text (2), and the strings that they index (6).
func cpuTime(t *testing.T, zipped []byte, label string) map[string]int64 {
	t.Helper()
	unzip, err := gzip.NewReader(bytes.NewReader(zipped))
	require.NoError(t, err)
	profile, err := io.ReadAll(unzip)
	require.NoError(t, err)
	var texts []string
	var samples [][]byte
	fields(t, profile, func(field protowire.Number, message []byte, _ uint64) {
		switch field {
		case 2:
			samples = append(samples, message)
		case 6:
			texts = append(texts, string(message))
		}
	})
	spent := map[string]int64{}
	for _, sample := range samples {
		var ns uint64
		var value string
		fields(t, sample, func(field protowire.Number, message []byte, number uint64) {
			switch field {
			case 2: // how many times it was seen, then nanoseconds
				ns = number
			case 3:
				var key, text uint64
				fields(t, message, func(field protowire.Number, _ []byte, number uint64) {
					switch field {
					case 1:
						key = number
					case 2:
						text = number
					}
				})
				if texts[key] == label {
					value = texts[text]
				}
			}
		})
		spent[value] += int64(ns)
	}
	return spent
}

// fields calls f with each field of a message.
func fields(t *testing.T, message []byte, f func(field protowire.Number, bytes []byte, number uint64)) {
	t.Helper()
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		require.Positive(t, n)
		message = message[n:]
		var body []byte
		var number uint64
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			body, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		require.Positive(t, n)
		message = message[n:]
		f(field, body, number)
	}
}

// BenchmarkPhase is a phase from its start to its end, with and without labels.
func BenchmarkPhase(b *testing.B) {
	run := func(b *testing.B, opts ...genaitrace.Option) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		tr := genaitrace.New(append(opts, genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))...)
		b.ReportAllocs()
		for b.Loop() {
			ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{})
			for range 4 {
				_, p := inf.StartPostprocess(ctx)
				p.End()
			}
			inf.End()
		}
	}
	b.Run("plain", func(b *testing.B) { run(b) })
	b.Run("labels", func(b *testing.B) { run(b, genaitrace.WithProfileLabels()) })
}
