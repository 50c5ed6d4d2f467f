package benchmarks

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// A fixture is a recorded answer with the plan of its writes and what is true of it;
// those of package wire, which has its expectations explained.
type fixture struct {
	Name    string            `json:"name"`
	Dialect string            `json:"dialect"`
	File    string            `json:"file"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Writes  []struct {
		AtMs int `json:"at_ms"`
		End  int `json:"end"`
	} `json:"writes"`
	Expect struct {
		FirstTokenMs *float64 `json:"first_token_ms"`
		InputTokens  *int     `json:"input_tokens"`
		OutputTokens *int     `json:"output_tokens"`
		Finish       []string `json:"finish"`
		Terminal     string   `json:"terminal"`
	} `json:"expect"`

	body []byte
}

// hurry is how much faster than recorded the fixtures are played.
const hurry = 2

// fixtureRows are the recorded answers of both APIs.
func fixtureRows(t *testing.T) []row {
	t.Helper()
	dir := filepath.Join("..", "middleware", "wire", "testdata", "fixtures")
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	var all []fixture
	require.NoError(t, json.Unmarshal(text, &all))
	var rows []row
	for _, f := range all {
		if f.Dialect != column.OpenAI.String() && f.Dialect != column.Anthropic.String() {
			continue
		}
		f.body, err = os.ReadFile(filepath.Join(dir, f.File))
		require.NoError(t, err)
		api := column.OpenAI
		if f.Dialect == column.Anthropic.String() {
			api = column.Anthropic
		}
		rows = append(rows, row{
			name: "recorded " + f.Name, only: []column.API{api}, serve: f.play,
			truth: func(words) truth { return f.truth() },
		})
	}
	require.NotEmpty(t, rows)
	return rows
}

func (f fixture) truth() truth {
	e := f.Expect
	is := truth{finish: e.Finish}
	switch e.Terminal {
	case "error", "truncated", "http_error":
		is.failed, is.silent = true, true
	}
	if e.InputTokens != nil && e.OutputTokens != nil {
		is.usage = usage{*e.InputTokens, *e.OutputTokens}
	}
	return is
}

// play writes the answer as it was recorded.
func (f fixture) play(s *script) {
	start := time.Now()
	if f.Headers["Content-Encoding"] == "" {
		s.plain, s.packed = len(f.body), len(f.body)
	}
	s.w.Header().Del("Content-Type")
	for key, value := range f.Headers {
		s.w.Header().Set(key, value)
	}
	if f.Status != 0 {
		s.w.WriteHeader(f.Status)
	}
	_ = http.NewResponseController(s.w).Flush()
	from := 0
	for _, write := range f.Writes {
		time.Sleep(time.Until(start.Add(time.Duration(write.AtMs) * time.Millisecond / hurry)))
		began := time.Now()
		_, _ = s.w.Write(f.body[from:write.End])
		_ = http.NewResponseController(s.w).Flush()
		from = write.End
		if first := f.Expect.FirstTokenMs; first == nil || float64(write.AtMs) != *first {
			continue
		}
		if s.log.began.IsZero() {
			s.log.began = began
		}
		s.log.plain, s.log.packed = write.End, write.End
		if f.Headers["Content-Encoding"] != "" {
			s.log.plain, s.log.packed = len(f.body), len(f.body) // it was not flushed in between
		}
	}
	_, _ = s.w.Write(f.body[from:])
	if f.Expect.Terminal == "truncated" {
		panic(http.ErrAbortHandler)
	}
}
