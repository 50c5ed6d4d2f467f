package semconv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

func TestLookupKnowsEveryKindOfKey(t *testing.T) {
	tests := map[attribute.Key]struct {
		origin semconv.Origin
		typ    semconv.Type
		unit   string
		target attribute.Key
		factor float64
	}{
		"gen_ai.usage.input_tokens":                {semconv.OriginGenAI, semconv.TypeInt, "{token}", "", 0},
		"gen_ai.usage.prompt_tokens":               {semconv.OriginGenAI, semconv.TypeInt, "{token}", "gen_ai.usage.input_tokens", 1},
		"openai.request.service_tier":              {semconv.OriginGenAI, semconv.TypeEnum, "", "", 0},
		"mcp.method.name":                          {semconv.OriginGenAI, semconv.TypeEnum, "", "", 0},
		"server.port":                              {semconv.OriginGeneral, semconv.TypeInt, "", "", 0},
		"ai.model.name":                            {semconv.OriginHouse, semconv.TypeString, "", "gen_ai.request.model", 1},
		"ai.response.delay_ms":                     {semconv.OriginHouse, semconv.TypeDouble, "ms", "gen_ai.response.time_to_first_chunk", 0.001},
		"llm.ttft_ms":                              {semconv.OriginHouse, semconv.TypeDouble, "ms", "", 0},
		"llm.model.name":                           {semconv.OriginAlias, semconv.TypeString, "", "ai.model.name", 1},
		"time_to_first_token":                      {semconv.OriginAlias, semconv.TypeDouble, "s", "llm.ttft_ms", 1000},
		"prompt.hash":                              {semconv.OriginAlias, semconv.TypeString, "", "genai.prompt.hash", 0},
		"gen_ai.prompt.variable.city":              {semconv.OriginGenAI, semconv.TypeTemplate, "", "", 0},
		"gen_ai.openai.request.service_tier":       {semconv.OriginGenAI, semconv.TypeEnum, "", "openai.request.service_tier", 1},
		"gen_ai.workflow.name":                     {semconv.OriginGenAI, semconv.TypeString, "", "gen_ai.agent.name", 1},
		"gen_ai.usage.cache_creation.input_tokens": {semconv.OriginGenAI, semconv.TypeInt, "{token}", "gen_ai.usage.cache_write.input_tokens", 1},
	}
	for key, want := range tests {
		a, ok := semconv.Lookup(key)
		require.True(t, ok, key)
		target, _ := a.Target()
		require.Equal(t, []any{want.origin, want.typ, want.unit, want.target, want.factor},
			[]any{a.Origin, a.Type, a.Unit, target, a.Factor}, key)
	}
	for _, key := range []attribute.Key{"", "gen_ai", "gen_ai.usage.inputtokens", "gen_ai.prompt.variable", "gen_ai.prompt.variable.", "gen_ai.prompt.variables.x"} {
		a, ok := semconv.Lookup(key)
		require.Equal(t, key == "gen_ai.prompt.variable", ok, "%s gives %s", key, a.Key)
	}
}

// A word is answered once: by a look-up of names, or by Instead.
func TestInsteadAnswersWordsThatAreNoName(t *testing.T) {
	for word, want := range map[string]string{
		"model.latency_ms":      "the duration of the span inference.generate or model.forward itself",
		"error":                 "error.type",
		"order.id":              "a key of the application",
		"P99 E2E Latency":       "gen_ai.server.request.duration",
		"stream_token[].ts_ms":  "genai.token.timeline",
		"GPU_MEM_CONTENTION":    "gpu_memory_contention of genai.root_cause",
		"decode.first_token":    "the event first_token",
		"llm.model.name":        "",
		"gen_ai.request.model":  "",
		"nobody.has.said.this":  "",
		"":                      "",
		"model.latency_ms.more": "",
	} {
		advice, ok := semconv.Instead(word)
		require.Equal(t, want != "", ok, word)
		require.Contains(t, advice, want, word)
		_, isKey := semconv.Lookup(attribute.Key(word))
		require.False(t, ok && isKey, word)
	}
}

