package genaihttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A fixture is a response as a server sends it, with the plan of its writes and
// what an observer must report of it.
type fixture struct {
	Name    string            `json:"name"`
	File    string            `json:"file"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Writes  []struct {
		AtMs int `json:"at_ms"`
		End  int `json:"end"`
	} `json:"writes"`
	Expect struct {
		ID              *string  `json:"id"`
		Model           *string  `json:"model"`
		FirstChunkMs    *float64 `json:"first_chunk_ms"`
		FirstTokenMs    *float64 `json:"first_token_ms"`
		FirstVisibleMs  *float64 `json:"first_visible_ms"`
		LastTokenMs     *float64 `json:"last_token_ms"`
		DataEvents      int64    `json:"data_events"`
		TokenEvents     int64    `json:"token_events"`
		InputTokens     *int64   `json:"input_tokens"`
		OutputTokens    *int64   `json:"output_tokens"`
		CachedTokens    *int64   `json:"cached_tokens"`
		ReasoningTokens *int64   `json:"reasoning_tokens"`
		Finish          []string `json:"finish"`
		Terminal        string   `json:"terminal"`
		ErrorType       *string  `json:"error_type"`
		Engine          struct {
			TTFTMs  *float64 `json:"ttft_ms"`
			TotalMs *float64 `json:"total_ms"`
		} `json:"engine"`
	} `json:"expect"`

	body []byte
}

func loadFixtures(t *testing.T) []fixture {
	t.Helper()
	dir := filepath.Join("..", "wire", "testdata", "fixtures")
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	var all []fixture
	require.NoError(t, json.Unmarshal(text, &all))
	for i := range all {
		all[i].body, err = os.ReadFile(filepath.Join(dir, all[i].File))
		require.NoError(t, err)
	}
	return all
}

// ServeHTTP replays the fixture: each write at its time after the request.
func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	start := time.Now()
	for k, v := range f.Headers {
		w.Header().Set(k, v)
	}
	status := f.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_ = http.NewResponseController(w).Flush()
	from := 0
	for _, write := range f.Writes {
		time.Sleep(time.Until(start.Add(time.Duration(write.AtMs) * time.Millisecond)))
		_, _ = w.Write(f.body[from:write.End])
		_ = http.NewResponseController(w).Flush()
		from = write.End
	}
	_, _ = w.Write(f.body[from:])
	if f.Expect.Terminal == "truncated" {
		panic(http.ErrAbortHandler) // the connection breaks
	}
}

const chatRequest = `{"messages":[{"role":"user","content":"secret"}],"model":"gpt-fx","stream":true,"stream_options":{"include_usage":true}}`

func post(ctx context.Context, client *http.Client) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine.internal/v1/chat/completions", strings.NewReader(chatRequest))
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// Each fixture, replayed through the transport with its write plan, gives
// exactly what it expects, and the caller gets its bytes unchanged.
func TestTransportReportsWhatEachFixtureExpects(t *testing.T) {
	for _, f := range loadFixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				base, stop := serve(&f)
				client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
				resp, err := post(t.Context(), client)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				if f.Expect.Terminal == "truncated" {
					require.True(t, errors.Is(err, io.ErrUnexpectedEOF), "read error %v", err)
				} else {
					require.NoError(t, err)
				}
				require.NoError(t, resp.Body.Close())
				stop()
				assert.Equal(t, string(f.body), string(got), "the caller's bytes")
				checkFixture(t, &f, o)
			})
		})
	}
}

func checkFixture(t *testing.T, f *fixture, o *telemetry) {
	t.Helper()
	assert.Equal(t, "chat gpt-fx", o.onlyCall().Name())
	checkAnswer(t, f, o)
}

// onlyCall returns the one span of the test that is no phase by the engine's own
// account, and checks that each ended once.
func (o *telemetry) onlyCall() sdktrace.ReadOnlySpan {
	o.t.Helper()
	ended := o.spans.Ended()
	require.EqualValues(o.t, len(ended), o.started.Load(), "spans started")
	require.EqualValues(o.t, len(ended), o.ended.Load(), "spans ended")
	call := ended[len(ended)-1]
	for _, phase := range ended[:len(ended)-1] {
		require.Equal(o.t, call.SpanContext().SpanID(), phase.Parent().SpanID(), phase.Name())
		require.Contains(o.t, attributes(phase), semconv.GenAITimingSourceKey)
	}
	return call
}

func checkAnswer(t *testing.T, f *fixture, o *telemetry) {
	t.Helper()
	span := o.onlyCall()
	got, e := attributes(span), f.Expect
	optional(t, got, semconv.LLMTTFTMsKey, e.FirstTokenMs)
	optional(t, got, semconv.GenAIFirstVisibleMsKey, e.FirstVisibleMs)
	optional(t, got, semconv.GenAILastTokenMsKey, e.LastTokenMs)
	optional(t, got, genaiconv.ResponseIDKey, e.ID)
	optional(t, got, genaiconv.ResponseModelKey, e.Model)
	optional(t, got, genaiconv.UsageInputTokensKey, e.InputTokens)
	optional(t, got, genaiconv.UsageOutputTokensKey, e.OutputTokens)
	optional(t, got, genaiconv.UsageCacheReadInputTokensKey, e.CachedTokens)
	optional(t, got, genaiconv.UsageReasoningOutputTokensKey, e.ReasoningTokens)
	optional(t, got, "error.type", e.ErrorType, "stream_truncated")
	optional(t, got, semconv.GenAIEngineTTFTMsKey, e.Engine.TTFTMs)
	optional(t, got, semconv.GenAIEngineTotalMsKey, e.Engine.TotalMs)
	var firstChunk *float64
	if e.FirstChunkMs != nil {
		firstChunk = new(*e.FirstChunkMs / 1000)
		assert.Equal(t, e.DataEvents, got[semconv.GenAIChunkCountKey], "data events")
		assert.Equal(t, e.TokenEvents, got[semconv.GenAIChunkOutputCountKey], "token events")
	}
	optional(t, got, genaiconv.ResponseTimeToFirstChunkKey, firstChunk)
	if len(e.Finish) > 0 {
		assert.Equal(t, e.Finish, got[genaiconv.ResponseFinishReasonsKey])
	} else {
		assert.NotContains(t, got, genaiconv.ResponseFinishReasonsKey)
	}
	if e.FirstChunkMs != nil || e.Terminal == "http_error" {
		assert.Equal(t, e.Terminal, got[semconv.GenAIStreamTerminalKey])
	}
	wantStatus := codes.Unset
	switch e.Terminal {
	case "error", "truncated", "http_error":
		wantStatus = codes.Error
	}
	assert.Equal(t, wantStatus, span.Status().Code)

	// One number: attribute, event, histogram.
	count, sum := o.histogram(semconv.GenAITimeToFirstTokenName)
	if e.FirstTokenMs == nil {
		assert.Zero(t, count)
		assert.Empty(t, span.Events())
		return
	}
	assert.EqualValues(t, 1, count)
	assert.InDelta(t, *e.FirstTokenMs/1000, sum, 1e-12)
	require.Len(t, span.Events(), 1)
	event := span.Events()[0]
	assert.Equal(t, semconv.EventFirstToken, event.Name)
	assert.Equal(t, *e.FirstTokenMs, event.Attributes[0].Value.AsFloat64())
	assert.Equal(t, time.Duration(*e.FirstTokenMs)*time.Millisecond, event.Time.Sub(span.StartTime()))
	perChunk, _ := o.histogram(genaiconv.ClientInferenceTimePerOutputChunkName)
	assert.EqualValues(t, e.DataEvents-1, perChunk, "a value for each chunk after the first")
}

// optional checks that a key has the value, or is absent where it is nil.
func optional[T comparable](t *testing.T, got map[attribute.Key]any, key attribute.Key, want *T, allowed ...T) {
	t.Helper()
	if want == nil {
		if value, ok := got[key]; ok {
			for _, a := range allowed {
				if value == any(a) {
					return
				}
			}
			assert.Failf(t, "should be absent", "%s = %v", key, value)
		}
		return
	}
	assert.Equal(t, any(*want), got[key], string(key))
}
