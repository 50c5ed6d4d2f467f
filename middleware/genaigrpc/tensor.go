package genaigrpc

import (
	"encoding/binary"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
)

// The messages of the Open Inference Protocol (KServe V2, Triton) are read by the
// names of their fields. The Go code that KServe and Triton generate from their
// copies of it has the same protobuf names, so that no program can link both: this
// package links neither, and reads either.

const (
	maxInputs = 16 // input tensors that are told
	maxDims   = 8  // dimensions of each

	serverTriton = "triton"
	serverKServe = "kserve"
)

// A request is what a client's message tells.
type request struct {
	genaitrace.Request

	backend string
	shape   []int
	inputs  []string
}

// attributes are those that a span of any role has.
func (r *request) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 3)
	if r.backend != "" {
		attrs = append(attrs, semconv.GenAIBackendType(bound.String(r.backend, maxName)))
	}
	if r.shape != nil {
		attrs = append(attrs, semconv.GenAITensorShape(r.shape...))
	}
	if r.inputs != nil {
		attrs = append(attrs, semconv.GenAITensorInputs(r.inputs...))
	}
	return attrs
}

// A response is what a server's message tells.
type response struct {
	id, model, version string

	kind   genaitrace.ChunkKind
	told   bool // whether it is the last one of its request, or not
	final  bool
	failed bool // it stands for an error
}

func readNamedFields(message any) (r genaitrace.Request) {
	m, ok := reflected(message)
	if !ok {
		return r
	}
	r.Model = firstText(m, "model_name", "model")
	r.ModelVersion = text(m, "model_version")
	r.RequestID = firstText(m, "request_id", "id")
	return r
}

func readTensorRequest(message any) (r request) {
	m, ok := reflected(message)
	if !ok {
		return r
	}
	r.Model, r.ModelVersion, r.RequestID = text(m, "model_name"), text(m, "model_version"), text(m, "id")
	r.Provider = serverKServe
	if _, ok := parameter(m, "triton_enable_empty_final_response"); ok || isTriton(m.Descriptor()) {
		r.Provider, r.backend = serverTriton, serverTriton
	}
	inputs := messages(m, "inputs")
	if inputs == nil {
		return r
	}
	for i := range min(inputs.Len(), maxInputs) {
		input := inputs.Get(i).Message()
		shape := integers(input, "shape")
		if i == 0 {
			r.shape = shape
		}
		r.inputs = append(r.inputs, describeTensor(input, shape))
	}
	return r
}

func describeTensor(tensor protoreflect.Message, shape []int) string {
	buf := make([]byte, 0, 64)
	buf = append(buf, bound.String(text(tensor, "name"), 64)...)
	buf = append(buf, ' ')
	buf = append(buf, bound.String(text(tensor, "datatype"), 16)...)
	buf = append(buf, ' ', '[')
	for i, n := range shape {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(buf, int64(n), 10)
	}
	return string(append(buf, ']'))
}

// isTriton reports whether a message was generated from Triton's copy of the
// protocol, whose service has methods that no other server offers.
func isTriton(d protoreflect.MessageDescriptor) bool {
	file := d.ParentFile()
	if file == nil {
		return false
	}
	service := file.Services().ByName("GRPCInferenceService")
	return service != nil && service.Methods().ByName("SystemSharedMemoryRegister") != nil
}

// readTensorResponse reads a ModelInferResponse, or the ModelStreamInferResponse
// around one, in which Triton tells of a failure that does not end the RPC.
func readTensorResponse(message any) (r response) {
	r.kind = genaitrace.NoOutput
	m, ok := reflected(message)
	if !ok {
		return r
	}
	if inner := field(m, "infer_response", protoreflect.MessageKind); inner != nil {
		r.failed = text(m, "error_message") != ""
		m = m.Get(inner).Message()
	}
	r.id, r.model, r.version = text(m, "id"), text(m, "model_name"), text(m, "model_version")
	if last, ok := parameter(m, "triton_final_response"); ok {
		r.told = true
		if flag := field(last, "bool_param", protoreflect.BoolKind); flag != nil {
			r.final = last.Get(flag).Bool()
		}
	}
	if r.failed {
		return r
	}
	r.kind = outputKind(m)
	return r
}

