package wire_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestAPathTellsOperationProviderAndModel(t *testing.T) {
	for _, tt := range []struct {
		path      string
		operation genaiconv.OperationNameAttr // none: no call of a model
		provider  genaiconv.ProviderNameAttr
		model     string
		stream    bool
	}{
		{"/v1/chat/completions", "chat", "openai", "", false},
		{"/chat/completions", "chat", "openai", "", false},
		{"chat/completions", "chat", "openai", "", false},
		{"/openai/v1/completions", "text_completion", "openai", "", false},
		{"/v1/embeddings", "embeddings", "openai", "", false},
		{"/v1/responses", "chat", "openai", "", false},
		{"/openai/deployments/my-gpt/chat/completions", "chat", "azure.ai.openai", "my-gpt", false},
		{"/v1/messages", "chat", "anthropic", "", false},
		{"/anthropic/v1/messages", "chat", "anthropic", "", false},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict", "chat", "gcp.vertex_ai", "claude-x", true},
		{"/v1beta/models/gemini-x:generateContent", "generate_content", "gcp.gemini", "gemini-x", false},
		{"/v1beta/models/gemini-x:streamGenerateContent", "generate_content", "gcp.gemini", "gemini-x", true},
		{"/v1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent", "generate_content", "gcp.vertex_ai", "gemini-x", true},
		{"/v1beta/models/e:batchEmbedContents", "embeddings", "gcp.gemini", "e", false},
		{"/model/us.anthropic.claude-x-v1:0/converse", "chat", "aws.bedrock", "us.anthropic.claude-x-v1:0", false},
		{"/model/arn:aws:bedrock:r:1:inference-profile/us.x/converse-stream", "chat", "aws.bedrock", "arn:aws:bedrock:r:1:inference-profile/us.x", true},
		{"/model/m/invoke", "chat", "aws.bedrock", "m", false},
		{"/model/m/invoke-with-response-stream", "chat", "aws.bedrock", "m", true},
		{"/api/chat", "chat", "ollama", "", true},
		{"/api/generate", "text_completion", "ollama", "", true},
		{"/api/embed", "embeddings", "ollama", "", false},
		{"/completion", "text_completion", "llama.cpp", "", false},
		{"/generate", "text_completion", "", "", false},
		{"/generate_stream", "text_completion", "tgi", "", true},
		{"/v2/models/llama/generate", "text_completion", "triton", "llama", false},
		{"/v2/models/llama/versions/3/generate_stream", "text_completion", "triton", "llama", true},
		{"/v2/models/llama/infer", "inference", "triton", "llama", false},

		{"/v1/models", "", "", "", false},
		{"/v1/threads/t/messages", "", "", "", false},
		{"/v1/messages/count_tokens", "", "", "", false},
		{"/v1/chat/completions/c", "", "", "", false},
		{"/model//invoke", "", "", "", false},
		{"/invoke", "", "", "", false},
		{"/v2/models//infer", "", "", "", false},
		{"/", "", "", "", false},
		{"", "", "", "", false},
	} {
		t.Run(tt.path, func(t *testing.T) {
			e, ok := wire.FindEndpoint(tt.path)
			assert.Equal(t, tt.operation != "", ok)
			assert.Equal(t, tt.operation, e.Operation)
			assert.Equal(t, tt.provider, e.Provider)
			assert.Nil(t, e.Dialect, "the answer tells")
			assert.Equal(t, genaitrace.Request{Model: tt.model, Stream: tt.stream}, wire.ReadRequest(tt.path, nil))
		})
	}
}

func TestOnesOwnEndpointComesFirst(t *testing.T) {
	own := []wire.Endpoint{
		{Path: "/predict", Operation: genaiconv.OperationNameChat, Provider: "house"},
		{Path: "/v1/chat/completions", Provider: "house"},
		{Path: "/lm/*/run", Operation: genaiconv.OperationNameChat},
		{}, // matches nothing
	}
	e, ok := wire.FindEndpoint("/a/predict", own...)
	assert.True(t, ok)
	assert.EqualValues(t, "house", e.Provider)
	e, _ = wire.FindEndpoint("/v1/chat/completions", own...)
	assert.EqualValues(t, "house", e.Provider)
	e, _ = wire.FindEndpoint("/v1/completions", own...)
	assert.EqualValues(t, "openai", e.Provider)
	_, ok = wire.FindEndpoint("/x", own...)
	assert.False(t, ok)
	r := wire.NewRequestReader("/lm/m7/run", own...)
	assert.Equal(t, "m7", r.Request().Model)
}

