package genaitrace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

var binding = genaitrace.TokenizerBinding{"qwen2.5-7b-instruct": "b7c4e19f02ad5310"}

func TestATokenizerOfAnotherModelIsAnEventAndAnError(t *testing.T) {
	for name, open := range map[string]bool{"while it tokenizes": true, "afterwards": false} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
			_, tokenize := inf.StartTokenize(ctx)
			on := semconv.SpanTokenizerEncode
			if !open {
				tokenize.End()
				on = semconv.SpanInferenceGenerate
			}
			err := inf.CheckTokenizer(binding, "qwen2.5-7b-instruct", "9f2c41d07be3a685")
			tokenize.End()
			inf.End()

			var mismatch *genaitrace.TokenizerError
			require.ErrorAs(t, fmt.Errorf("load: %w", err), &mismatch)
			assert.Equal(t, genaitrace.TokenizerError{Model: "qwen2.5-7b-instruct", Want: "b7c4e19f02ad5310", Got: "9f2c41d07be3a685"}, *mismatch)
			assert.Equal(t, "genaitrace: tokenizer 9f2c41d07be3a685 does not belong to model qwen2.5-7b-instruct: "+
				"want b7c4e19f02ad5310; load the model's own tokenizer, or correct the binding", err.Error())

			s := r.span(on)
			assert.Equal(t, "9f2c41d07be3a685", s.text(semconv.GenAITokenizerHashKey))
			assert.ElementsMatch(t, []attribute.KeyValue{
				semconv.GenAITokenizerHash("9f2c41d07be3a685"), semconv.GenAITokenizerExpectedHash("b7c4e19f02ad5310"),
				genaiconv.RequestModel("qwen2.5-7b-instruct"),
			}, s.event(semconv.EventTokenizerMismatch).Attributes)
			for _, s := range r.recorder.Ended() {
				seen{s, t}.assertStatus("") // the request goes on
			}
		})
	}
}

func TestWhereTheRequestFailsForItsTokenizerTheErrorTypeSaysSo(t *testing.T) {
	r := record(t)
	_, inf := r.StartInference(t.Context(), genaitrace.Request{})
	inf.Fail(fmt.Errorf("load: %w", inf.CheckTokenizer(binding, "qwen2.5-7b-instruct", "9f2c41d07be3a685")))
	r.span(semconv.SpanInferenceGenerate).assertStatus("tokenizer_mismatch")
}

func TestATokenizerThatFitsOrOfWhichNothingIsKnownPasses(t *testing.T) {
	for name, tt := range map[string]struct {
		binding            genaitrace.TokenizerBinding
		model, fingerprint string
		recorded           bool
	}{
		"it fits":                {binding, "qwen2.5-7b-instruct", "b7c4e19f02ad5310", true},
		"a model without any":    {binding, "llama-3.1-8b", "9f2c41d07be3a685", true},
		"no binding":             {nil, "qwen2.5-7b-instruct", "9f2c41d07be3a685", true},
		"an unknown fingerprint": {binding, "qwen2.5-7b-instruct", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, tokenize := inf.StartTokenize(ctx)
			assert.NoError(t, inf.CheckTokenizer(tt.binding, tt.model, tt.fingerprint))
			inf.End()
			s := r.span(semconv.SpanTokenizerEncode)
			assert.Equal(t, tt.recorded, s.has(semconv.GenAITokenizerHashKey))
			assert.Empty(t, s.Events())
			tokenize.End()
		})
	}
}

// What a service does with the error must not depend on its sampling.
func TestATokenizerIsCheckedAlsoWhereNothingRecords(t *testing.T) {
	var nobody *genaitrace.Inference
	for name, inf := range map[string]*genaitrace.Inference{"nil": nobody, "zero": {}} {
		var mismatch *genaitrace.TokenizerError
		assert.ErrorAs(t, inf.CheckTokenizer(binding, "qwen2.5-7b-instruct", "9f2c41d07be3a685"), &mismatch, name)
		assert.NoError(t, inf.CheckTokenizer(binding, "qwen2.5-7b-instruct", "b7c4e19f02ad5310"), name)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = nobody.CheckTokenizer(binding, "qwen2.5-7b-instruct", "b7c4e19f02ad5310")
	}))
}