func TestAllIsInOrderAndEachKeyIsFound(t *testing.T) {
	var keys []attribute.Key
	for a := range semconv.All() {
		found, ok := semconv.Lookup(a.Key)
		require.True(t, ok, a.Key)
		require.Equal(t, a, found)
		require.NotEmpty(t, a.Brief, a.Key)
		require.NotEmpty(t, a.Type, a.Key)
		keys = append(keys, a.Key)
	}
	require.True(t, slices.IsSorted(keys))
	require.Greater(t, len(keys), 300)
}

// A target is one step away from a key that is in use, so that nobody has to
// follow a chain of renames.
func TestTargetsAreInUse(t *testing.T) {
	for a := range semconv.All() {
		key, ok := a.Target()
		if !ok {
			require.Zero(t, a.Factor, a.Key)
			continue
		}
		if a.Factor == 0 {
			require.NotEmpty(t, a.Note, "%s must say why values are not carried over to %s", a.Key, key)
		}
		target, ok := semconv.Lookup(key)
		require.True(t, ok, "%s stands for %s", a.Key, key)
		require.Empty(t, target.AliasOf, a.Key)
		require.Empty(t, target.Deprecated, a.Key)
	}
}

func TestEveryEntryCarriesKnownAttributes(t *testing.T) {
	check := func(name, brief string, list []semconv.Requirement) {
		require.NotEmpty(t, brief, name)
		for _, r := range list {
			_, ok := semconv.Lookup(r.Key)
			require.True(t, ok, "%s carries %s", name, r.Key)
			require.Contains(t, []semconv.Level{
				semconv.LevelRequired, semconv.LevelConditional, semconv.LevelRecommended, semconv.LevelOptIn,
			}, r.Level, name)
			require.Equal(t, r.If == "", len(r.When) == 0, "%s of %s", r.Key, name)
		}
	}
	for s := range semconv.Spans() {
		check(s.Type, s.Brief, s.Attributes)
		found, ok := semconv.LookupSpan(s.Type)
		require.True(t, ok)
		require.Equal(t, s, found)
	}
	for m := range semconv.Metrics() {
		check(m.Name, m.Brief, m.Attributes)
		found, ok := semconv.LookupMetric(m.Name)
		require.True(t, ok)
		require.Equal(t, m, found)
	}
	for e := range semconv.Events() {
		check(e.Name, e.Brief, e.Attributes)
		found, ok := semconv.LookupEvent(e.Name)
		require.True(t, ok)
		require.Equal(t, e, found)
	}
}

func TestARefinementHasAllThatItRefines(t *testing.T) {
	base, ok := semconv.LookupSpan("gen_ai.client.inference")
	require.True(t, ok)
	openai, ok := semconv.LookupSpan("openai.gen_ai.client.inference")
	require.True(t, ok)

	require.Equal(t, trace.SpanKindClient, openai.Kind)
	require.Equal(t, base.Names, openai.Names)
	require.Equal(t, semconv.LevelConditional, level(base, "gen_ai.request.model"))
	require.Equal(t, semconv.LevelRequired, level(openai, "gen_ai.request.model"))
	require.Empty(t, level(base, "openai.api.type"))
	require.Equal(t, semconv.LevelRecommended, level(openai, "openai.api.type"))
	require.Equal(t, semconv.LevelRecommended, level(openai, "gen_ai.response.id"))
}

func level(s semconv.Span, key attribute.Key) semconv.Level {
	for _, r := range s.Attributes {
		if r.Key == key {
			return r.Level
		}
	}
	return ""
}

func TestEveryRoleButServiceHasASpan(t *testing.T) {
	role, ok := semconv.Lookup(semconv.GenAISpanRoleKey)
	require.True(t, ok)
	for _, m := range role.Members {
		spans := slices.Collect(semconv.SpansOf(semconv.GenAISpanRoleAttr(m.Value)))
		if m.Value == string(semconv.GenAISpanRoleService) || m.Value == string(semconv.GenAISpanRoleWorkflow) {
			continue // the span of the transport, and the one of an agent
		}
		require.NotEmpty(t, spans, m.Value)
	}
}