func TestHeadersTellStreamsFromWholeAnswers(t *testing.T) {
	for _, tt := range []struct {
		contentType, encoding, path string
		status                      int
		streamed, document          bool
	}{
		{"text/event-stream", "", "", 200, true, false},
		{"Text/Event-Stream; charset=utf-8", "identity", "", 200, true, false},
		{"text/event-stream; charset=utf-8; charset=UTF-8", "", "", 200, true, false},
		{"application/json; =", "", "", 200, false, true},
		{"text/event-stream", "gzip", "", 200, true, false},
		{"application/json", "Deflate", "", 200, false, true},
		{"text/event-stream", "br", "", 200, false, false},
		{"text/event-stream", "gzip, br", "", 200, false, false},
		{"application/x-ndjson", "", "", 200, true, false},
		{"application/jsonl", "", "", 200, true, false},
		{"application/vnd.amazon.eventstream", "", "", 200, true, false},
		{"application/json", "", "", 200, false, true},
		{"application/problem+json", "", "", 400, false, true},
		{"application/json; charset=utf-8", "br", "", 200, false, false},
		{"application/json", "", "/v1beta/models/x:streamGenerateContent", 0, true, false},
		{"application/json", "", "/v1beta/models/x:streamGenerateContent", 503, false, true},
		{"text/html", "", "", 200, false, false},
		{"nonsense;;", "", "", 200, false, false},
		{"", "", "", 200, false, false},
	} {
		h := http.Header{}
		h.Set("Content-Type", tt.contentType)
		h.Set("Content-Encoding", tt.encoding)
		x := wire.Exchange{Path: tt.path, Response: h, Status: tt.status}
		assert.Equal(t, tt.streamed, x.Streamed(), "%+v", tt)
		assert.Equal(t, tt.document, x.Document(), "%+v", tt)
	}
	assert.True(t, wire.Exchange{}.Streamed(), "nothing is known: the body has to tell")
	assert.False(t, wire.Exchange{}.Document())
}

// What the first event cannot tell, path and headers do; where they mislead, the
// event decides.
func TestTheFirstEventDecidesAndTheRestHelps(t *testing.T) {
	headers := func(name, value string) http.Header {
		h := http.Header{}
		h.Set(name, value)
		return h
	}
	failure := sse(`{"error":"secret","error_type":"overloaded"}`) // OpenAI knows no error_type
	for name, tt := range map[string]struct {
		x    wire.Exchange
		body string
		want string
	}{
		"by path":                     {wire.Exchange{Path: "/generate_stream"}, failure, "chunks=1/0 error error=overloaded"},
		"by a header of the answer":   {wire.Exchange{Response: headers("X-Compute-Type", "gpu+optimized")}, failure, "chunks=1/0 error error=overloaded"},
		"by choice":                   {wire.Exchange{Dialect: wire.TGI}, failure, "chunks=1/0 error error=overloaded"},
		"by a header of the request":  {wire.Exchange{Request: headers("x-goog-api-key", "k")}, sse(`{"responseId":"r","modelVersion":"m"}`), "id=r model=m chunks=1/0 eof"},
		"by another one":              {wire.Exchange{Request: headers("anthropic-version", "2023-06-01")}, sse(`{"id":"r","model":"m"}`), "chunks=1/0 eof"},
		"not at all":                  {wire.Exchange{}, failure, "chunks=1/0 error error=stream_error"},
		"a path that misleads":        {wire.Exchange{Path: "/v1/messages"}, sse(delta(`"content":"hi"`), "[DONE]"), "id=c model=m chunks=1/1 visible done"},
		"another path that misleads":  {wire.Exchange{Path: "/v1/chat/completions"}, sse(messageStart, messageStop), "id=msg model=m chunks=2/0 in=25 out=1 done"},
		"llama.cpp under OpenAI's":    {wire.Exchange{Path: "/completions"}, sse(`{"content":"a","stop":false}`, `{"content":"","stop":true,"stop_type":"eos"}`), "chunks=2/1 visible finish=eos finish"},
		"SGLang under TGI's":          {wire.Exchange{Path: "/generate"}, sse(`{"text":"a","meta_info":{"completion_tokens":1}}`, "[DONE]"), "chunks=1/1 visible out=1 done"},
		"a choice is not given up":    {wire.Exchange{Dialect: wire.Anthropic}, sse(delta(`"content":"hi"`)), "chunks=1/0 eof"},
		"no dialect, though path":     {wire.Exchange{Path: "/v1/chat/completions"}, sse(`{"x":1}`), "chunks=1/0 eof"},
		"recognised after unknown":    {wire.Exchange{}, sse(`{"x":1}`, messageStart, messageStop), "id=msg model=m chunks=3/0 in=25 out=1 done"},
		"a framing without a dialect": {wire.Exchange{}, lines(`{"x":1}`, `{"x":2}`), "chunks=2/0 eof"},
	} {
		if tt.x.Response != nil {
			tt.x.Response.Set("Content-Type", eventStreamType)
		}
		assert.Equal(t, tt.want, observe(tt.x, []byte(tt.body)), name)
	}
}

// Without headers line ends may come before the first byte that tells.
func TestTheFirstByteTellsTheFraming(t *testing.T) {
	ollama := lines(`{"model":"m","response":"a","done":false}`, `{"model":"m","response":"","done":true,"done_reason":"stop"}`)
	for name, tt := range map[string]struct{ body, want string }{
		"NDJSON":            {ollama, "model=m chunks=2/1 visible finish=stop done"},
		"NDJSON after CRLF": {"\r\n\r\n" + ollama, "model=m chunks=2/1 visible finish=stop done"},
		"an array":          {"\n[" + candidate(`{"text":"a"}`, `,"finishReason":"STOP"`) + "]", "id=r model=m chunks=1/1 visible finish=STOP finish"},
		"AWS":               {awsEvent("messageStop", `{"stopReason":"x"}`), "chunks=1/0 finish=x finish"},
		"events":            {"\n\n: ping\n\n" + sse(delta(`"content":"a"`), "[DONE]"), "id=c model=m chunks=1/1 visible done"},
		"nothing":           {"\n\r\n", "eof"},
	} {
		assert.Equal(t, tt.want, observe(wire.Exchange{}, []byte(tt.body)), name)
		assert.Equal(t, tt.want, observe(wire.Exchange{}, chop([]byte(tt.body), 1)...), name)
	}
}