func TestAFingerprintIsThatOfTheTokenizerAndNotOfItsFiles(t *testing.T) {
	vocabulary := `{"model": {"vocab": {"a": 0, "b": 1}}, "version": "1.0"}`
	base := map[string]string{"tokenizer.json": vocabulary, "merges.txt": "a b\n"}
	for name, tt := range map[string]struct {
		files map[string]string
		names []string // nil: both, the other way round
		same  bool
	}{
		"the same files in another order": {base, []string{"tokenizer.json", "merges.txt"}, true},
		"white space": {map[string]string{
			"tokenizer.json": "\n{\"model\":{\"vocab\":{\"a\":0,\"b\":1}},\t\"version\":\"1.0\"}\n", "merges.txt": "a b\n",
		}, nil, true},
		"the order of keys": {map[string]string{
			"tokenizer.json": `{"version": "1.0", "model": {"vocab": {"b": 1, "a": 0}}}`, "merges.txt": "a b\n",
		}, nil, true},
		"escapes": {map[string]string{
			"tokenizer.json": `{"model": {"vocab": {"\u0061": 0, "b": 1}}, "version": "1.0"}`, "merges.txt": "a b\n",
		}, nil, true},
		"another token": {map[string]string{
			"tokenizer.json": `{"model": {"vocab": {"a": 0, "c": 1}}, "version": "1.0"}`, "merges.txt": "a b\n",
		}, nil, false},
		"another number": {map[string]string{
			"tokenizer.json": `{"model": {"vocab": {"a": 0, "b": 2}}, "version": "1.0"}`, "merges.txt": "a b\n",
		}, nil, false},
		"another merge": {map[string]string{"tokenizer.json": vocabulary, "merges.txt": "a  b\n"}, nil, false},
		"a file less":   {base, []string{"tokenizer.json"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := genaitrace.TokenizerFingerprint(folder(base), "merges.txt", "tokenizer.json")
			require.NoError(t, err)
			names := tt.names
			if names == nil {
				names = []string{"merges.txt", "tokenizer.json"}
			}
			got, err := genaitrace.TokenizerFingerprint(folder(tt.files), names...)
			require.NoError(t, err)
			assert.Equal(t, tt.same, want == got)
		})
	}
}

// The algorithm is documented, so that others can compute the same.
func TestTheFingerprintIsTheDocumentedOne(t *testing.T) {
	files := folder(map[string]string{
		"merges.txt":     "a b\n",
		"tokenizer.json": "{ \"vocab\": {\"<b>\": 1.0, \"<a>\": 0} }\n",
	})
	// printf '10:merges.txt,4:a b\n,14:tokenizer.json,29:{"vocab":{"<a>":0,"<b>":1.0}},' | sha256sum | cut -c-16
	const want = "673a96a98a110af2"
	got, err := genaitrace.TokenizerFingerprint(files, "tokenizer.json", "merges.txt")
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestAFingerprintThatCannotBeComputedSaysWhy(t *testing.T) {
	files := folder(map[string]string{
		"tokenizer.json": "{}", "broken.json": "{", "two.json": "{} {}", "empty.json": "",
	})
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, "genaitrace: tokenizer fingerprint: name at least one file, such as tokenizer.json"},
		{[]string{"tokenizer.json", "tokenizer.json"}, "genaitrace: tokenizer fingerprint: tokenizer.json is named twice"},
		{[]string{"missing.json"}, "genaitrace: tokenizer fingerprint: open missing.json: file does not exist"},
		{[]string{"broken.json"}, "genaitrace: tokenizer fingerprint: broken.json is not JSON: unexpected EOF"},
		{[]string{"empty.json"}, "genaitrace: tokenizer fingerprint: empty.json is not JSON: EOF"},
		{[]string{"two.json"}, "genaitrace: tokenizer fingerprint: two.json is not JSON: something follows the value"},
	} {
		got, err := genaitrace.TokenizerFingerprint(files, tt.names...)
		assert.EqualError(t, err, tt.want)
		assert.Empty(t, got)
	}
	_, err := genaitrace.TokenizerFingerprint(files, "missing.json")
	assert.True(t, errors.Is(err, fs.ErrNotExist))
}

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}
