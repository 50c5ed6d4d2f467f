package genaihttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// The middleware tells of each answer in the logs, and reads no content whatever the
// environment says: that is for those who have the messages.
func TestLogRecordsHoldNoContent(t *testing.T) {
	t.Setenv(content.Variable, "SPAN_AND_EVENT")
	rec := capture.NewRecorder()
	options := []genaihttp.Option{
		genaihttp.WithTracerProvider(rec.TracerProvider()), genaihttp.WithMeterProvider(rec.MeterProvider()), genaihttp.WithLoggerProvider(rec.LoggerProvider()),
	}
	const secret = "xylophone"
	server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m1","choices":[{"index":0,"delta":{"content":"`+secret+`"}}]}`+"\n\n"+
			`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}), options...))
	defer server.Close()
	client := &http.Client{Transport: genaihttp.NewTransport(nil, options...)}
	defer client.CloseIdleConnections()
	resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m1","stream":true,"messages":[{"role":"user","content":"`+secret+`"}]}`))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), secret, "it passed here")
	server.Close()

	got, err := rec.Capture(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Logs, 1, "one answer")
	record := got.Logs[0]
	assert.Equal(t, semconv.EventGenAICompletion, record.EventName)
	assert.Equal(t, got.Named("chat m1")[0].SpanID, record.SpanID)
	assert.Equal(t, "done", record.Attributes.String(semconv.GenAIStreamTerminalKey))
	for _, s := range got.Spans {
		assert.NotContains(t, fmt.Sprint(s.Name, s.Attributes, s.Events), secret)
	}
	for _, kv := range record.Attributes {
		assert.NotContains(t, kv.Value.String(), secret, kv.Key)
	}
	for _, m := range got.Metrics {
		assert.NotContains(t, fmt.Sprint(m.Points), secret)
	}
}
