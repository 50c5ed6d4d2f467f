package translate_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

var all = func() (vocabularies []*translate.Vocabulary) {
	for _, name := range translate.Names() {
		v, err := translate.Named(name)
		if err != nil {
			panic(err)
		}
		vocabularies = append(vocabularies, v)
	}
	return vocabularies
}()

// randomAttributes makes a span's attributes in the Standard vocabulary.
func randomAttributes(r *rand.Rand) []attribute.KeyValue {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	word := func() string { return "w" + strconv.Itoa(r.IntN(1000)) }
	ms := func() float64 { return float64(r.Int64N(1<<45)) / 1e6 } // whole nanoseconds
	candidates := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", pick("chat", "text_completion", "embeddings", "retrieval", "execute_tool", "invoke_agent", "plan", "search_memory", word())),
		attribute.String("gen_ai.provider.name", pick("openai", "x_ai", "gcp.gemini", "gcp.vertex_ai", "gcp.gen_ai", "azure.ai.openai", "azure.ai.inference", "aws.bedrock", "mistral_ai", "moonshot_ai", "vllm")),
		attribute.String("gen_ai.request.model", word()),
		attribute.String("gen_ai.response.model", word()),
		attribute.String("gen_ai.response.id", word()),
		attribute.StringSlice("gen_ai.response.finish_reasons", slices.Repeat([]string{word()}, r.IntN(3))),
		attribute.Int("gen_ai.request.top_k", r.IntN(100)),
		attribute.Int("gen_ai.retrieval.top_k", r.IntN(100)),
		attribute.Int("gen_ai.request.choice.count", r.IntN(5)),
		attribute.Float64("gen_ai.request.temperature", r.Float64()),
		attribute.Int("gen_ai.usage.input_tokens", r.IntN(1<<20)),
		attribute.Int("gen_ai.usage.output_tokens", r.IntN(1<<20)),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", r.IntN(1<<20)),
		attribute.Int("gen_ai.usage.cache_write.input_tokens", r.IntN(1<<20)),
		attribute.Float64("gen_ai.response.time_to_first_chunk", float64(r.Int64N(1<<45))/1e9),
		attribute.Float64("llm.ttft_ms", ms()),
		attribute.Float64("llm.queue_wait_ms", ms()),
		attribute.Float64("ai.prefill.duration_ms", ms()),
		attribute.Float64("ai.decode.duration_ms", ms()),
		attribute.String("gen_ai.tool.call.arguments", word()),
		attribute.String("gen_ai.tool.name", word()),
		attribute.String("gen_ai.agent.name", word()),
		attribute.String("gen_ai.prompt.variable."+word(), word()),
		attribute.String("genai.request_id", word()),
		attribute.String("http.route", "/"+word()),
		attribute.Bool("app.beta", r.IntN(2) == 0),
	}
	if candidates[0].Value.AsString() == "retrieval" {
		// Vocabularies before Standard have one key for the two of them.
		candidates = slices.DeleteFunc(candidates, func(a attribute.KeyValue) bool { return a.Key == "gen_ai.request.top_k" })
	}
	r.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	return candidates[:r.IntN(len(candidates)+1)]
}

// samples are spans in the Standard vocabulary.
var samples = sync.OnceValue(func() (spans [][]attribute.KeyValue) {
	for seed := range uint64(500) {
		spans = append(spans, randomAttributes(rand.New(rand.NewPCG(1, seed))))
	}
	return spans
})

func TestStandardSurvivesTheWayThroughEveryVocabulary(t *testing.T) {
	for _, v := range all {
		t.Run(v.String(), func(t *testing.T) {
			there, back := translator(t, translate.Standard, v), translator(t, v, translate.Standard)
			for i, want := range samples() {
				got := back.Attributes(there.Attributes(want))
				if !slices.Equal(sorted(got), sorted(want)) {
					require.ElementsMatch(t, want, got, "sample %d, by way of %v", i, there.Attributes(want))
				}
			}
		})
	}
}

func TestNoAttributeIsLostOrDoubledBetweenAnyTwoVocabularies(t *testing.T) {
	for _, from := range all {
		start := translator(t, translate.Standard, from)
		for _, to := range all {
			tr := translator(t, from, to)
			for i, sample := range samples()[:50] {
				in := start.Attributes(sample)
				said := duplicates(tr)
				out := tr.Attributes(in)
				if len(out)+duplicates(tr)-said < len(in) {
					t.Fatalf("sample %d from %s to %s: only what is said twice may go: %v became %v", i, from, to, in, out)
				}
				if len(slices.CompactFunc(sorted(out), func(a, b attribute.KeyValue) bool { return a.Key == b.Key })) != len(out) {
					t.Fatalf("sample %d from %s to %s: a key stands twice in %v", i, from, to, out)
				}
				if !slices.Equal(out, tr.Attributes(in)) {
					t.Fatalf("sample %d from %s to %s: the order changes", i, from, to)
				}
			}
		}
	}
}

// sorted leaves the list as it is.
func sorted(list []attribute.KeyValue) []attribute.KeyValue {
	return slices.SortedFunc(slices.Values(list), func(a, b attribute.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
}

func duplicates(tr *translate.Translator) (n int) {
	for _, f := range tr.Report().Findings {
		if f.Reason == translate.Duplicate {
			n += int(f.Count)
		}
	}
	return n
}

func TestEveryNanosecondSurvives(t *testing.T) {
	there, back := translator(t, translate.House, translate.Standard), translator(t, translate.Standard, translate.House)
	r := rand.New(rand.NewPCG(3, 3))
	for range 30_000 {
		in := kv("ai.response.delay_ms", float64(r.Int64N(1<<(1+r.IntN(51))))/1e6)
		if got := back.Attributes(there.Attributes(in)); !slices.Equal(got, in) {
			require.Equal(t, in, got)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -0.25, math.Copysign(0, -1), math.Pi, 1e300} {
		got := back.Attributes(there.Attributes(kv("ai.response.delay_ms", x)))[0].Value.AsFloat64()
		if x == math.MaxFloat64 || math.IsNaN(x) || math.IsInf(x, 0) {
			assert.False(t, got < 1e300 && got > -1e300, "%g became %g", x, got)
			continue
		}
		assert.InEpsilon(t, 1+x, 1+got, 1e-15, "%g became %g", x, got)
	}
}

func TestTranslatorIsSafeForConcurrentUse(t *testing.T) {
	tr := translator(t, translate.OpenInference, translate.Standard)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				in := kv("openinference.span.kind", "TOOL", "input.value", "x", "llm.token_count.total", 1)
				assert.Equal(t, kv("gen_ai.operation.name", "execute_tool", "gen_ai.tool.call.arguments", "x", "llm.token_count.total", 1), tr.Attributes(in))
				tr.Report()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, findings{{"llm.token_count.total", translate.NoTarget, 1600}}, tr.Report().Findings)
}

func TestReportIsBounded(t *testing.T) {
	tr := translator(t, translate.OpenInference, translate.Standard)
	for i := range 2000 {
		tr.Attributes(kv("llm.x"+strconv.Itoa(i), "v"))
	}
	report := tr.Report()
	assert.Len(t, report.Findings, 500)
	assert.EqualValues(t, 1500, report.Overflow)
}
