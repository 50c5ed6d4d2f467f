package genaigrpc

import (
	"sync"

	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// SendTokens binds the stream of a server's handler to the token clock of a decode
// phase: each message that is sent counts its tokens when it is handed to the
// stream, as [genaitrace.Decode.Tokens] would. count says how many a message holds;
// nil means one each, and 0 that the message is none. Where it panics, the message
// counts none. The phase stays for the handler, or its inference, to end. Where d is
// nil it returns stream itself.
//
// Generated code takes the result like the stream it was given:
//
//	stream = &grpc.GenericServerStream[pb.Prompt, pb.Token]{ServerStream: genaigrpc.SendTokens(stream, decode, nil)}
//
// SendMsg is for one goroutine, as ever.
func SendTokens(stream grpc.ServerStream, d *genaitrace.Decode, count func(message any) int) grpc.ServerStream {
	if d == nil {
		return stream
	}
	return &tokenStream{stream, d, count}
}

type tokenStream struct {
	grpc.ServerStream

	decode *genaitrace.Decode
	count  func(message any) int
}

func (s *tokenStream) SendMsg(message any) error {
	if n := s.tokens(message); n > 0 {
		s.decode.Tokens(n)
	}
	return s.ServerStream.SendMsg(message)
}

func (s *tokenStream) tokens(message any) (n int) {
	if s.count == nil {
		return 1
	}
	defer func() {
		if recover() != nil { // which may tell of content
			n = 0
			streamFaults().Count(s.Context(), semconv.GenAIFaultPanic, "SendTokens: counter of tokens panicked: its message is not counted")
		}
	}()
	return s.count(message)
}

// streamFaults are those of streams that no handler knows.
var streamFaults = sync.OnceValue(globalFaults)

// ReceiveChunks binds the stream of a client to a model call: each message that is
// received is a chunk, and what ends the stream ends the call, as with
// [genaitrace.ReceiveChunks], which serves the Recv of generated code without this.
// observe says what a message carried; nil means that every one is answer text.
// stop ends the call of a reader that leaves before the end, and does nothing after
// it. Where call is nil it returns stream itself.
//
//	stream, err := conn.NewStream(ctx, desc, "/inference.v1.Inference/Generate")
//	stream, stop := genaigrpc.ReceiveChunks(stream, call, nil)
//	defer stop()
//
// Messages that the client handler stamped, those of a [ModelCall], are not counted
// twice.
func ReceiveChunks(stream grpc.ClientStream, call *genaitrace.Call, observe func(call *genaitrace.Call, message any) genaitrace.ChunkKind) (wrapped grpc.ClientStream, stop func()) {
	if call == nil {
		return stream, func() {}
	}
	s := &chunkStream{ClientStream: stream}
	s.next, stop = genaitrace.ReceiveChunks(call, func() (any, error) {
		return s.into, s.ClientStream.RecvMsg(s.into)
	}, observe)
	return s, stop
}

type chunkStream struct {
	grpc.ClientStream

	next func() (any, error)
	into any // of the RecvMsg that runs
}

func (s *chunkStream) RecvMsg(message any) error {
	s.into = message
	_, err := s.next()
	s.into = nil
	return err
}
