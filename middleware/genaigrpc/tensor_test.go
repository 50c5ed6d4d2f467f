package genaigrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
)

const inferRequest = `{"modelName": "resnet50", "modelVersion": "3", "id": "req-7",
	"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 3, 224, 224]}, {"name": "mask", "datatype": "BOOL", "shape": [1]}]}`

func TestTheFactsOfATensorRequestAreReadFromItsMessages(t *testing.T) {
	for name, p := range map[string]protocol{"kserve": kserve(t), "triton": triton(t)} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			l := p.serveLoopback(t, o, tensorService{infer: func(_ context.Context, in proto.Message) (proto.Message, error) {
				return p.message(t, "ModelInferResponse", `{"modelName": "resnet50", "modelVersion": "3", "id": "req-7",
					"outputs": [{"name": "scores", "datatype": "FP32", "shape": [1, 1000]}]}`), nil
			}})
			out := p.empty("ModelInferResponse")
			require.NoError(t, l.conn.Invoke(inbound(), modelInfer, p.request(t, inferRequest), out))
			l.stop()

			call := o.only("inference resnet50", trace.SpanKindClient)
			assert.Nil(t, attr(call, semconv.LLMTTFTMsKey), "a whole answer has no first token")
			server := o.only("inference.GRPCInferenceService/ModelInfer", trace.SpanKindServer)
			assert.Equal(t, call.SpanContext().SpanID(), server.Parent().SpanID())
			for _, s := range []sdktrace.ReadOnlySpan{call, server} {
				assert.Equal(t, "resnet50", attr(s, "gen_ai.request.model"))
				assert.Equal(t, "3", attr(s, semconv.AIModelVersionKey))
				assert.Equal(t, "req-7", attr(s, semconv.GenAIRequestIDKey))
				assert.Equal(t, []int64{1, 3, 224, 224}, attr(s, semconv.GenAITensorShapeKey))
				assert.Equal(t, []string{"image FP32 [1,3,224,224]", "mask BOOL [1]"}, attr(s, semconv.GenAITensorInputsKey))
				if name == "triton" {
					assert.Equal(t, "triton", attr(s, semconv.GenAIBackendTypeKey))
				} else {
					assert.Nil(t, attr(s, semconv.GenAIBackendTypeKey), "the protocol does not say who speaks it")
				}
			}
			assert.Equal(t, "application/grpc", attr(server, semconv.GenAIContentTypeKey))
			assert.Equal(t, "01", attr(server, semconv.GenAITraceFlagsKey))
			assert.Equal(t, name, attr(call, "gen_ai.provider.name"))
			assert.Equal(t, "OK", attr(call, "rpc.response.status_code"))
		})
	}
}

func TestAUnaryTensorRequestAsATree(t *testing.T) {
	o := newTelemetry(t)
	p := triton(t)
	l := p.serve(t, o, tensorService{infer: func(context.Context, proto.Message) (proto.Message, error) {
		return p.message(t, "ModelInferResponse", `{"modelName": "resnet50", "modelVersion": "3"}`), nil
	}})
	require.NoError(t, l.conn.Invoke(inbound(), modelInfer, p.request(t, inferRequest), p.empty("ModelInferResponse")))
	l.stop()
	o.golden("tensor_unary")
}

// A step is a message of a fixture.
type step struct {
	AtMs int             `json:"at_ms"`
	Dir  string          `json:"dir"`
	Msg  json.RawMessage `json:"msg"`
}

func readSession(t *testing.T, name string) (steps []step) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".jsonl")
	require.NoError(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var s step
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		steps = append(steps, s)
	}
	return steps
}

