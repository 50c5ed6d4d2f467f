package propagation

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	serverTimingKey  = "server-timing"
	traceResponseKey = "traceresponse"

	envoyUpstreamKey = "x-envoy-upstream-service-time"
	openAIKey        = "openai-processing-ms"
	orcaKey          = "endpoint-load-metrics"

	traceMetric = "trace"
	ourMetric   = memberKey

	// maxMetrics and maxResponseField bound what is read of a response.
	maxMetrics       = 32
	maxResponseField = 4096
)

// InjectResponse tells the caller, in the headers or trailers of the response,
// which span served the request and whether it was recorded: over gRPC as
// traceresponse, elsewhere as the metric "trace" of Server-Timing
// (https://w3c.github.io/trace-context/#trace-context-server-timing-metric-format),
// beside the metrics that carrier holds and in place of another such metric.
//
// Where the span context of ctx says [Member.Keep], the metric "genai" of
// Server-Timing says it too, over gRPC as well, with the probability that the
// tracestate names: genai;desc="k:1;th:0". Nothing else of the tracestate is told.
func InjectResponse(ctx context.Context, carrier propagation.TextMapCarrier) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return
	}
	value := string(appendTraceparent(nil, sc))
	list := make([]string, 0, 8)
	for metric := range splitQuoted(combined(carrier, serverTimingKey), ',') {
		name, _, _ := cutQuoted(metric, ';')
		name = trimOWS(name)
		if !strings.EqualFold(name, traceMetric) && !strings.EqualFold(name, ourMetric) && trimOWS(metric) != "" {
			list = append(list, trimOWS(metric))
		}
	}
	if _, ok := carrier.(GRPCMetadata); ok {
		carrier.Set(traceResponseKey, value)
	} else {
		list = append(list, traceMetric+";desc="+value)
	}
	if MemberOf(sc).Keep {
		desc := keepField + ":1"
		if th := thresholdField(sc.TraceState().Get(otelKey)); th != "" {
			desc += ";" + thField + ":" + th
		}
		list = append(list, ourMetric+`;desc="`+desc+`"`)
	}
	replace(carrier, serverTimingKey, strings.Join(list, ", "))
}

// The member of OpenTelemetry and its field for the threshold, of 1 to 14
// hexadecimal digits.
const (
	otelKey = "ot"
	thField = "th"
)

// thresholdField returns the threshold of a member, "" where there is none.
func thresholdField(value string) string {
	for value != "" {
		var key, val string
		if key, val, value = cutField(value); key == thField {
			if len(val) < 1 || len(val) > 14 || strings.Trim(val, "0123456789abcdef") != "" {
				return ""
			}
			return val
		}
	}
	return ""
}

// Response is what the headers or trailers of a response say of the other side.
// What is absent or unreadable is zero or not in the maps.
type Response struct {
	// SpanContext is the span that served the request, from the metric "trace" of
	// Server-Timing or from traceresponse. Its sampled flag tells what the server
	// recorded. Its tracestate is empty, or says [Member.Keep], with the
	// probability (ot=th:...) if the server told it. Who does not trust the server
	// must not act on either.
	SpanContext trace.SpanContext
	// Durations are those that the server tells, by name: the metrics of
	// Server-Timing as they are called there, "upstream" of Envoy, which is the
	// time to the upstream's headers, and "processing" of OpenAI. At most 32.
	Durations map[string]time.Duration
	// Load is what an engine tells of its load (ORCA's text form, as of vLLM), such
	// as "kv_cache_usage_perc". At most 32.
	Load map[string]float64
}

// ReadResponse reads what carrier, of a response, holds.
func ReadResponse(carrier propagation.TextMapCarrier) Response {
	var r Response
	var kept string
	for metric := range splitQuoted(shortField(combined(carrier, serverTimingKey)), ',') {
		if ours := r.readMetric(metric); kept == "" {
			kept = ours
		}
	}
	if !r.SpanContext.IsValid() {
		r.SpanContext = parseResponseContext(single(carrier, traceResponseKey))
	}
	r.readKept(kept)
	r.addDuration("upstream", trimOWS(single(carrier, envoyUpstreamKey)))
	r.addDuration("processing", trimOWS(single(carrier, openAIKey)))
	r.readLoad(shortField(combined(carrier, orcaKey)))
	return r
}

func shortField(field string) string {
	if len(field) > maxResponseField {
		return ""
	}
	return field
}

// readMetric reads one metric of Server-Timing: a name and parameters, of which
// dur is in milliseconds. It returns the description of our own.
func (r *Response) readMetric(metric string) (ours string) {
	name, rest, more := cutQuoted(metric, ';')
	name = trimOWS(name)
	desc, dur := "", ""
	for more {
		var param string
		param, rest, more = cutQuoted(rest, ';')
		key, value, _ := strings.Cut(param, "=")
		switch value = unquote(trimOWS(value)); strings.ToLower(trimOWS(key)) {
		case "desc":
			desc = value
		case "dur":
			dur = value
		}
	}
	if strings.EqualFold(name, traceMetric) {
		if !r.SpanContext.IsValid() {
			r.SpanContext = parseResponseContext(desc)
		}
		return ""
	}
	if isFieldName(name) {
		r.addDuration(name, dur)
	}
	if strings.EqualFold(name, ourMetric) {
		return desc
	}
	return ""
}

// readKept notes what the description of our metric says.
func (r *Response) readKept(desc string) {
	if desc == "" || !r.SpanContext.IsValid() || !hasPair(desc, keepField, "1") {
		return
	}
	state, err := trace.TraceState{}.Insert(memberKey, keepField+":1")
	if th := thresholdField(desc); th != "" && err == nil {
		state, err = state.Insert(otelKey, thField+":"+th)
	}
	if err == nil {
		r.SpanContext = r.SpanContext.WithTraceState(state)
	}
}

func hasPair(value, key, val string) bool {
	for value != "" {
		var k, v string
		if k, v, value = cutField(value); k == key {
			return v == val
		}
	}
	return false
}

func parseResponseContext(s string) trace.SpanContext {
	cfg, ok := parseTraceparent(s)
	if !ok {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(cfg)
}

// addDuration notes milliseconds of at most 292 years.
func (r *Response) addDuration(name, ms string) {
	v, err := strconv.ParseFloat(ms, 64)
	if err != nil || !(v >= 0 && v < math.MaxInt64/1e6) || len(r.Durations) == maxMetrics {
		return
	}
	if r.Durations == nil {
		r.Durations = make(map[string]time.Duration)
	}
	if _, ok := r.Durations[name]; !ok {
		r.Durations[name] = time.Duration(math.Round(v * 1e6))
	}
}

// readLoad reads ORCA's text form.
func (r *Response) readLoad(field string) {
	list, ok := strings.CutPrefix(trimOWS(field), "TEXT ")
	if !ok {
		return
	}
	for item := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(trimOWS(item), "=")
		name = strings.TrimPrefix(trimOWS(name), "named_metrics.")
		v, err := strconv.ParseFloat(trimOWS(value), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || !isFieldName(name) || len(r.Load) == maxMetrics {
			continue
		}
		if r.Load == nil {
			r.Load = make(map[string]float64)
		}
		r.Load[name] = v
	}
}

// splitQuoted yields the items of a list, where a separator in quotes separates
// nothing.
func splitQuoted(list string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for more := true; more; {
			var item string
			if item, list, more = cutQuoted(list, separator); !yield(item) {
				return
			}
		}
	}
}

// cutQuoted cuts s at the first separator that is not in quotes.
func cutQuoted(s string, separator byte) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// unquote returns what a token or a quoted string says.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