// outputKind says what the output tensors of a response are. The one that Triton's
// backends for language models name text_output is answer text, and none where it
// is empty.
func outputKind(m protoreflect.Message) genaitrace.ChunkKind {
	kind := genaitrace.NoChunk // the empty response that says that it was the last
	outputs := messages(m, "outputs")
	if outputs == nil {
		return kind
	}
	raw := list(m, "raw_output_contents", protoreflect.BytesKind)
	for i := range outputs.Len() {
		output := outputs.Get(i).Message()
		if text(output, "name") != "text_output" {
			kind = atLeast(kind, genaitrace.Output)
			continue
		}
		if raw != nil && i < raw.Len() && onlyEmptyStrings(raw.Get(i).Bytes()) || raw == nil && hasEmptyContents(output) {
			kind = atLeast(kind, genaitrace.NoOutput)
			continue
		}
		return genaitrace.Visible
	}
	return kind
}

func atLeast(kind, other genaitrace.ChunkKind) genaitrace.ChunkKind {
	if kind == genaitrace.NoChunk {
		return other
	}
	return max(kind, other)
}

// onlyEmptyStrings reports whether raw, strings each behind its length in four
// bytes, holds no byte of text.
func onlyEmptyStrings(raw []byte) bool {
	for len(raw) >= 4 {
		if binary.LittleEndian.Uint32(raw) != 0 {
			return false
		}
		raw = raw[4:]
	}
	return true
}

// hasEmptyContents reports whether a tensor says that all of its strings are empty.
// One without contents may have them in shared memory.
func hasEmptyContents(tensor protoreflect.Message) bool {
	contents := field(tensor, "contents", protoreflect.MessageKind)
	if contents == nil || !tensor.Has(contents) {
		return false
	}
	elements := list(tensor.Get(contents).Message(), "bytes_contents", protoreflect.BytesKind)
	if elements == nil {
		return false
	}
	for i := range elements.Len() {
		if len(elements.Get(i).Bytes()) > 0 {
			return false
		}
	}
	return true
}

// reflected returns a message that can be read by the names of its fields.
func reflected(message any) (protoreflect.Message, bool) {
	m, ok := message.(proto.Message)
	if !ok || m == nil {
		return nil, false
	}
	r := m.ProtoReflect()
	return r, r != nil && r.IsValid()
}

// field returns the field of a message if it is one value of that kind.
func field(m protoreflect.Message, name protoreflect.Name, kind protoreflect.Kind) protoreflect.FieldDescriptor {
	f := m.Descriptor().Fields().ByName(name)
	if f == nil || f.Kind() != kind || f.Cardinality() == protoreflect.Repeated {
		return nil
	}
	return f
}

func text(m protoreflect.Message, name protoreflect.Name) string {
	f := field(m, name, protoreflect.StringKind)
	if f == nil {
		return ""
	}
	s := m.Get(f).String()
	short := bound.String(s, maxName)
	if len(s) > maxName {
		return strings.Clone(short) // keeps none of the rest
	}
	return short
}

func firstText(m protoreflect.Message, names ...protoreflect.Name) string {
	for _, name := range names {
		if s := text(m, name); s != "" {
			return s
		}
	}
	return ""
}

// list returns the values of a repeated field of that kind, nil where it has none.
func list(m protoreflect.Message, name protoreflect.Name, kind protoreflect.Kind) protoreflect.List {
	f := m.Descriptor().Fields().ByName(name)
	if f == nil || !f.IsList() || f.Kind() != kind || !m.Has(f) {
		return nil
	}
	return m.Get(f).List()
}

func messages(m protoreflect.Message, name protoreflect.Name) protoreflect.List {
	return list(m, name, protoreflect.MessageKind)
}

// integers returns the values of a repeated int64 field, maxDims at most.
func integers(m protoreflect.Message, name protoreflect.Name) []int {
	values := list(m, name, protoreflect.Int64Kind)
	if values == nil {
		return nil
	}
	ints := make([]int, min(values.Len(), maxDims))
	for i := range ints {
		ints[i] = int(values.Get(i).Int())
	}
	return ints
}

// parameter returns an entry of the map of parameters that a message has.
func parameter(m protoreflect.Message, name string) (protoreflect.Message, bool) {
	f := m.Descriptor().Fields().ByName("parameters")
	if f == nil || !f.IsMap() || f.MapKey().Kind() != protoreflect.StringKind || f.MapValue().Kind() != protoreflect.MessageKind {
		return nil, false
	}
	value := m.Get(f).Map().Get(protoreflect.ValueOfString(name).MapKey())
	if !value.IsValid() {
		return nil, false
	}
	return value.Message(), true
}