// replay plays a session over a stream in memory.
func replay(t *testing.T, o *telemetry, name string) {
	t.Helper()
	p := triton(t)
	steps := readSession(t, name)
	l := p.serve(t, o, tensorService{stream: func(stream grpc.ServerStream) error {
		if err := stream.RecvMsg(p.empty("ModelInferRequest")); err != nil {
			return err
		}
		arrived := time.Now()
		for _, s := range steps {
			if s.Dir != "recv" {
				continue
			}
			time.Sleep(time.Until(arrived.Add(time.Duration(s.AtMs) * time.Millisecond)))
			if err := stream.SendMsg(p.streamed(t, string(s.Msg))); err != nil {
				return err
			}
		}
		return nil
	}})
	stream, err := l.conn.NewStream(t.Context(), &tensorStream, modelStreamInfer)
	require.NoError(t, err)
	for _, s := range steps {
		if s.Dir == "send" {
			require.NoError(t, stream.SendMsg(p.request(t, string(s.Msg))))
		}
	}
	require.NoError(t, stream.CloseSend())
	for err == nil {
		err = stream.RecvMsg(p.empty("ModelStreamInferResponse"))
	}
	require.Equal(t, io.EOF, err)
	l.stop()
}

func TestADecoupledModelsAnswersAreChunksAndItsFinalFlagTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		replay(t, o, "triton_model_stream_infer")
		for _, s := range []sdktrace.ReadOnlySpan{
			o.only("inference llama", trace.SpanKindClient),
			o.only2("inference.GRPCInferenceService/ModelStreamInfer", semconv.GenAISpanRoleGateway),
		} {
			assert.Equal(t, otelcodes.Unset, s.Status().Code)
			assert.Equal(t, 60.0, attr(s, semconv.LLMTTFTMsKey))
			assert.Equal(t, 80.0, attr(s, semconv.GenAILastTokenMsKey))
			assert.EqualValues(t, 2, attr(s, semconv.GenAIChunkOutputCountKey))
			assert.Equal(t, 81*time.Millisecond, s.EndTime().Sub(s.StartTime()))
			assert.Equal(t, "done", attr(s, semconv.GenAIStreamTerminalKey))
		}
		rpc := o.only("inference.GRPCInferenceService/ModelStreamInfer", trace.SpanKindClient)
		assert.Equal(t, rpc.SpanContext().SpanID(), o.only("inference llama", trace.SpanKindClient).Parent().SpanID())
	})
}

func TestAnErrorInsideAStreamFailsItsRequestAndNotTheRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		replay(t, o, "triton_model_stream_error")
		call := o.only("inference llama", trace.SpanKindClient)
		assert.Equal(t, otelcodes.Error, call.Status().Code)
		assert.Equal(t, "stream_error", attr(call, "error.type"))
		assert.Nil(t, attr(call, semconv.LLMTTFTMsKey))
		assert.Equal(t, 20*time.Millisecond, call.EndTime().Sub(call.StartTime()))
		rpc := o.only("inference.GRPCInferenceService/ModelStreamInfer", trace.SpanKindClient)
		assert.Equal(t, otelcodes.Unset, rpc.Status().Code)
		assert.Equal(t, "OK", attr(rpc, "rpc.response.status_code"))
	})
}

// only2 returns the one span of this name and role.
func (o *telemetry) only2(name string, role semconv.GenAISpanRoleAttr) sdktrace.ReadOnlySpan {
	o.t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range o.ended() {
		if s.Name() == name && attr(s, semconv.GenAISpanRoleKey) == string(role) {
			found = append(found, s)
		}
	}
	require.Len(o.t, found, 1, "spans %s of role %s in\n%s", name, role, o.tree())
	return found[0]
}

func textAnswer(id, text string, final bool) string {
	b, _ := json.Marshal(map[string]any{"inferResponse": map[string]any{
		"modelName": "llama", "id": id,
		"parameters": map[string]any{"triton_final_response": map[string]any{"boolParam": final}},
		"outputs":    []any{map[string]any{"name": "text_output", "datatype": "BYTES", "contents": map[string]any{"bytesContents": [][]byte{[]byte(text)}}}},
	}})
	return string(b)
}

const (
	finalA = `{"inferResponse": {"id": "a", "parameters": {"triton_final_response": {"boolParam": true}}}}`
	finalB = `{"inferResponse": {"id": "b", "parameters": {"triton_final_response": {"boolParam": true}}}}`
)

