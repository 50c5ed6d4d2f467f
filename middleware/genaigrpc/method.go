package genaigrpc

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
)

const (
	// maxMethods is how many methods one handler tells apart. Programs have
	// fewer; a proxy that forwards whatever it is sent may see any number.
	maxMethods = 1000
	// maxName bounds, in bytes, each string that a peer chooses.
	maxName = 256

	// otherMethod is rpc.method where the method is not known, and otherName
	// then names the span.
	otherMethod = bound.Other
	otherName   = "grpc"
)

// A method is what all RPCs of one method have in common.
type method struct {
	name  string // of the span
	label string // rpc.method
	attrs []attribute.KeyValue
	start trace.SpanStartOption // with attrs
	model *ModelCall            // nil: its RPCs call no model
}

func newMethod(full string, common []attribute.KeyValue, calls map[string]*ModelCall) *method {
	name := methodName(full)
	m := &method{name: name, label: name, model: calls[name]}
	m.attrs = append(m.attrs, common...)
	m.attrs = append(m.attrs, otelsemconv.RPCSystemNameGRPC, otelsemconv.RPCMethod(name))
	m.start = trace.WithAttributes(m.attrs...)
	return m
}

func newOtherMethod(full string, common []attribute.KeyValue) *method {
	m := &method{name: otherName, label: otherMethod}
	m.attrs = append(m.attrs, common...)
	m.attrs = append(m.attrs, otelsemconv.RPCSystemNameGRPC)
	m.attrs = append(m.attrs, unknownMethod(full)...)
	m.start = trace.WithAttributes(m.attrs...)
	return m
}

// unknownMethod is how the conventions write a method that the server does not
// have, or that is one too many.
func unknownMethod(full string) []attribute.KeyValue {
	return []attribute.KeyValue{
		otelsemconv.RPCMethod(otherMethod),
		otelsemconv.RPCMethodOriginal(methodName(full)),
	}
}

func methodName(full string) string {
	return bound.String(strings.TrimPrefix(full, "/"), maxName)
}

// methods holds the methods that a handler has seen, by their full names.
type methods struct {
	common []attribute.KeyValue // start the attributes of each
	calls  map[string]*ModelCall

	known sync.Map // string → *method
	mu    sync.Mutex
	n     int
}

// lookup returns the method with this full name, and whether it was seen
// before. A new one may be handed to remember.
func (ms *methods) lookup(full string) (m *method, known bool) {
	if m, ok := ms.known.Load(full); ok {
		return m.(*method), true
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.n >= maxMethods && ms.calls[methodName(full)] == nil { // those that were named are few
		return newOtherMethod(full, ms.common), false
	}
	return newMethod(full, ms.common, ms.calls), false
}

// remember makes m the method with this full name, while there is room.
func (ms *methods) remember(full string, m *method) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.n >= maxMethods {
		return
	}
	if _, loaded := ms.known.LoadOrStore(strings.Clone(full), m); !loaded {
		ms.n++
	}
}
