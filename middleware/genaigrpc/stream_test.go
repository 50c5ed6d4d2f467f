package genaigrpc_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
)

// decoding is a handler whose stream feeds a decode phase.
func decoding(o *telemetry, count func(any) int, handle func(grpc.ServerStreamingServer[wrapperspb.StringValue]) error) service {
	return service{generate: func(_ string, stream grpc.ServerStream) (err error) {
		ctx, inf := o.tracer().StartInference(stream.Context(), genaitrace.Request{Model: "m", Stream: true})
		defer inf.EndErr(&err)
		_, d := inf.StartDecode(ctx)
		return handle(&grpc.GenericServerStream[wrapperspb.StringValue, wrapperspb.StringValue]{
			ServerStream: genaigrpc.SendTokens(stream, d, count),
		})
	}}
}

func words(message any) int {
	text := message.(*wrapperspb.StringValue).GetValue()
	if text == "bad" {
		panic(text)
	}
	return len(strings.Fields(text))
}

func TestWhatAHandlerSendsDrivesItsTokenClock(t *testing.T) {
	for name, tc := range map[string]struct {
		count  func(any) int
		tokens int64
	}{"one a message": {nil, 4}, "counted": {words, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				l := served(t, o, decoding(o, tc.count, func(stream grpc.ServerStreamingServer[wrapperspb.StringValue]) error {
					for _, text := range []string{"a", "b c", "", "bad"} {
						time.Sleep(20 * time.Millisecond)
						if err := stream.Send(wrapperspb.String(text)); err != nil {
							return err
						}
					}
					return nil
				}))
				stream, err := generate(context.Background(), t, l.conn)
				require.NoError(t, err)
				texts, err := read(stream)
				require.NoError(t, err)
				assert.Equal(t, []string{"a", "b c", "", "bad"}, texts)
				l.stop()

				assert.Equal(t, tc.tokens, attr(o.only("inference.decode", trace.SpanKindInternal), semconv.GenAITokenCountKey))
				assert.Equal(t, 20.0, attr(o.only("inference.generate", trace.SpanKindInternal), semconv.LLMTTFTMsKey))
			})
		})
	}
}

func TestAClientThatLeavesEndsTheDecodePhase(t *testing.T) {
	o := newTelemetry(t)
	l := served(t, o, decoding(o, nil, func(stream grpc.ServerStreamingServer[wrapperspb.StringValue]) error {
		for {
			if err := stream.Send(wrapperspb.String("a")); err != nil {
				<-stream.Context().Done() // which gRPC may see a moment after the stream
				return err
			}
		}
	}))
	ctx, leave := context.WithCancel(context.Background())
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	leave()
	l.stop()
	assert.Equal(t, otelcodes.Unset, o.only("inference.generate", trace.SpanKindInternal).Status().Code)
	assert.Positive(t, attr(o.only("inference.decode", trace.SpanKindInternal), semconv.GenAITokenCountKey))
}

func TestWhatAClientReceivesDrivesItsCall(t *testing.T) {
	failing := func(prompt string, stream grpc.ServerStream) error {
		if err := sendText(stream, "a"); err != nil {
			return err
		}
		return status.Error(codes.Unavailable, "draining")
	}
	for name, tc := range map[string]struct {
		generate func(string, grpc.ServerStream) error
		opts     []genaigrpc.Option
		read     int // messages before the reader leaves; 0: all
		chunks   int64
		terminal string
		want     otelcodes.Code
	}{
		"to the end":         {generate: three, chunks: 3, terminal: "eof"},
		"and leaves":         {generate: once, read: 1, chunks: 1, terminal: "client_cancelled"},
		"the server fails":   {generate: failing, chunks: 1, terminal: "error", want: otelcodes.Error},
		"the handler stamps": {generate: three, opts: []genaigrpc.Option{genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod})}, chunks: 3, terminal: "eof"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			l := connect(t, service{generate: tc.generate}, nil,
				[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(tc.opts...)...))})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctx, call := o.tracer().StartCall(ctx, genaitrace.Request{Model: "m", Stream: true})
			stream, err := generate(ctx, t, l.conn)
			require.NoError(t, err)
			stream, stop := genaigrpc.ReceiveChunks(stream, call, nil)
			if tc.read == 0 {
				_, _ = read(stream)
			}
			for range tc.read {
				require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
			}
			stop()
			cancel()
			l.stop()

			span := o.only("chat m", trace.SpanKindClient)
			assert.Equal(t, tc.want, span.Status().Code)
			assert.Equal(t, tc.chunks, attr(span, semconv.GenAIChunkCountKey))
			assert.Equal(t, tc.terminal, attr(span, semconv.GenAIStreamTerminalKey))
		})
	}
}

func TestStreamsWithoutAHandleAreTheSame(t *testing.T) {
	var server grpc.ServerStream = &grpc.GenericServerStream[int, int]{}
	assert.Same(t, server, genaigrpc.SendTokens(server, nil, nil))
	var client grpc.ClientStream = &grpc.GenericClientStream[int, int]{}
	wrapped, stop := genaigrpc.ReceiveChunks(client, nil, nil)
	assert.Same(t, client, wrapped)
	stop()
}