// Two requests of one stream whose answers come as they are ready, and one after.
func TestEachRequestOfAStreamIsACallOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		p := triton(t)
		l := p.serve(t, o, tensorService{stream: func(stream grpc.ServerStream) error {
			for range 2 {
				if err := stream.RecvMsg(p.empty("ModelInferRequest")); err != nil {
					return err
				}
			}
			time.Sleep(10 * time.Millisecond)
			for _, answer := range []string{
				textAnswer("b", "x", false), textAnswer("a", "y", false), finalB, textAnswer("a", "z", false), finalA,
			} {
				if err := stream.SendMsg(p.streamed(t, answer)); err != nil {
					return err
				}
			}
			if err := stream.RecvMsg(p.empty("ModelInferRequest")); err != nil {
				return err
			}
			return stream.SendMsg(p.streamed(t, textAnswer("c", "whole", true)))
		}})
		stream, err := l.conn.NewStream(inbound(), &tensorStream, modelStreamInfer)
		require.NoError(t, err)
		for _, id := range []string{"a", "b"} {
			require.NoError(t, stream.SendMsg(p.request(t, `{"modelName": "llama", "id": "`+id+`"}`)))
			time.Sleep(time.Millisecond)
		}
		for range 5 {
			require.NoError(t, stream.RecvMsg(p.empty("ModelStreamInferResponse")))
		}
		require.NoError(t, stream.SendMsg(p.request(t, `{"modelName": "llama", "id": "c"}`)))
		require.NoError(t, stream.RecvMsg(p.empty("ModelStreamInferResponse")))
		require.Equal(t, io.EOF, stream.RecvMsg(p.empty("ModelStreamInferResponse")))
		l.stop()
		o.golden("tensor_stream")

		chunks := map[any]any{}
		for _, s := range o.ended() {
			if s.Name() == "inference llama" {
				chunks[attr(s, semconv.GenAIRequestIDKey)] = attr(s, semconv.GenAIChunkOutputCountKey)
			}
		}
		assert.Equal(t, map[any]any{"a": int64(2), "b": int64(1), "c": nil}, chunks)
	})
}

func TestHowATensorStreamDies(t *testing.T) {
	abort := func(stream grpc.ServerStream) error { return status.Error(codes.Unavailable, "draining") }
	wait := func(stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	for name, tc := range map[string]struct {
		then     func(grpc.ServerStream) error
		die      func(l link, leave context.CancelFunc)
		timeout  time.Duration
		want     otelcodes.Code
		terminal any
		error    any
	}{
		"client cancels":              {then: wait, die: func(_ link, leave context.CancelFunc) { leave() }, terminal: "client_cancelled"},
		"deadline":                    {then: wait, timeout: time.Second, want: otelcodes.Error, terminal: "timeout", error: "DEADLINE_EXCEEDED"},
		"server aborts":               {then: abort, want: otelcodes.Error, terminal: "error", error: "UNAVAILABLE"},
		"connection closes":           {then: wait, die: func(l link, _ context.CancelFunc) { _ = l.conn.Close() }, want: otelcodes.Error, terminal: "error"},
		"server stops":                {then: wait, die: func(l link, _ context.CancelFunc) { go l.server.Stop() }, want: otelcodes.Error, terminal: "error", error: "UNAVAILABLE"},
		"ends without the final flag": {then: func(grpc.ServerStream) error { return nil }, terminal: "eof"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				p := triton(t)
				l := p.serve(t, o, tensorService{stream: func(stream grpc.ServerStream) error {
					if err := stream.RecvMsg(p.empty("ModelInferRequest")); err != nil {
						return err
					}
					for _, text := range []string{"x", "y"} {
						if err := stream.SendMsg(p.streamed(t, textAnswer("a", text, false))); err != nil {
							return err
						}
					}
					return tc.then(stream)
				}})
				ctx, leave := context.WithCancel(context.Background())
				defer leave()
				if tc.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.timeout)
					defer cancel()
				}
				stream, err := l.conn.NewStream(ctx, &tensorStream, modelStreamInfer)
				require.NoError(t, err)
				require.NoError(t, stream.SendMsg(p.request(t, `{"modelName": "llama", "id": "a"}`)))
				for range 2 {
					require.NoError(t, stream.RecvMsg(p.empty("ModelStreamInferResponse")))
				}
				if tc.die != nil {
					tc.die(l, leave)
				}
				require.Error(t, stream.RecvMsg(p.empty("ModelStreamInferResponse")))
				l.stop()
				synctest.Wait()

				call := o.only("inference llama", trace.SpanKindClient)
				assert.Equal(t, tc.want, call.Status().Code)
				assert.Equal(t, tc.terminal, attr(call, semconv.GenAIStreamTerminalKey))
				if tc.error != nil {
					assert.Equal(t, tc.error, attr(call, "error.type"))
				}
				assert.EqualValues(t, 2, attr(call, semconv.GenAIChunkOutputCountKey))
				o.only2("inference.GRPCInferenceService/ModelStreamInfer", semconv.GenAISpanRoleGateway)
			})
		})
	}
}

