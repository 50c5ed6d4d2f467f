package genaitrace

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A MemoryAccess holds what is known of an operation on an agent's memory when it
// starts. Zero values are unknown and leave no attribute. What is searched for and what
// is remembered are content and have no place here; see [Memory.SetQuery].
type MemoryAccess struct {
	// Operation is what is done, such as create_memory; zero means search_memory.
	Operation genaiconv.OperationNameAttr
	// StoreID and RecordID identify the store and, where the operation is about one
	// record, that.
	StoreID, RecordID string
	// Remote says that another process keeps the memory: the span is that of a client.
	Remote bool
	// Provider is the service that keeps it, where that has a name.
	Provider genaiconv.ProviderNameAttr
	// ServerAddress and ServerPort say where it is kept.
	ServerAddress string
	ServerPort    int
}

// clean bounds every string.
func (m *MemoryAccess) clean() {
	if m.Operation == "" {
		m.Operation = genaiconv.OperationNameSearchMemory
	}
	m.Operation = genaiconv.OperationNameAttr(bound.String(string(m.Operation), maxReason))
	m.StoreID = bound.String(m.StoreID, maxName)
	m.RecordID = bound.String(m.RecordID, maxName)
	m.Provider = genaiconv.ProviderNameAttr(bound.String(string(m.Provider), maxName))
	m.ServerAddress = bound.String(m.ServerAddress, maxName)
}

func (m *MemoryAccess) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	attrs = append(attrs, genaiconv.OperationName(m.Operation))
	if m.StoreID != "" {
		attrs = append(attrs, genaiconv.MemoryStoreID(m.StoreID))
	}
	if m.RecordID != "" {
		attrs = append(attrs, genaiconv.MemoryRecordID(m.RecordID))
	}
	if m.Provider != "" {
		attrs = append(attrs, genaiconv.ProviderName(m.Provider))
	}
	return appendServer(attrs, m.ServerAddress, m.ServerPort)
}

var memoryOperation = newOperationKind("memory", semconv.GenAISpanRoleMemory, "")

// A Memory is one operation on an agent's memory.
type Memory struct{ *Operation }

// StartMemory starts an operation on an agent's memory. The span has the operation's
// name, such as "search_memory" (after 100 distinct ones "memory"); it is INTERNAL, or
// CLIENT where another process keeps the memory.
//
// Metric of a remote one: gen_ai.client.operation.duration.
func (t *Tracer) StartMemory(ctx context.Context, access MemoryAccess) (context.Context, Memory) {
	if t == nil || t.metrics == nil {
		return ctx, Memory{}
	}
	access.clean()
	name, kind := t.chosen(memoryName, string(access.Operation), memoryOperation.name), trace.SpanKindInternal
	if access.Remote {
		kind = trace.SpanKindClient
	}
	ctx, span, began := t.startSpan(ctx, name, kind, access.appendTo(memoryOperation.attributes(ctx, 6)))
	measured := access.Remote && t.metrics.client.other.Enabled(ctx)
	if !span.IsRecording() && !measured {
		return ctx, Memory{}
	}
	if !measured {
		return ctx, Memory{t.newOperation(ctx, span, began, &memoryOperation)}
	}
	operation, _ := newWork(t, ctx, span, began, &memoryOperation, memoryEnd{Request{
		Operation: access.Operation, Provider: access.Provider,
		ServerAddress: access.ServerAddress, ServerPort: access.ServerPort,
	}})
	return ctx, Memory{operation}
}

// memoryEnd is what an operation on a remote memory adds to its end.
type memoryEnd struct{ request Request }

func (*memoryEnd) settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue) {
	return end, attrs
}

func (e *memoryEnd) record(o *Operation, end operationEnd) {
	o.t.metrics.recordRemote(o.ctx, &e.request, end)
}

var errRecords = errors.New("memory: negative number of records dropped")

// SetRecords notes how many records were read or written; a negative number is dropped
// and counted.
func (m Memory) SetRecords(n int) {
	if m.Operation == nil {
		return
	}
	if n < 0 {
		m.t.metrics.fault(m.ctx, semconv.GenAIFaultCount, errRecords)
		return
	}
	m.note(genaiconv.MemoryRecordCount(n))
}

// SetRecordID notes the record that the operation is about, where it was not known at
// the start, as one that was created. An empty value is unknown and changes nothing.
func (m Memory) SetRecordID(id string) {
	if m.Operation != nil && id != "" {
		m.note(genaiconv.MemoryRecordID(bound.String(id, maxName)))
	}
}

// SetStoreID notes the store, where it was not known at the start. An empty value is
// unknown and changes nothing.
func (m Memory) SetStoreID(id string) {
	if m.Operation != nil && id != "" {
		m.note(genaiconv.MemoryStoreID(bound.String(id, maxName)))
	}
}