// echo is all kinds of streams of the method inference.v1.Chat/Talk.
var echo = grpc.ServiceDesc{
	ServiceName: "inference.v1.Chat", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Upload", ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); errors.Is(err, io.EOF) {
					return stream.SendMsg(wrapperspb.String("done"))
				} else if err != nil {
					return err
				}
			}
		}},
		{StreamName: "Talk", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				in := new(wrapperspb.StringValue)
				if err := stream.RecvMsg(in); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := stream.SendMsg(in); err != nil {
					return err
				}
			}
		}},
	},
}

// A method of one's own, of every kind, becomes a model call by an option.
func TestAMethodOfOnesOwnIsAModelCall(t *testing.T) {
	model := func(method string) genaigrpc.Option {
		return genaigrpc.WithModelCall(genaigrpc.ModelCall{
			Method: method, Provider: "toy", Backend: "toy-engine",
			Request: func(message any) genaitrace.Request {
				return genaitrace.Request{Model: "m-" + message.(*wrapperspb.StringValue).GetValue()}
			},
			Observe: func(call *genaitrace.Call, message any) genaitrace.ChunkKind {
				if message.(*wrapperspb.StringValue).GetValue() == "done" {
					call.SetFinish("stop")
					return genaitrace.NoOutput
				}
				return genaitrace.Visible
			},
		})
	}
	for name, tc := range map[string]struct {
		stream grpc.StreamDesc
		chunks any
		output any
	}{
		"client streaming": {echo.Streams[0], nil, nil},
		"bidirectional":    {echo.Streams[1], int64(3), int64(2)},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			method := "/inference.v1.Chat/" + tc.stream.StreamName
			l := connectServices(t, service{}, []*grpc.ServiceDesc{&echo},
				[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(model(method))...))},
				[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(model(method))...))})
			stream, err := l.conn.NewStream(t.Context(), &tc.stream, method)
			require.NoError(t, err)
			for _, text := range []string{"a", "b", "done"} {
				require.NoError(t, stream.SendMsg(wrapperspb.String(text)))
			}
			require.NoError(t, stream.CloseSend())
			_, err = read(stream)
			require.NoError(t, err)
			l.stop()

			call := o.only("chat m-a", trace.SpanKindClient)
			assert.Equal(t, "toy", attr(call, "gen_ai.provider.name"))
			assert.Equal(t, "toy-engine", attr(call, semconv.GenAIBackendTypeKey))
			assert.Equal(t, tc.chunks, attr(call, semconv.GenAIChunkCountKey))
			assert.Equal(t, tc.output, attr(call, semconv.GenAIChunkOutputCountKey))
			server := o.only("inference.v1.Chat/"+tc.stream.StreamName, trace.SpanKindServer)
			assert.Equal(t, "m-a", attr(server, "gen_ai.request.model"))
			assert.Equal(t, call.SpanContext().SpanID(), server.Parent().SpanID())
		})
	}
}

func TestAReaderThatPanicsHasToldNothing(t *testing.T) {
	o := newTelemetry(t)
	opt := genaigrpc.WithModelCall(genaigrpc.ModelCall{
		Method:  generateMethod,
		Request: func(any) genaitrace.Request { panic("request") },
		Observe: func(*genaitrace.Call, any) genaitrace.ChunkKind { panic("answer") },
	})
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(opt)...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opt)...))})
	stream, err := generate(t.Context(), t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Len(t, texts, 3)
	l.stop()
	call := o.only("chat", trace.SpanKindClient)
	assert.EqualValues(t, 0, attr(call, semconv.GenAIChunkOutputCountKey))
	assert.Equal(t, otelcodes.Unset, call.Status().Code)
}

// A model call that nobody reads, nor cancels, ends all the same.
func TestAModelCallThatIsAbandonedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		opt := genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod})
		l := connect(t, service{generate: once}, nil,
			[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opt)...))})
		stream, err := generate(context.Background(), t, l.conn)
		require.NoError(t, err)
		require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		time.Sleep(time.Hour)
		call := o.only("chat", trace.SpanKindClient)
		assert.Equal(t, "timeout", attr(call, semconv.GenAIStreamTerminalKey))
		assert.LessOrEqual(t, call.EndTime().Sub(call.StartTime()), 30*time.Minute)
		l.stop()
		o.ended()
	})
}

func TestALongModelCallThatGoesOnIsNotAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		opt := genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod})
		l := connect(t, service{generate: func(_ string, stream grpc.ServerStream) error {
			for range 12 {
				time.Sleep(10 * time.Minute)
				if err := sendText(stream, "a"); err != nil {
					return err
				}
			}
			return nil
		}}, nil, []grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opt)...))})
		stream, err := generate(context.Background(), t, l.conn)
		require.NoError(t, err)
		_, err = read(stream)
		require.NoError(t, err)
		l.stop()
		call := o.only("chat", trace.SpanKindClient)
		assert.Equal(t, "eof", attr(call, semconv.GenAIStreamTerminalKey))
		assert.Equal(t, 2*time.Hour, call.EndTime().Sub(call.StartTime()))
	})
}