func TestAStreamThatNobodyReadsEndsWithItsContext(t *testing.T) {
	o := newTelemetry(t)
	p := triton(t)
	l := p.serveLoopback(t, o, tensorService{stream: func(stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return nil
	}})
	ctx, leave := context.WithCancel(context.Background())
	stream, err := l.conn.NewStream(ctx, &tensorStream, modelStreamInfer)
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(p.request(t, `{"modelName": "llama", "id": "a"}`)))
	leave()
	require.Eventually(t, func() bool { return int(o.started.Load()) == len(o.spans.Ended()) }, 10*time.Second, time.Millisecond)
	l.stop()
	call := o.only("inference llama", trace.SpanKindClient)
	assert.Equal(t, otelcodes.Unset, call.Status().Code)
	assert.Equal(t, "client_cancelled", attr(call, semconv.GenAIStreamTerminalKey))
}

func TestAUnaryTensorRequestThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		cancel    bool
		want      otelcodes.Code
		errorType any
	}{
		"not found":                    {err: status.Error(codes.NotFound, "no model of that name"), want: otelcodes.Error, errorType: "NOT_FOUND"},
		"a cancellation of the server": {err: context.Canceled, want: otelcodes.Error, errorType: "CANCELLED"},
		"cancelled":                    {cancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			p := triton(t)
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			l := p.serve(t, o, tensorService{infer: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
				if tc.cancel {
					leave()
					<-ctx.Done()
				}
				return nil, tc.err
			}})
			require.Error(t, l.conn.Invoke(ctx, modelInfer, p.request(t, inferRequest), p.empty("ModelInferResponse")))
			l.stop()
			call := o.only("inference resnet50", trace.SpanKindClient)
			assert.Equal(t, tc.want, call.Status().Code)
			assert.Equal(t, tc.errorType, attr(call, "error.type"))
		})
	}
}

func TestTheFirstRequestOfAStreamIsTheCallThatItWasStartedFor(t *testing.T) {
	o := newTelemetry(t)
	p := triton(t)
	l := p.serve(t, o, tensorService{stream: func(stream grpc.ServerStream) error {
		for _, id := range []string{"a", "b"} {
			if err := stream.RecvMsg(p.empty("ModelInferRequest")); err != nil {
				return err
			}
			for _, last := range []bool{false, true} {
				if err := stream.SendMsg(p.streamed(t, textAnswer(id, "x", last))); err != nil {
					return err
				}
			}
		}
		return nil
	}})
	ctx, call := o.tracer().StartCall(context.Background(), genaitrace.Request{Operation: "inference"})
	stream, err := l.conn.NewStream(ctx, &tensorStream, modelStreamInfer)
	require.NoError(t, err)
	recv, stop := genaitrace.ReceiveChunks(call, func() (proto.Message, error) {
		m := p.empty("ModelStreamInferResponse")
		return m, stream.RecvMsg(m)
	}, nil) // which leaves the stamping to the handler
	defer stop()
	for _, id := range []string{"a", "b"} {
		require.NoError(t, stream.SendMsg(p.request(t, `{"modelName": "llama-`+id+`", "id": "`+id+`"}`)))
		for range 2 {
			_, err := recv()
			require.NoError(t, err)
		}
	}
	_, err = recv()
	require.True(t, errors.Is(err, io.EOF))
	l.stop()

	first := o.only("inference llama-a", trace.SpanKindClient)
	second := o.only("inference llama-b", trace.SpanKindClient)
	assert.Equal(t, first.SpanContext().SpanID(), second.Parent().SpanID())
	for _, s := range []sdktrace.ReadOnlySpan{first, second} {
		assert.EqualValues(t, 2, attr(s, semconv.GenAIChunkOutputCountKey))
		assert.Equal(t, otelcodes.Unset, s.Status().Code)
	}
}