func TestAnotherNameOfASpanHasItsRole(t *testing.T) {
	for name, role := range map[string]semconv.GenAISpanRoleAttr{
		"scheduler.wait": semconv.GenAISpanRoleQueue,
		"gpu.prefill":    semconv.GenAISpanRolePrefill,
		"llm.generate":   semconv.GenAISpanRoleInference,
		"rag.retrieve":   semconv.GenAISpanRoleRetrieval,
	} {
		s, ok := semconv.LookupSpan(name)
		require.True(t, ok, name)
		require.Equal(t, role, s.Role, name)
		require.NotEmpty(t, s.AliasOf, name)
	}
}

func TestASpanIsRecognized(t *testing.T) {
	operation := func(v string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("gen_ai.operation.name", v)}
	}
	tests := []struct {
		name  string
		kind  trace.SpanKind
		attrs []attribute.KeyValue
		want  string
	}{
		{"chat qwen", trace.SpanKindClient, operation("chat"), "gen_ai.client.inference"},
		{"chat qwen", trace.SpanKindInternal, operation("chat"), "gen_ai.client.inference"},
		{"chat qwen", trace.SpanKindClient, []attribute.KeyValue{semconv.AIOperation("chat")}, "gen_ai.client.inference"},
		{"inference.generate", trace.SpanKindInternal, operation("chat"), "inference.generate"},
		{"gpu.inference", trace.SpanKindInternal, nil, "gpu.inference"},
		{"invoke_agent a", trace.SpanKindClient, operation("invoke_agent"), "gen_ai.invoke_agent.client"},
		{"invoke_agent a", trace.SpanKindInternal, operation("invoke_agent"), "gen_ai.invoke_agent.internal"},
		{"invoke_workflow a", trace.SpanKindInternal, operation("invoke_workflow"), "gen_ai.invoke_agent.internal"},
		{"execute_tool f", trace.SpanKindInternal, operation("execute_tool"), "gen_ai.execute_tool"},
		{"tools/call f", trace.SpanKindServer, []attribute.KeyValue{attribute.String("mcp.method.name", "tools/call")}, "mcp.server"},
		{"tools/call f", trace.SpanKindClient, append(operation("execute_tool"), attribute.String("mcp.method.name", "tools/call")), "mcp.client"},
		{"my queue", trace.SpanKindInternal, []attribute.KeyValue{semconv.GenAISpanRole(semconv.GenAISpanRoleQueue)}, "queue.wait"},
		{"GET /", trace.SpanKindServer, nil, ""},
		{"upload", trace.SpanKindServer, operation("upload"), ""},
	}
	for _, tt := range tests {
		set := attribute.NewSet(tt.attrs...)
		s, ok := semconv.RecognizeSpan(tt.name, tt.kind, set.Value)
		require.Equal(t, tt.want, s.Type, tt.name)
		require.Equal(t, tt.want != "", ok)
	}
}

