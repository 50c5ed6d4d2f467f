package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// endless yields one request a line, a second after the one before.
type endless struct {
	requests, limit int
	rest            bytes.Buffer
	half            func()
}

var padding = strings.Repeat("x", 2000)

func (e *endless) Read(p []byte) (int, error) {
	if e.rest.Len() == 0 {
		if e.requests == e.limit {
			return 0, io.EOF
		}
		if e.requests == e.limit/2 {
			e.half()
		}
		e.requests++
		start := int64(1_767_323_045+e.requests) * 1_000_000_000
		fmt.Fprintf(&e.rest, `{"resourceSpans":[{"scopeSpans":[{"spans":[`+
			`{"traceId":"%032x","spanId":"%016x","name":"POST /v1/chat/completions","kind":2,"startTimeUnixNano":"%[3]d","endTimeUnixNano":"%[3]d",`+
			`"attributes":[{"key":"pad","value":{"stringValue":"%[4]d%[5]s"}}]},`+
			`{"traceId":"%032[1]x","spanId":"%016[6]x","parentSpanId":"%016[2]x","name":"chat toy-1","kind":3,"startTimeUnixNano":"%[3]d","endTimeUnixNano":"%[3]d",`+
			`"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.provider.name","value":{"stringValue":"vllm"}},`+
			`{"key":"gen_ai.request.model","value":{"stringValue":"toy-1"}},{"key":"pad","value":{"stringValue":"%[4]d%[5]s"}}]}]}]}]}`+"\n",
			e.requests, 2*e.requests, start, e.requests, padding, 2*e.requests+1)
	}
	return e.rest.Read(p)
}

func TestALongCaptureNeedsLittleMemory(t *testing.T) {
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const requests = 10_000
	var half int64
	input := &endless{limit: requests, half: func() { half = live() }}
	var grown int64
	got := run(t, io.MultiReader(input, atEnd(func() { grown = live() - half })), nil, withContract("--format", "json", "-")...)

	assert.Equal(t, 0, got.code, got.stderr)
	assert.Contains(t, got.stdout, fmt.Sprintf(`"traces": %d`, requests))
	assert.Less(t, grown, int64(requests/2*2*len(padding)/4), "bytes that the second half, of 20 MB, left behind")
}

// atEnd is an empty reader that tells when it is read.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
