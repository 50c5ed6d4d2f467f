package contracttest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/contracttest"
)

func golden(path string, change ...func(*shop)) *recordingT {
	return chatted(func(r *recordingT, obs *contracttest.Observer) { obs.Golden(r, path) }, change...)
}

func TestAGoldenFileIsWrittenAndCompared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "chat.trace.txt")

	r := golden(path)
	assert.True(t, r.fatal)
	text := failure(t, r)
	assert.Contains(t, text, "there is no golden file "+path+"; set UPDATE_GOLDEN=1 to write it. It would hold:\n\nPOST /v1/chat/completions [server, gateway]\n")
	assert.NoFileExists(t, path)

	t.Setenv("UPDATE_GOLDEN", "1")
	r = golden(path)
	passes(t, r)
	assert.Contains(t, r.logs[0], "wrote "+path)

	t.Setenv("UPDATE_GOLDEN", "0")
	for range 3 {
		passes(t, golden(path)) // whatever its times and identifiers
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(data), "    inference.decode [internal, decode]\n        ai.decode.duration_ms: <double>\n")

	r = golden(path, func(s *shop) { s.earlyStop = true })
	assert.Equal(t, "contracttest: the spans differ from "+path+` (-), found (+); set UPDATE_GOLDEN=1 if that is right:

@@ line 15 @@
        genai.last_token_ms: <double>
        genai.span.role: "inference"
        llm.ttft_ms: <double>
+       * early_stop
      inference.decode [internal, decode]
          ai.decode.duration_ms: <double>
          genai.span.role: "decode"
`, failure(t, r))
}

func TestAGoldenFileWithWindowsLineEndsIsTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.trace.txt")
	require.NoError(t, os.WriteFile(path, []byte("job [internal]\r\n"), 0o600))
	passes(t, run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""))
		_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
		span.End()
		obs.Golden(r, path)
	}))
}

func TestWhatAGoldenFileShowsCanBeChosen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.trace.txt")
	t.Setenv("UPDATE_GOLDEN", "1")
	passes(t, chatted(func(r *recordingT, obs *contracttest.Observer) { obs.GoldenTree(r, path, capture.TreeOptions{}) }))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "POST /v1/chat/completions [server, gateway]\n  inference.generate [internal, inference]\n    inference.decode [internal, decode]\n", string(data))
}

func TestAGoldenFileThatCannotBeReadOrWrittenEndsTheTest(t *testing.T) {
	dir := t.TempDir()
	r := golden(dir)
	assert.True(t, r.fatal)
	assert.Contains(t, failure(t, r), dir)
	t.Setenv("UPDATE_GOLDEN", "1")
	r = golden(dir)
	assert.True(t, r.fatal)
	assert.Contains(t, failure(t, r), dir)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.True(t, golden(filepath.Join(file, "below")).fatal)
}
