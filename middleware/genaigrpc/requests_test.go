package genaigrpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
)

// A session is what a client handler is told of one stream of requests, in an
// order that a network would not repeat.
type session struct {
	t   testing.TB
	o   *telemetry
	p   protocol
	h   stats.Handler
	ctx context.Context
}

func newSession(t testing.TB, o *telemetry) *session {
	t.Helper()
	h := genaigrpc.NewClientHandler(o.options()...)
	ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: modelStreamInfer})
	h.HandleRPC(ctx, &stats.Begin{Client: true, IsClientStream: true, IsServerStream: true})
	return &session{t, o, triton(t), h, ctx}
}

func (s *session) send(id string) {
	s.h.HandleRPC(s.ctx, &stats.OutPayload{
		Client: true, SentTime: time.Now(), Payload: s.p.request(s.t, fmt.Sprintf(`{"modelName": "m", "id": %q}`, id)),
	})
}

func (s *session) receive(json string) {
	s.h.HandleRPC(s.ctx, &stats.InPayload{Client: true, RecvTime: time.Now(), Payload: s.p.streamed(s.t, json)})
}

func (s *session) end(err error) {
	if err == nil {
		s.h.HandleRPC(s.ctx, &stats.InTrailer{Client: true})
	}
	s.h.HandleRPC(s.ctx, &stats.End{Client: true, EndTime: time.Now(), Error: err})
}

// calls returns the spans of the requests, in the order in which they ended.
func (s *session) calls() (calls []sdktrace.ReadOnlySpan) {
	s.t.Helper()
	for _, span := range s.o.ended() {
		if strings.HasPrefix(span.Name(), "inference m") {
			calls = append(calls, span)
		}
	}
	return calls
}

func plainAnswer(id string) string {
	return fmt.Sprintf(`{"inferResponse": {"id": %q, "outputs": [{"name": "y", "datatype": "FP32", "shape": ["1"]}]}}`, id)
}

func lasted(s sdktrace.ReadOnlySpan) time.Duration { return s.EndTime().Sub(s.StartTime()) }

// gRPC reports a message that is sent when it was written, and what the server
// answers may be read before that.
func TestAnAnswerThatIsReportedBeforeItsRequestBelongsToIt(t *testing.T) {
	o := newTelemetry(t)
	s := newSession(t, o)
	s.receive(textAnswer("a", "x", false))
	s.send("a")
	s.receive(textAnswer("a", "y", false))
	s.receive(finalA)
	s.end(nil)
	require.Len(t, s.calls(), 1)
	assert.EqualValues(t, 2, attr(s.calls()[0], semconv.GenAIChunkCountKey))
	assert.NotNil(t, attr(s.calls()[0], semconv.LLMTTFTMsKey))
}

func TestWhatComesLateForARequestIsNotTakenForTheNextOne(t *testing.T) {
	o := newTelemetry(t)
	s := newSession(t, o)
	s.send("a")
	s.receive(`{"errorMessage": "out of memory", "inferResponse": {"id": "a"}}`)
	s.receive(finalA) // of the one that failed
	s.send("a")       // again
	s.receive(textAnswer("a", "x", false))
	s.receive(finalA)
	s.end(nil)
	require.Len(t, s.calls(), 2)
	assert.Equal(t, otelcodes.Error, s.calls()[0].Status().Code)
	assert.EqualValues(t, 1, attr(s.calls()[1], semconv.GenAIChunkCountKey))
}

func TestAnOldAnswerToNobodyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		s := newSession(t, o)
		s.receive(textAnswer("a", "x", true))
		time.Sleep(time.Second)
		s.send("a")
		time.Sleep(time.Second)
		s.end(nil)
		require.Len(t, s.calls(), 1)
		assert.Equal(t, time.Second, lasted(s.calls()[0]))
	})
}

func TestRequestsOfNoIDAreAnsweredInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		s := newSession(t, o)
		s.send("")
		time.Sleep(time.Second)
		s.send("")
		s.receive(textAnswer("", "x", true))
		time.Sleep(3 * time.Second)
		s.receive(textAnswer("", "y", true))
		s.end(nil)
		require.Len(t, s.calls(), 2)
		assert.Equal(t, time.Second, lasted(s.calls()[0]))
		assert.Equal(t, 3*time.Second, lasted(s.calls()[1]))
	})
}

// A server that does not say which answer is the last: the next request of the id,
// or the end of the stream, says that it has come, and it came when it did.
func TestRequestsWhoseLastAnswerIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		s := newSession(t, o)
		s.send("a")
		time.Sleep(time.Second)
		s.receive(plainAnswer("a"))
		time.Sleep(time.Minute)
		s.send("a")
		time.Sleep(time.Second)
		s.receive(plainAnswer("a"))
		time.Sleep(time.Second)
		s.receive(plainAnswer("a"))
		time.Sleep(time.Minute)
		s.end(nil)
		require.Len(t, s.calls(), 2)
		assert.Equal(t, time.Second, lasted(s.calls()[0]))
		assert.Nil(t, attr(s.calls()[0], semconv.LLMTTFTMsKey), "the only answer is a whole one")
		assert.Equal(t, 2*time.Second, lasted(s.calls()[1]))
		assert.Equal(t, 1000.0, attr(s.calls()[1], semconv.LLMTTFTMsKey))
	})
}