func TestSuggestNamesTheNearestKeys(t *testing.T) {
	tests := []struct {
		name string
		want []attribute.Key
	}{
		{"gen_ai.usage.inputtokens", []attribute.Key{"gen_ai.usage.input_tokens"}},
		{"genai.request.model", []attribute.Key{"gen_ai.request.model"}},
		{"gen_ai.reqeust.model", []attribute.Key{"gen_ai.request.model"}},
		{"ai.modle.name", []attribute.Key{"ai.model.name"}},
		{"llm.ttft", []attribute.Key{"llm.ttft_ms"}},
		{"llm.queue_wait", []attribute.Key{"llm.queue_wait_ms"}},
		{"GEN_AI.REQUEST.MODEL", []attribute.Key{"gen_ai.request.model"}},
		{"gen_ai.request.maxTokens", []attribute.Key{"gen_ai.request.max_tokens"}},
		{"gen_ai.response.finish_reason", []attribute.Key{"gen_ai.response.finish_reasons"}},
		{"gen_ai.model", []attribute.Key{"gen_ai.request.model", "gen_ai.response.model"}},
		{"gen_ai.operation", []attribute.Key{"gen_ai.operation.name"}},
		{"gen_ai.provider", []attribute.Key{"gen_ai.provider.name"}},
		{"ai.model", []attribute.Key{"ai.model.name", "ai.model.version"}},
		{"gen_ai.usage.cached_tokens", []attribute.Key{"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_write.input_tokens"}},
		{"gen_ai.usage.reasoning_tokens", []attribute.Key{"gen_ai.usage.reasoning.output_tokens"}},
		{"openai.service_tier", []attribute.Key{"openai.request.service_tier", "openai.response.service_tier"}},
		{"mcp.session_id", []attribute.Key{"mcp.session.id"}},
		{"mcp.method", []attribute.Key{"mcp.method.name"}},
		{"server.adress", []attribute.Key{"server.address"}},
		{"genai.request.id", []attribute.Key{"genai.request_id"}},
		{"gen_ai.usage.total_tokens", nil},
		{"gen_ai", nil},
		{"gen_ai.", nil},
		{"model.latency_ms", nil},
		{"llm.ttftms", []attribute.Key{"llm.ttft_ms"}},
		{"gen_ai.usage.prompt_token", []attribute.Key{"gen_ai.usage.input_tokens"}},
		{"gen_ai.systen", []attribute.Key{"gen_ai.provider.name"}},
		{"nothing like it", nil},
		{"", nil},
		{string(make([]byte, 1000)), nil},
	}
	for _, tt := range tests {
		got := semconv.Suggest(tt.name)
		if len(tt.want) == 0 {
			require.Empty(t, got, tt.name)
			continue
		}
		require.Equal(t, tt.want, got[:len(tt.want)], tt.name)
		require.LessOrEqual(t, len(got), 3)
		require.Equal(t, got, semconv.Suggest(tt.name))
	}
}

func FuzzSuggest(f *testing.F) {
	f.Add("gen_ai.usage.inputtokens")
	f.Fuzz(func(t *testing.T, name string) {
		for _, key := range semconv.Suggest(name) {
			a, ok := semconv.Lookup(key)
			require.True(t, ok)
			require.Empty(t, a.Deprecated)
			require.Empty(t, a.AliasOf)
		}
	})
}

var lookupKeys = []attribute.Key{
	"gen_ai.usage.input_tokens", "gen_ai.request.model", "gen_ai.operation.name", "ai.prefill.duration_ms",
	"llm.ttft_ms", "server.address", "gen_ai.response.finish_reasons", "llm.model.name",
}

func TestLookupAllocatesNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		for _, key := range lookupKeys {
			a, ok := semconv.Lookup(key)
			if !ok || a.Key == "" {
				t.Fatal(key)
			}
		}
	}))
}

func BenchmarkLookup(b *testing.B) {
	b.Run("found", func(b *testing.B) {
		b.ReportAllocs()
		i, found := 0, 0
		for b.Loop() {
			if a, ok := semconv.Lookup(lookupKeys[i&7]); ok && a.Type != "" {
				found++
			}
			i++
		}
		require.Equal(b, i, found)
	})
	b.Run("unknown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := semconv.Lookup("http.request.body.size"); ok {
				b.Fatal()
			}
		}
	})
}

func BenchmarkSuggest(b *testing.B) {
	for b.Loop() {
		if len(semconv.Suggest("gen_ai.usage.inputtokens")) == 0 {
			b.Fatal()
		}
	}
}

// What a program pays for the import: two programs that differ in nothing else,
// each with the otel API, which its user has anyhow. The tables are data of the
// binary, so nothing of the package may run at the start.
func TestImportCostsNothingAtStart(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	bin := t.TempDir() + string(filepath.Separator)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./testdata/importcost/...").CombinedOutput()
	require.NoError(t, err, string(out))

	with := exec.CommandContext(t.Context(), bin+"with")
	with.Env = append(os.Environ(), "GODEBUG=inittrace=1") // the runtime tells which packages run code
	out, err = with.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "init runtime")
	require.NotContains(t, string(out), "init github.com/genaitrace/", "the tables need code to run at the start")

	size := func(name string) int64 {
		info, err := os.Stat(bin + name)
		require.NoError(t, err)
		return info.Size()
	}
	added := size("with") - size("without")
	t.Logf("importing semconv and looking up all it has adds %d kB to a binary", added/1024)
	require.Less(t, added, int64(1<<20))
}
