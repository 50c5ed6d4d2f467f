package wire_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"testing"

	"github.com/genaitrace/otelgenai/middleware/wire"
)

// awsMessage encodes a message of an AWS event-stream with string headers.
func awsMessage(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		h = append(append(h, byte(len(name))), name...)
		h = append(h, 7)
		h = append(binary.BigEndian.AppendUint16(h, uint16(len(value))), value...)
	}
	return awsFrame(string(h), payload)
}

func awsFrame(headers, payload string) string {
	m := []byte(awsPrelude(uint32(16+len(headers)+len(payload)), uint32(len(headers))))
	m = append(append(m, headers...), payload...)
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

func awsPrelude(total, headers uint32) string {
	m := binary.BigEndian.AppendUint32(nil, total)
	m = binary.BigEndian.AppendUint32(m, headers)
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

func awsEvent(name, payload string) string {
	return awsMessage(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

func awsException(name, payload string) string {
	return awsMessage(payload, ":exception-type", name, ":content-type", "application/json", ":message-type", "exception")
}

// invoked is an event of InvokeModelWithResponseStream.
func invoked(payload string) string {
	return awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(payload))+`","p":"abcdef"}`)
}

func TestBedrockConverseStreams(t *testing.T) {
	start, hi := awsEvent("messageStart", `{"role":"assistant"}`), awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"hi"},"p":"abcdefgh"}`)
	stop := awsEvent("messageStop", `{"stopReason":"end_turn"}`)
	metadata := awsEvent("metadata", `{"usage":{"inputTokens":12,"outputTokens":3,"totalTokens":45,"cacheReadInputTokens":20,"cacheWriteInputTokens":10},"metrics":{"latencyMs":305}}`)
	delta := func(d string) string {
		return awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":`+d+`}`)
	}
	checkAnswers(t, wire.Exchange{}, awsType, []answerCase{
		{"the input excludes the cache", start + hi + hi + stop + metadata, "chunks=5/2 visible in=42 out=3 cached=20 written=10 finish=end_turn done total=305ms from=bedrock.metrics"},
		{"no metadata", start + hi + stop, "chunks=3/1 visible finish=end_turn finish"},
		{"polite cut", start + hi, "chunks=2/1 visible truncated error=stream_truncated"},
		{"cut in a message", start + hi + stop[:20], "chunks=2/1 visible truncated error=stream_truncated"},
		{"reasoning, its signature, a tool", start + delta(`{"reasoningContent":{"text":"hm"}}`) + delta(`{"reasoningContent":{"signature":"Eq"}}`) +
			awsEvent("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}`) + delta(`{"toolUse":{"input":"{}"}}`) + stop + metadata,
			"chunks=7/3 in=42 out=3 cached=20 written=10 finish=end_turn done total=305ms from=bedrock.metrics"},
		{"throttled", start + hi + awsException("throttlingException", `{"message":"secret"}`), "chunks=3/1 visible error error=throttlingException"},
		{"throttled at once", awsException("throttlingException", `{"message":"secret"}`), "chunks=1/0 error error=throttlingException"},
		{"an error of the service", start + awsMessage("", ":error-code", "InternalFailure", ":error-message", "secret", ":message-type", "error"), "chunks=2/0 error error=InternalFailure"},
		{"an empty stop reason", start + awsEvent("messageStop", `{"stopReason":null}`), "chunks=2/0 truncated error=stream_truncated"},
		{"nothing", "", "eof"},
	})
}