func TestAnErrorWithoutAnIDBelongsToTheOnlyOpenRequest(t *testing.T) {
	for open, want := range map[int]int{1: 1, 2: 0} {
		o := newTelemetry(t)
		s := newSession(t, o)
		for i := range open {
			s.send(fmt.Sprint(i))
		}
		s.receive(`{"errorMessage": "no such model"}`)
		s.end(nil)
		failed := 0
		for _, c := range s.calls() {
			if c.Status().Code == otelcodes.Error {
				failed++
			}
		}
		assert.Equal(t, want, failed, "%d open", open)
	}
}

func TestTheRequestsOfAStreamAreBounded(t *testing.T) {
	o := newTelemetry(t)
	s := newSession(t, o)
	for i := range 1500 {
		s.send(fmt.Sprint(i))
	}
	s.end(status.Error(codes.Unavailable, "draining"))
	assert.Len(t, s.calls(), 1000)
	for _, span := range o.ended() {
		assert.Equal(t, otelcodes.Error, span.Status().Code)
		if !strings.HasPrefix(span.Name(), "inference m") {
			assert.EqualValues(t, 500, attr(span, semconv.GenAISpanDroppedCountKey))
		}
	}
}

func TestRequestsThatNothingHappensToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		s := newSession(t, o)
		s.send("silent")
		s.send("a")
		s.receive(textAnswer("a", "x", false))
		s.send("b")
		time.Sleep(time.Second)
		s.receive(plainAnswer("b"))
		s.send("busy")
		for range 6 {
			time.Sleep(10 * time.Minute)
			s.receive(textAnswer("busy", "x", false))
		}
		require.Len(t, o.spans.Ended(), 3)
		s.receive(textAnswer("busy", "x", true))
		s.end(nil)
		for _, c := range s.calls() {
			want := map[any]any{"silent": "timeout", "a": "timeout", "b": nil, "busy": "done"}
			id := attr(c, semconv.GenAIRequestIDKey)
			assert.Equal(t, want[id], attr(c, semconv.GenAIStreamTerminalKey), id)
			if id == "b" {
				assert.Equal(t, time.Second, lasted(c))
			}
		}
	})
}

func TestOnlyOutputIsAToken(t *testing.T) {
	const begin, end = `{"inferResponse": {"id": "a", "parameters": {"triton_final_response": {"boolParam": false}}, `, `}}`
	for name, tc := range map[string]struct {
		answer  string
		output  any
		visible bool
	}{
		"text":                  {`"outputs": [{"name": "text_output", "datatype": "BYTES", "contents": {"bytesContents": ["aGk="]}}]`, int64(1), true},
		"text, raw":             {`"outputs": [{"name": "text_output", "datatype": "BYTES"}], "rawOutputContents": ["AgAAAGhp"]`, int64(1), true},
		"no text":               {`"outputs": [{"name": "text_output", "datatype": "BYTES", "contents": {"bytesContents": [""]}}]`, int64(0), false},
		"no text, raw":          {`"outputs": [{"name": "text_output", "datatype": "BYTES"}], "rawOutputContents": ["AAAAAA=="]`, int64(0), false},
		"text in shared memory": {`"outputs": [{"name": "text_output", "datatype": "BYTES"}]`, int64(1), true},
		"another tensor":        {`"outputs": [{"name": "logits", "datatype": "FP32"}]`, int64(1), false},
		"text beside another":   {`"outputs": [{"name": "logits", "datatype": "FP32"}, {"name": "text_output", "datatype": "BYTES"}], "rawOutputContents": ["AAAAAA==", "AgAAAGhp"]`, int64(1), true},
		"nothing":               {`"outputs": []`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			s := newSession(t, o)
			s.send("a")
			s.receive(begin + tc.answer + end)
			s.receive(finalA)
			s.end(nil)
			call := s.calls()[0]
			assert.Equal(t, tc.output, attr(call, semconv.GenAIChunkOutputCountKey))
			assert.Equal(t, tc.visible, attr(call, semconv.GenAIFirstVisibleMsKey) != nil)
		})
	}
}

