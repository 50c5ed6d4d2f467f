package wire

import (
	"bytes"
	"math"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// EngineTimes are durations of one request as the engine reports them, in the
// answer or in a header. nil is unknown. The phases become attributes of the
// call's span and spans below it, and Source their genai.timing.source, such as
// "vllm.metrics"; see [genaitrace.Call.RecordPhases]. FirstToken and Total become attributes; the others
// stay here.
type EngineTimes struct {
	genaitrace.PhaseTimes

	// FirstToken is the server's own time to first token (genai.engine.ttft_ms).
	FirstToken *time.Duration
	// Total is the whole request (genai.engine.total_ms).
	Total *time.Duration
	// Validation, Inference and PerToken are what Text Generation Inference
	// tells besides: checking the request, prefill and decode together, and their
	// mean for each token.
	Validation, Inference, PerToken *time.Duration
	// Processing is OpenAI's header of that name: the time until the answer
	// began, for a stream.
	Processing *time.Duration
}

// timesFrom has no duration yet.
func timesFrom(source semconv.GenAITimingSourceAttr) EngineTimes {
	return EngineTimes{PhaseTimes: genaitrace.PhaseTimes{Source: source}}
}

func (t *EngineTimes) fields() [12]**time.Duration {
	return [...]**time.Duration{
		&t.Queue, &t.Load, &t.Tokenize, &t.Schedule, &t.Prefill, &t.Decode,
		&t.FirstToken, &t.Total, &t.Validation, &t.Inference, &t.PerToken, &t.Processing,
	}
}

// record hands the phases to the call, and what is of the whole request.
func (t *EngineTimes) record(call *genaitrace.Call) {
	var attrs []attribute.KeyValue
	if t.FirstToken != nil && *t.FirstToken >= 0 {
		attrs = append(attrs, semconv.GenAIEngineTTFTMs(float64(*t.FirstToken)/1e6))
	}
	if t.Total != nil && *t.Total >= 0 {
		attrs = append(attrs, semconv.GenAIEngineTotalMs(float64(*t.Total)/1e6))
	}
	if len(attrs) > 0 {
		call.SetAttributes(append(attrs, semconv.GenAITimingSource(t.Source))...)
	}
	p := t.PhaseTimes
	if p.Source = ""; p != (genaitrace.PhaseTimes{}) {
		call.RecordPhases(t.PhaseTimes)
	}
}

// known reports whether there is any duration.
func (t *EngineTimes) known() bool {
	for _, f := range t.fields() {
		if *f != nil {
			return true
		}
	}
	return false
}

// merge takes over what is known of later.
func (t *EngineTimes) merge(later EngineTimes) {
	if !later.known() {
		return
	}
	t.Source = later.Source
	have, told := t.fields(), later.fields()
	for i := range have {
		if *told[i] != nil {
			*have[i] = *told[i]
		}
	}
}

// A unit is a number of nanoseconds, as a power of ten.
type unit int

const (
	nanoseconds  unit = 0
	milliseconds unit = 6
	seconds      unit = 9
)

// duration is the number that value holds, exactly: seconds since 1970 with six
// decimals are more than a float64 can tell apart. nil where value is no number,
// or beyond what a Duration holds.
func duration(value []byte, u unit) *time.Duration {
	ns, ok := decimal(value, int(u))
	if !ok {
		return nil
	}
	return new(time.Duration(ns))
}

// decimal is value × 10^power, rounded to a whole number.
func decimal(value []byte, power int) (n int64, ok bool) {
	negative := len(value) > 0 && value[0] == '-'
	if negative {
		value = value[1:]
	}
	digits, seen, point := 0, false, false
	i := 0
	for ; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '.' && !point:
			point = true
			continue
		case c < '0' || c > '9':
		default:
			seen = true
			if digits < 18 { // the rest is below a nanosecond, or too large anyway
				n = n*10 + int64(c-'0')
				if n > 0 {
					digits++
				}
				if point {
					power--
				}
			} else if !point {
				power++
			}
			continue
		}
		break
	}
	if i < len(value) {
		exponent, ok := exponent(value[i:])
		if !ok {
			return 0, false
		}
		power += exponent
	}
	if !seen {
		return 0, false
	}
	if n, ok = shift(n, power); negative {
		n = -n
	}
	return n, ok
}

// exponent reads "e-05".
func exponent(b []byte) (n int, ok bool) {
	if len(b) < 2 || b[0] != 'e' && b[0] != 'E' {
		return 0, false
	}
	if b = b[1:]; b[0] == '+' {
		b = b[1:]
	}
	if n, ok = wholeNumber(b); n < -1000 || n > 1000 {
		return 0, false
	}
	return n, ok
}

// shift is n × 10^power, rounded.
func shift(n int64, power int) (int64, bool) {
	for ; power > 0 && n > 0; power-- {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	for ; power < -1 && n > 0; power++ {
		n /= 10
	}
	if power == -1 {
		n = (n + 5) / 10
	}
	return n, true
}

// readHeaders takes over what the headers tell; the body may know better.
func (a *Answer) readHeaders(h http.Header, status int) {
	if len(h) == 0 {
		return
	}
	a.times.merge(openAIHeaders(h))
	for _, read := range [...]func(http.Header) (EngineTimes, tokens){tgiHeaders, fireworksHeaders, bedrockHeaders} {
		times, counts := read(h)
		a.times.merge(times)
		a.implied.merge(counts)
	}
	if exception, _, _ := bytes.Cut(header(h, "X-Amzn-Errortype"), []byte(":")); status >= http.StatusBadRequest && len(exception) > 0 {
		a.SetError(string(exception))
	}
}

// header is a value as the readers of JSON take it. name is in canonical form.
func header(h http.Header, name string) []byte {
	if values := h[name]; len(values) > 0 {
		return []byte(values[0])
	}
	return nil
}
