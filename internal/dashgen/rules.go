package main

import (
	"bytes"

	"github.com/goccy/go-yaml"
)

const (
	model     = "gen_ai.request.model"
	role      = "genai.span.role"
	errorKind = "error.type"
	direction = "genai.token.direction"

	callDuration  = "gen_ai.client.inference.duration"
	callInput     = "gen_ai.client.inference.usage.input_tokens"
	callOutput    = "gen_ai.client.inference.usage.output_tokens"
	hopTTFT       = "genai.time_to_first_token"
	hostTTFT      = "gen_ai.server.time_to_first_token"
	hostCadence   = "gen_ai.server.time_per_output_token"
	hostDuration  = "gen_ai.server.request.duration"
	queueWait     = "genai.queue.wait"
	prefill       = "genai.prefill.duration"
	tokens        = "genai.tokens"
	tokenRate     = "genai.token.rate"
	cacheHits     = "genai.kv_cache.hit_ratio"
	stalls        = "genai.token.stalls"
	batchSize     = "genai.batch.size"
	activeServed  = "genai.active_requests"
	activeCalls   = "genai.active_calls"
	faults        = "genai.telemetry.faults"
	priceOfInput  = "genai:usd_per_input_token"
	priceOfOutput = "genai:usd_per_output_token"
)

type group struct {
	Name  string     `yaml:"name"`
	Rules []promRule `yaml:"rules"`
}

type promRule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// recordingRules hold what dashboards and alerts ask for most, by job and model.
func recordingRules(q *queries) group {
	g := group{Name: "genai"}
	record := func(name, expr string) {
		g.Rules = append(g.Rules, promRule{Record: "genai:" + name, Expr: expr})
	}
	record("call_rate:rate5m", q.rate(rule, callDuration, by(model)))
	record("call_error_ratio:rate5m", q.errorRatio(rule, callDuration, by(model)))
	record("call_duration_seconds:p95_5m", q.quantile(rule, 0.95, callDuration, by(model)))
	record("request_rate:rate5m", q.rate(rule, hostDuration, by(model)))
	record("request_error_ratio:rate5m", q.errorRatio(rule, hostDuration, by(model)))
	for _, p := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}} {
		record("ttft_seconds:"+p.name+"_5m", q.quantile(rule, p.share, hopTTFT, by(role, model)))
		record("host_ttft_seconds:"+p.name+"_5m", q.quantile(rule, p.share, hostTTFT, by(model)))
	}
	record("queue_wait_seconds:p95_5m", q.quantile(rule, 0.95, queueWait, by(model)))
	record("prefill_seconds:p95_5m", q.quantile(rule, 0.95, prefill, by(model)))
	record("seconds_per_output_token:p95_5m", q.quantile(rule, 0.95, hostCadence, by(model)))
	record("output_tokens:rate5m", q.increase(rule, tokens, by(model).with(direction, "output")))
	return g
}

// alerts hold where a model service usually first shows that it is in trouble. Their
// limits are a start: a chat of a small model and a batch of a large one differ by
// orders of magnitude.
func alerts(q *queries) group {
	g := group{Name: "genai-alerts"}
	alert := func(name, expr, lasts, severity, summary, description string) {
		g.Rules = append(g.Rules, promRule{
			Alert: name, Expr: expr, For: lasts,
			Labels:      map[string]string{"severity": severity},
			Annotations: map[string]string{"summary": summary, "description": description},
		})
	}
	alert("GenAICallsFail", "genai:call_error_ratio:rate5m > 0.05 and genai:call_rate:rate5m > 0.1", "10m", "page",
		"Model calls fail",
		"{{ $value | humanizePercentage }} of the calls of {{ $labels.job }} to {{ $labels.gen_ai_request_model }} failed in the last five minutes.")
	alert("GenAIRequestsFail", "genai:request_error_ratio:rate5m > 0.05 and genai:request_rate:rate5m > 0.1", "10m", "page",
		"An engine fails requests",
		"{{ $value | humanizePercentage }} of the requests to {{ $labels.gen_ai_request_model }} in {{ $labels.job }} failed in the last five minutes.")
	alert("GenAIFirstTokenSlow", "genai:ttft_seconds:p95_5m > 2", "10m", "page",
		"Users wait for the first token",
		"One request in twenty of {{ $labels.job }} ({{ $labels.genai_span_role }}) to {{ $labels.gen_ai_request_model }} waits {{ $value | humanizeDuration }} or longer for its first token.")
	alert("GenAIQueueLong", "genai:queue_wait_seconds:p95_5m > 1", "10m", "warning",
		"Requests queue",
		"One request in twenty to {{ $labels.gen_ai_request_model }} in {{ $labels.job }} waits {{ $value | humanizeDuration }} or longer for the scheduler.")
	alert("GenAIDecodeSlow", "genai:seconds_per_output_token:p95_5m > 0.2", "10m", "warning",
		"Tokens come slowly",
		"One request in twenty to {{ $labels.gen_ai_request_model }} in {{ $labels.job }} takes {{ $value | humanizeDuration }} or longer a token.")
	alert("GenAIRequestsStuck", stuck(q), "15m", "page",
		"Requests are under way and none ends",
		"{{ $value }} requests of {{ $labels.job }} have been under way while none ended.")
	alert("GenAITelemetryFaults", q.increase(rule, faults, by("genai.fault"))+" > 0", "15m", "warning",
		"Telemetry drops wrong input",
		"{{ $labels.job }} passes on input of the kind {{ $labels.genai_fault }} that telemetry has to drop.")
	return g
}

// stuck compares what is under way in an engine with what ends there.
func stuck(q *queries) string {
	underWay := q.current(rule, activeServed, selection{}.with(role, "inference"))
	ended := q.rate(source{window: "15m", labels: []string{"job"}}, hostDuration, selection{})
	return underWay + " > 0 unless " + ended + " > 0"
}

func rulesYAML(groups ...group) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Written by go run ./internal/dashgen; DO NOT EDIT. README.md says how to use it.\n")
	encoder := yaml.NewEncoder(&out, yaml.IndentSequence(true))
	if err := encoder.Encode(map[string][]group{"groups": groups}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
