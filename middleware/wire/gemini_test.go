package wire_test

import (
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/middleware/wire"
)

func candidate(parts, rest string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0` + rest + `}],"modelVersion":"m","responseId":"r"}`
}

func TestGeminiStreams(t *testing.T) {
	hi, stop := candidate(`{"text":"hi"}`, ""), candidate(`{"text":"!"}`, `,"finishReason":"STOP"`)
	withUsage := func(usage string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":` + usage + `}`
	}
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"text", sse(hi, stop), "id=r model=m chunks=2/2 visible finish=STOP finish"},
		{"CRLF", strings.ReplaceAll(sse(hi, stop), "\n", "\r\n"), "id=r model=m chunks=2/2 visible finish=STOP finish"},
		{"the output excludes thoughts, the prompt what tools brought", sse(withUsage(`{"promptTokenCount":20,"cachedContentTokenCount":8,"candidatesTokenCount":2,"thoughtsTokenCount":9,"toolUsePromptTokenCount":3}`)), "chunks=1/1 visible in=23 out=11 cached=8 reasoning=9 finish=STOP finish"},
		{"cumulative usage", sse(
			`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`,
			`{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":4}}`), "chunks=2/2 visible in=5 out=4 finish=STOP finish"},
		{"thoughts", sse(candidate(`{"text":"hm","thought":true}`, ""), candidate(`{"thought":true,"text":"so"}`, ""), stop), "id=r model=m chunks=3/3 visible finish=STOP finish"},
		{"an empty text with a signature", sse(candidate(`{"text":"","thoughtSignature":"Eq"}`, ""), stop), "id=r model=m chunks=2/1 visible finish=STOP finish"},
		{"a function alone", sse(candidate(`{"functionCall":{"name":"f","args":{}}}`, `,"finishReason":"STOP"`)), "id=r model=m chunks=1/1 finish=STOP finish"},
		{"code, its result, an image", sse(candidate(`{"executableCode":{"language":"PYTHON","code":"1+1"}}`, ""), candidate(`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}}`, ""), candidate(`{"inlineData":{"mimeType":"image/png","data":"AA"}}`, `,"finishReason":"STOP"`)), "id=r model=m chunks=3/2 visible finish=STOP finish"},
		{"two candidates", sse(`{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"MAX_TOKENS"},{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`), "chunks=1/1 visible finish=STOP,MAX_TOKENS finish"},
		{"two candidates, one of them cut", sse(`{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"text":"b"}]}}]}`, `{"candidates":[{"index":0,"finishReason":"STOP"}]}`), "chunks=2/1 visible finish=STOP truncated error=stream_truncated"},
		{"a blocked prompt", sse(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7}}`), "chunks=1/0 in=7 finish=PROHIBITED_CONTENT finish"},
		{"feedback on a prompt that passed", sse(`{"promptFeedback":{"safetyRatings":[]},"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"SAFETY"}]}`), "chunks=1/1 visible finish=SAFETY finish"},
		{"no finish reason", sse(hi, hi), "id=r model=m chunks=2/2 visible truncated error=stream_truncated"},
		{"an error as data", sse(hi, `{"error":{"code":503,"message":"secret","status":"UNAVAILABLE"}}`), "id=r model=m chunks=2/1 visible error error=UNAVAILABLE"},
		{"an error without a field", sse(hi) + "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"sec}ret\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n", "id=r model=m chunks=2/1 visible error error=UNAVAILABLE"},
		{"an error without a field, in an array", sse(hi) + "[{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n]", "id=r model=m chunks=2/1 visible error error=UNAVAILABLE"},
		{"an error without a field, alone, CRLF", "{\r\n  \"error\": {\"code\": 429, \"status\": \"RESOURCE_EXHAUSTED\"}\r\n}", "chunks=1/0 error error=RESOURCE_EXHAUSTED"},
		{"JSON without a field, cut", sse(hi, stop) + "{\n  \"error\": {", "id=r model=m chunks=2/2 visible finish=STOP truncated error=stream_truncated"},
		{"JSON without a field that never ends", sse(hi) + "{\n" + sse(stop), "id=r model=m chunks=2/2 visible finish=STOP finish"},
	})
	path := wire.Exchange{Path: "/v1beta/models/gemini-x:streamGenerateContent"}
	checkAnswers(t, path, jsonType, []answerCase{
		{"an array, piece by piece", "[" + hi + "\n,\r\n" + stop + "\n]\n", "id=r model=m chunks=2/2 visible finish=STOP finish"},
		{"an array, spread over lines", "[{\n  \"candidates\": [\n    {\"content\": {\"parts\": [{\"text\": \"}]\\\"\"}]},\n \"finishReason\": \"STOP\"}\n  ]\n}\n,\n{}]", "chunks=2/1 visible finish=STOP finish"},
		{"an array that is cut", "[" + hi + "\n,\r\n" + stop[:40], "id=r model=m chunks=1/1 visible truncated error=stream_truncated"},
		{"an array with an error", "[" + hi + ",\n{\"error\":{\"code\":500,\"status\":\"INTERNAL\"}}]", "id=r model=m chunks=2/1 visible error error=INTERNAL"},
		{"an empty array", "[]", "eof"},
	})
}

func TestGeminiWholeAnswers(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"an answer", `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":1,"thoughtsTokenCount":2},"modelVersion":"m","responseId":"r"}`, "id=r model=m in=4 out=3 reasoning=2 finish=STOP"},
		{"a stream that came whole", "[" + candidate(`{"text":"a"}`, "") + "," + candidate(`{"text":"b"}`, `,"finishReason":"STOP"`) + "]", "id=r model=m finish=STOP"},
		{"an embedding", `{"embedding":{"values":[0.1,0.2]}}`, ""},
	})
	checkAnswers(t, wire.Exchange{Status: 429, Path: "/v1beta/models/x:streamGenerateContent"}, jsonType, []answerCase{
		{"too many requests", `[{"error":{"code":429,"message":"secret","status":"RESOURCE_EXHAUSTED"}}]`, "http_error error=RESOURCE_EXHAUSTED"},
	})
}