func TestBedrockInvokeStreams(t *testing.T) {
	metrics := func(members string) string {
		return members + `"amazon-bedrock-invocationMetrics":{"inputTokenCount":14,"outputTokenCount":7,"invocationLatency":7209,"firstByteLatency":886}}`
	}
	const told = "in=14 out=7 "
	const times = " first=886ms total=7.209s from=bedrock.invocationMetrics"
	checkAnswers(t, wire.Exchange{}, awsType, []answerCase{
		{"Anthropic", invoked(messageStart) + invoked(textDelta) + invoked(textDelta) + invoked(messageDelta) + invoked(metrics(`{"type":"message_stop",`)), "id=msg model=m chunks=5/2 visible " + told + "finish=end_turn done" + times},
		{"Llama", invoked(`{"generation":"","prompt_token_count":9,"generation_token_count":1,"stop_reason":null}`) + invoked(`{"generation":"hi","prompt_token_count":null,"generation_token_count":2,"stop_reason":null}`) +
			invoked(metrics(`{"generation":"","prompt_token_count":null,"generation_token_count":3,"stop_reason":"length",`)), "chunks=3/1 visible " + told + "finish=length done" + times},
		{"Llama, no metrics", invoked(`{"generation":"a","prompt_token_count":9,"generation_token_count":1,"stop_reason":null}`) + invoked(`{"generation":"b","prompt_token_count":null,"generation_token_count":2,"stop_reason":"stop"}`), "chunks=2/2 visible in=9 out=2 finish=stop finish"},
		{"Titan", invoked(metrics(`{"outputText":"hi","index":0,"inputTextTokenCount":3,"totalOutputTextTokenCount":1,"completionReason":"FINISH",`)), "chunks=1/1 visible " + told + "finish=FINISH done" + times},
		{"Mistral's completions", invoked(`{"outputs":[{"text":"hi","stop_reason":null}]}`) + invoked(metrics(`{"outputs":[{"text":"","stop_reason":"stop"}],`)), "chunks=2/1 visible " + told + "finish=stop done" + times},
		{"Cohere", invoked(`{"text":"hi","is_finished":false}`) + invoked(metrics(`{"text":"","is_finished":true,"finish_reason":"COMPLETE",`)), "chunks=2/1 visible " + told + "finish=COMPLETE done" + times},
		{"Nova", invoked(`{"messageStart":{"role":"assistant"}}`) + invoked(`{"contentBlockDelta":{"delta":{"text":"hi"},"contentBlockIndex":0}}`) + invoked(`{"messageStop":{"stopReason":"end_turn"}}`) + invoked(metrics(`{"metadata":{"usage":{"inputTokens":14,"outputTokens":7}},`)), "chunks=4/1 visible " + told + "finish=end_turn done" + times},
		{"models that speak as OpenAI", invoked(delta(`"content":"hi"`)) + invoked(metrics(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`)), "id=c model=m chunks=2/1 visible " + told + "finish=stop done" + times},
		{"DeepSeek's completions", invoked(`{"choices":[{"text":"hi","stop_reason":null}]}`) + invoked(`{"choices":[{"text":"","stop_reason":"stop"}]}`), "chunks=2/1 visible finish=stop finish"},
		{"the cache apart", invoked(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":14,"outputTokenCount":7,"cacheReadInputTokenCount":100,"cacheWriteInputTokenCount":0}}`), "chunks=1/0 in=114 out=7 cached=100 written=0 done"},
		{"padding inside, which is found before the text", invoked(`{"generation":"a","p":"xyz"}`) + invoked(`{"generation":"b","p":"x"}`) + invoked(`{"outputs":[{"text":"c"}],"p":"x"}`) + invoked(`{"generation":"","stop_reason":"stop"}`), "chunks=4/3 visible finish=stop finish"},
		{"a cache that is part of the input", invoked(delta(`"content":"hi"`)) + invoked(metrics(`{"id":"c","choices":[],"usage":{"prompt_tokens":14,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":8}},`)), "id=c model=m chunks=2/1 visible in=14 out=7 cached=8 done" + times},
		{"an error inside", invoked(messageStart) + invoked(`{"type":"error","error":{"type":"overloaded_error"}}`), "id=msg model=m chunks=2/0 in=25 out=1 error error=overloaded_error"},
		{"bytes that are none", awsEvent("chunk", `{"bytes":"%%%"}`) + awsEvent("chunk", `{"bytes":7}`) + invoked(textDelta), "chunks=3/1 visible truncated error=stream_truncated"},
	})
}

func TestBedrockWholeAnswers(t *testing.T) {
	x := wire.Exchange{Path: "/model/m/converse"}
	checkAnswers(t, x, jsonType, []answerCase{
		{"Converse", `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7},"metrics":{"latencyMs":305}}`, "in=5 out=2 finish=end_turn total=305ms from=bedrock.metrics"},
	})
	x = wire.Exchange{Path: "/model/m/invoke", Response: http.Header{}}
	x.Response.Set("X-Amzn-Bedrock-Invocation-Latency", "1200")
	x.Response.Set("X-Amzn-Bedrock-Input-Token-Count", "4")
	x.Response.Set("X-Amzn-Bedrock-Output-Token-Count", "2")
	const times = " total=1.2s from=bedrock.headers"
	checkAnswers(t, x, jsonType, []answerCase{
		{"Anthropic", `{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":4,"output_tokens":2}}`, "id=msg model=m in=4 out=2 finish=end_turn" + times},
		{"Llama", `{"generation":"hi","prompt_token_count":4,"generation_token_count":2,"stop_reason":"stop"}`, "in=4 out=2 finish=stop" + times},
		{"Titan", `{"inputTextTokenCount":4,"results":[{"tokenCount":2,"outputText":"hi","completionReason":"FINISH"}]}`, "in=4 out=2 finish=FINISH" + times},
		{"Cohere", `{"id":"g","generations":[{"id":"g","finish_reason":"COMPLETE","text":"hi"}]}`, "in=4 out=2 finish=COMPLETE" + times},
	})
	x = wire.Exchange{Path: "/model/m/invoke", Status: 429, Response: http.Header{}}
	x.Response.Set("X-Amzn-Errortype", "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/")
	checkAnswers(t, x, jsonType, []answerCase{{"throttled", `{"message":"secret"}`, "http_error error=ThrottlingException"}})
}