func TestNothingIsReadWhereNoRPCIsAModelCall(t *testing.T) {
	o := newTelemetry(t)
	p := triton(t)
	l := p.serve(t, o, tensorService{infer: func(context.Context, proto.Message) (proto.Message, error) {
		return p.empty("ModelInferResponse"), nil
	}}, genaigrpc.WithoutModelCalls())
	require.NoError(t, l.conn.Invoke(inbound(), modelInfer, p.request(t, inferRequest), p.empty("ModelInferResponse")))
	l.stop()
	client := o.only("inference.GRPCInferenceService/ModelInfer", trace.SpanKindClient)
	assert.Nil(t, attr(client, "gen_ai.request.model"))
}

func TestAnUnsampledModelCallIsStillMeasured(t *testing.T) {
	o := newTelemetry(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	p := triton(t)
	l := p.serve(t, o, tensorService{
		infer: func(context.Context, proto.Message) (proto.Message, error) { return p.empty("ModelInferResponse"), nil },
		stream: func(stream grpc.ServerStream) error {
			if err := stream.RecvMsg(p.empty("ModelInferRequest")); err != nil {
				return err
			}
			return errors.Join(stream.SendMsg(p.streamed(t, textAnswer("a", "x", false))), stream.SendMsg(p.streamed(t, finalA)))
		},
	})
	require.NoError(t, l.conn.Invoke(t.Context(), modelInfer, p.request(t, inferRequest), p.empty("ModelInferResponse")))
	stream, err := l.conn.NewStream(t.Context(), &tensorStream, modelStreamInfer)
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(p.request(t, `{"modelName": "llama", "id": "a"}`)))
	for err == nil {
		err = stream.RecvMsg(p.empty("ModelStreamInferResponse"))
	}
	require.Equal(t, io.EOF, err)
	l.stop()

	assert.Empty(t, o.ended())
	models := map[string]uint64{}
	for _, point := range o.points("gen_ai.client.inference.duration") {
		model, _ := point.Attributes.Value("gen_ai.request.model")
		models[model.AsString()] += point.Count
	}
	assert.Equal(t, map[string]uint64{"resnet50": 1, "llama": 1}, models)
	assert.Len(t, o.points("genai.time_to_first_token"), 2, "of the caller and of the server")
}

// Codecs other than proto.Marshal let anything through, and one invalid string costs
// an exporter its whole batch.
func TestWhatMessagesTellIsValidUTF8(t *testing.T) {
	o := newTelemetry(t)
	p := kserve(t)
	m := p.empty("ModelInferResponse")
	for _, name := range []protoreflect.Name{"model_name", "model_version", "id"} {
		m.ProtoReflect().Set(m.ProtoReflect().Descriptor().Fields().ByName(name), protoreflect.ValueOfString("v\xff"))
	}
	for name, h := range map[string]stats.Handler{
		"server": genaigrpc.NewServerHandler(o.options()...), "client": genaigrpc.NewClientHandler(o.options()...),
	} {
		ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: modelInfer})
		h.HandleRPC(ctx, &stats.Begin{Client: name == "client"})
		h.HandleRPC(ctx, &stats.InPayload{Payload: m})
		h.HandleRPC(ctx, &stats.OutPayload{Payload: m})
		h.HandleRPC(ctx, &stats.End{})
	}
	var version string
	for _, s := range o.spans.Ended() {
		for _, kv := range s.Attributes() {
			assert.True(t, utf8.ValidString(kv.Value.String()), "%s %s %q", s.Name(), kv.Key, kv.Value.String())
		}
		if s.SpanKind() == trace.SpanKindServer {
			version, _ = attr(s, semconv.AIModelVersionKey).(string)
		}
	}
	assert.Equal(t, "v\uFFFD", version)
}
