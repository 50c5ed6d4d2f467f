package genaigrpc

import (
	"context"
	"encoding/hex"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A served is an RPC that calls a model, at the server: its span has the facts of
// the request. What the model does is for the handler to record.
type served struct {
	method *ModelCall
	span   trace.Span
	words  semconv.Vocabulary

	asked, told atomic.Bool
}

func (*served) begin(bool) {}

func (s *served) sent(message any, _ time.Time) {
	if s.asked.CompareAndSwap(false, true) {
		r := s.method.readRequest(message)
		s.span.SetAttributes(s.words.Rewrite(servedAttributes(&r))...)
	}
}

// answered looks at the first answer: it tells which version of the model runs.
func (s *served) answered(message any, _ time.Time) {
	if !s.method.tensors || !s.told.CompareAndSwap(false, true) {
		return
	}
	if r := s.method.readResponse(nil, message); r.version != "" {
		s.span.SetAttributes(semconv.AIModelVersion(r.version))
	}
}

// servedAttributes are the facts of a request on the span of a server.
func servedAttributes(r *request) []attribute.KeyValue {
	attrs := r.attributes()
	if r.Model != "" {
		attrs = append(attrs, genaiconv.RequestModel(bound.String(r.Model, maxName)))
	}
	if r.ModelVersion != "" {
		attrs = append(attrs, semconv.AIModelVersion(bound.String(r.ModelVersion, maxName)))
	}
	if r.RequestID != "" {
		attrs = append(attrs, semconv.GenAIRequestID(bound.String(r.RequestID, maxName)))
	}
	return attrs
}

// receivedAttributes are what the headers of a request to a model tell, where
// remote is the context that was read from them.
func receivedAttributes(ctx, remote context.Context) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 2)
	if values := metadata.ValueFromIncomingContext(ctx, "content-type"); len(values) > 0 && values[0] != "" {
		attrs = append(attrs, semconv.GenAIContentType(bound.String(values[0], maxName)))
	}
	sc := trace.SpanContextFromContext(remote)
	if sc.IsValid() && sc.IsRemote() && propagation.SamplingFromContext(remote) == propagation.SamplingDecided {
		attrs = append(attrs, semconv.GenAITraceFlags(hex.EncodeToString([]byte{byte(sc.TraceFlags())})))
	}
	return attrs
}

// modelRPC returns what reads the messages of an RPC that calls a model.
func (h *serverHandler) modelRPC(ctx context.Context, r *serverRPC) modelRPC {
	model := r.method.model
	switch {
	case !model.keyed && !r.span.IsRecording():
		return nil
	case !model.keyed:
		return &served{method: model, span: r.span, words: h.words}
	}
	return &requests{method: model, rpc: r.span, start: func(f *request, at time.Time) *genaitrace.Call {
		_, call := h.calls.StartGateway(ctx, genaitrace.GatewayRequest{
			Name: r.method.name, Arrived: at, Operation: model.Operation,
			Attributes: h.words.Rewrite(servedAttributes(f)),
		})
		return call
	}}
}
