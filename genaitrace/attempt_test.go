package genaitrace_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A transport makes one attempt after the other with a call; what the earlier
// ones noted of their failure is forgotten.
func TestAnAttemptForgetsTheFailureOfTheOneBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		second    func(call *genaitrace.Call)
		terminal  semconv.GenAIStreamTerminalAttr
		errorType string
	}{
		"it succeeds":     {func(call *genaitrace.Call) { call.SetTerminal(semconv.GenAIStreamTerminalDone) }, "done", ""},
		"it says nothing": {func(*genaitrace.Call) {}, "", ""},
		"it fails in another way": {func(call *genaitrace.Call) {
			call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
			call.SetErrorType("late")
		}, "timeout", "late"},
		"it fails without a word": {func(call *genaitrace.Call) { call.SetTerminal(semconv.GenAIStreamTerminalError) }, "error", "_OTHER"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			assert.Equal(t, 1, call.Watch())
			assert.Zero(t, call.Watch(), "the first attempt has it")
			call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
			call.SetErrorType("429")
			call.Release()
			assert.Equal(t, 2, call.Watch())
			tt.second(call)
			call.End()

			s := r.span("chat")
			s.assertStatus(tt.errorType)
			if tt.terminal == "" {
				assert.False(t, s.has(semconv.GenAIStreamTerminalKey))
			} else {
				assert.Equal(t, string(tt.terminal), s.text(semconv.GenAIStreamTerminalKey))
			}
			d := dims(r.point(genaiconv.ClientInferenceDurationName).Attributes)
			if tt.errorType == "" {
				assert.NotContains(t, d, "error.type")
			} else {
				assert.Equal(t, tt.errorType, d["error.type"])
			}
		})
	}
}

func TestTheLastFailureStandsWhereNoAttemptFollows(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	for i := range 3 {
		assert.Equal(t, i+1, call.Watch())
		call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
		call.SetErrorType(fmt.Sprint(500 + i))
		call.Release()
	}
	call.End()
	r.span("chat").assertStatus("502")
}

func TestOnlyOneOfManyAttemptsHasTheCall(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	got := make([]int, 8)
	fs := make([]func(), len(got))
	for i := range fs {
		fs[i] = func() { got[i] = call.Watch() }
	}
	together(fs...)
	sum := 0
	for _, n := range got {
		sum += n
	}
	assert.Equal(t, 1, sum)
	call.End()
	var none *genaitrace.Call
	assert.Zero(t, none.Watch())
	assert.NotPanics(t, none.Release)
}

// io.EOF is how a stream ends well; wrapped, it is how something broke.
func TestAWrappedEndOfFileIsAFailure(t *testing.T) {
	wrapped := fmt.Errorf("read weights: %w", io.EOF)
	for name, tt := range map[string]struct {
		err       error
		errorType string
	}{"itself": {io.EOF, ""}, "wrapped": {wrapped, "_OTHER"}} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, call := r.StartCall(t.Context(), genaitrace.Request{})
			call.Fail(tt.err)
			r.span("chat").assertStatus(tt.errorType)
		})
	}
	t.Run("of an inference", func(t *testing.T) {
		r := record(t)
		_, inf := r.StartInference(t.Context(), genaitrace.Request{})
		inf.Fail(wrapped)
		r.span(semconv.SpanInferenceGenerate).assertStatus("_OTHER")
	})
}
