package genaigrpc

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"go.opentelemetry.io/otel"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A ModelCall says that the RPCs of a method are calls of a model, and how their
// messages are read. See [WithModelCall].
type ModelCall struct {
	// Method is the full name of the method, such as
	// "inference.v1.Inference/Generate".
	Method string
	// Operation is what the model is asked to do; zero means chat.
	Operation genaiconv.OperationNameAttr
	// Provider is gen_ai.provider.name, such as "vllm"; zero is unknown.
	Provider genaiconv.ProviderNameAttr
	// Backend is genai.backend_type, the software that runs the model; zero is
	// unknown.
	Backend string
	// Request reads the facts of a request from the first message that the client
	// sends. nil reads the string fields model_name or model, model_version, and
	// request_id or id, where a protobuf message has them.
	Request func(message any) genaitrace.Request
	// Observe says, at the client, what a message of a streamed answer carried, and
	// notes on the call what else it tells, as with [genaitrace.RangeChunks]. nil
	// means that every message is answer text.
	Observe func(call *genaitrace.Call, message any) genaitrace.ChunkKind

	tensors bool // the messages are those of the Open Inference Protocol
	keyed   bool // one RPC has any number of requests, told apart by their id
	faults  *fault.Counter
}

// WithModelCall makes the RPCs of a method model calls; one of the same method is
// replaced. A Method that is no full name is reported to otel.Handle and left out. Default: ModelInfer and ModelStreamInfer of
// inference.GRPCInferenceService, the Open Inference Protocol of KServe and Triton,
// whose messages are read by the names of their fields, whatever generated them.
//
// Messages are read while gRPC reports them, so Request and Observe must be quick
// and must not keep or change a message. One that panics has told nothing; that is
// counted in genai.telemetry.faults, and the first is reported to otel.Handle.
func WithModelCall(m ModelCall) Option {
	name := strings.TrimPrefix(m.Method, "/")
	return optionFunc(func(c config) config {
		if at := strings.LastIndexByte(name, '/'); at <= 0 || at == len(name)-1 {
			otel.Handle(fmt.Errorf("genaigrpc: ModelCall.Method %q is no full name, such as %q: option left out",
				m.Method, "inference.v1.Inference/Generate"))
			return c
		}
		calls := maps.Clone(c.modelCalls)
		calls[name] = &m
		c.modelCalls = calls
		return c
	})
}

// WithoutModelCalls takes no RPC for a model call, but for those of a later
// [WithModelCall]: no message is read.
func WithoutModelCalls() Option {
	return optionFunc(func(c config) config {
		c.modelCalls = map[string]*ModelCall{}
		return c
	})
}

// opInference is a model on tensors, which need not be text. The conventions have
// no word for it.
const opInference genaiconv.OperationNameAttr = "inference"

var defaultModelCalls = map[string]*ModelCall{
	"inference.GRPCInferenceService/ModelInfer":       {Operation: opInference, tensors: true},
	"inference.GRPCInferenceService/ModelStreamInfer": {Operation: opInference, tensors: true, keyed: true},
}

// catch is for defer: it keeps a panic of a reader, which there may be one of a message,
// from the RPC. What it panics with may be content.
func (m *ModelCall) catch(restore func()) {
	if recover() != nil {
		restore()
		m.faults.Count(context.Background(), semconv.GenAIFaultPanic, "the reader of a message panicked: it has told nothing")
	}
}

// readRequest reads what the client sends. A reader that panics has found nothing.
func (m *ModelCall) readRequest(message any) (r request) {
	defer m.catch(func() { r = request{} })
	switch {
	case m.tensors:
		r = readTensorRequest(message)
	case m.Request != nil:
		r.Request = m.Request(message)
	default:
		r.Request = readNamedFields(message)
	}
	if m.Provider != "" {
		r.Provider = m.Provider
	}
	if m.Backend != "" {
		r.backend = m.Backend
	}
	return r
}

// readResponse reads what the server sends.
func (m *ModelCall) readResponse(call *genaitrace.Call, message any) (r response) {
	defer m.catch(func() { r = response{kind: genaitrace.NoOutput} })
	switch {
	case m.tensors:
		return readTensorResponse(message)
	case m.Observe != nil:
		return response{kind: m.Observe(call, message)}
	default:
		return response{kind: genaitrace.Visible}
	}
}