// What is no protobuf message, or none of these, tells nothing and breaks nothing.
func TestMessagesOfAnotherKindTellNothing(t *testing.T) {
	p := triton(t)
	for name, message := range map[string]any{
		"nil":             nil,
		"bytes":           []byte("frame"),
		"typed nil":       (*nilMessage)(nil),
		"another message": p.empty("InferParameter"),
		"empty":           p.empty("ModelInferRequest"),
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			for method, h := range map[string]stats.Handler{
				modelInfer: genaigrpc.NewServerHandler(o.options()...), modelStreamInfer: genaigrpc.NewServerHandler(o.options()...),
			} {
				ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: method})
				h.HandleRPC(ctx, &stats.Begin{})
				h.HandleRPC(ctx, &stats.InPayload{Payload: message, RecvTime: time.Now()})
				h.HandleRPC(ctx, &stats.OutPayload{Payload: message, SentTime: time.Now()})
				h.HandleRPC(ctx, &stats.OutTrailer{})
				h.HandleRPC(ctx, &stats.End{EndTime: time.Now()})
			}
			for _, s := range o.ended() {
				assert.Nil(t, attr(s, "gen_ai.request.model"))
			}
		})
	}
}

type nilMessage struct{ proto.Message }

// FuzzTensorMessages feeds bytes that decode as messages of the protocol to both
// handlers: no panic, every span ends once, every attribute is valid and bounded.
func FuzzTensorMessages(f *testing.F) {
	p := triton(f)
	for _, request := range []string{`{}`, inferRequest, `{"id": "é"}`} {
		for _, response := range []string{`{}`, finalA, plainAnswer("req-7"), textAnswer("req-7", "x", true), `{"errorMessage": "e"}`} {
			in, err := proto.Marshal(p.request(f, request))
			require.NoError(f, err)
			out, err := proto.Marshal(p.streamed(f, response))
			require.NoError(f, err)
			f.Add(in, out)
		}
	}
	f.Fuzz(func(t *testing.T, in, out []byte) {
		request, streamed, whole := p.empty("ModelInferRequest"), p.empty("ModelStreamInferResponse"), p.empty("ModelInferResponse")
		if proto.Unmarshal(in, request) != nil {
			return
		}
		_, _ = proto.Unmarshal(out, streamed), proto.Unmarshal(out, whole)
		o := newTelemetry(t)
		for method, response := range map[string]proto.Message{modelInfer: whole, modelStreamInfer: streamed} {
			client, server := genaigrpc.NewClientHandler(o.options()...), genaigrpc.NewServerHandler(o.options()...)
			c := client.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: method})
			s := server.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: method})
			client.HandleRPC(c, &stats.Begin{Client: true, IsServerStream: method == modelStreamInfer})
			server.HandleRPC(s, &stats.Begin{IsServerStream: method == modelStreamInfer})
			for range 3 {
				client.HandleRPC(c, &stats.OutPayload{Client: true, Payload: request, SentTime: time.Now()})
				server.HandleRPC(s, &stats.InPayload{Payload: request, RecvTime: time.Now()})
				client.HandleRPC(c, &stats.InPayload{Client: true, Payload: response, RecvTime: time.Now()})
				server.HandleRPC(s, &stats.OutPayload{Payload: response, SentTime: time.Now()})
			}
			server.HandleRPC(s, &stats.OutTrailer{})
			server.HandleRPC(s, &stats.End{EndTime: time.Now()})
			client.HandleRPC(c, &stats.InTrailer{Client: true})
			client.HandleRPC(c, &stats.End{Client: true, EndTime: time.Now()})
		}
		for _, s := range o.ended() {
			for _, a := range s.Attributes() {
				for _, text := range texts(a.Value) {
					assert.True(t, utf8.ValidString(text) && len(text) <= 512, "%s = %q", a.Key, text)
				}
			}
		}
	})
}

func texts(v attribute.Value) []string {
	switch v.Type() {
	case attribute.STRING:
		if len(v.AsString()) > 512 { // a packed timeline
			return nil
		}
		return []string{v.AsString()}
	case attribute.STRINGSLICE:
		return v.AsStringSlice()
	}
	return nil
}

// The times of two messages are taken before gRPC reports either.
func TestAnAnswerWhoseTimeIsBeforeItsRequestsIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		s := newSession(t, o)
		time.Sleep(time.Second)
		before := time.Now().Add(-time.Millisecond)
		s.send("a")
		s.h.HandleRPC(s.ctx, &stats.InPayload{Client: true, RecvTime: before, Payload: s.p.streamed(t, textAnswer("a", "x", false))})
		s.receive(finalA)
		s.end(nil)
		assert.EqualValues(t, 1, attr(s.calls()[0], semconv.GenAIChunkCountKey))
		assert.Equal(t, 0.0, attr(s.calls()[0], semconv.LLMTTFTMsKey))
	})
}

func TestTraceFlagsAreThoseThatArrived(t *testing.T) {
	o := newTelemetry(t)
	h := genaigrpc.NewServerHandler(o.options()...)
	ctx, outer := o.tp.Tracer("other").Start(t.Context(), "outer") // whose flags are its own
	ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: modelInfer})
	h.HandleRPC(ctx, &stats.Begin{})
	h.HandleRPC(ctx, &stats.OutTrailer{})
	h.HandleRPC(ctx, &stats.End{EndTime: time.Now()})
	outer.End()
	for _, s := range o.ended() {
		assert.Nil(t, attr(s, semconv.GenAITraceFlagsKey), s.Name())
	}
}
