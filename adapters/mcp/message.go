package genaimcp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
	"github.com/genaitrace/otelgenai/semconv/mcpconv"
)

// maxName bounds attribute values, in bytes.
const maxName = 256

// Values of error.type.
const (
	errTypeTool    = "tool_error" // a tool answered with isError: the word of the conventions
	errTypeTimeout = "timeout"
	errTypePanic   = "panic"
)

// A message is one request or notification.
type message struct {
	i       *instrumentation
	ctx     context.Context //nolint:containedctx // the metric of the end wants the span's context
	span    trace.Span
	began   time.Time
	sending bool

	method, tool, prompt string
	version              string
	transport            []attribute.KeyValue
}

// send is the middleware for what goes out.
func (i *instrumentation) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		m := &message{i: i, sending: true, method: method, transport: i.transport}
		ctx = m.start(ctx, req, trace.SpanKindClient)
		defer m.end(&result, &err)
		i.inject(ctx, req)
		result, err = next(ctx, method, req)
		i.sessions.learn(ctx, req, result, m)
		return result, err
	}
}

// receive is the middleware for what comes in.
func (i *instrumentation) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		m := &message{i: i, method: method, transport: i.transport}
		if extra := req.GetExtra(); extra != nil && extra.Header != nil && m.transport == nil {
			m.transport = overHTTP
		}
		ctx = m.start(ctx, req, trace.SpanKindServer)
		defer m.end(&result, &err)
		result, err = next(ctx, method, req)
		i.sessions.learn(ctx, req, result, m)
		return result, err
	}
}

func (m *message) start(ctx context.Context, req mcp.Request, kind trace.SpanKind) context.Context {
	m.began = time.Now()
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = append(attrs, semconv.GenAISpanRole(semconv.GenAISpanRoleMCP),
		mcpconv.MethodName(mcpconv.MethodNameAttr(bound.String(m.method, maxName))))
	attrs = m.appendTarget(attrs, req.GetParams())
	attrs = append(attrs, m.transport...)
	if m.sending {
		attrs = append(attrs, m.i.peer...)
	}
	if id := sessionID(req.GetSession()); id != "" {
		attrs = append(attrs, mcpconv.SessionID(bound.String(id, maxName)))
	}
	if m.version = m.i.sessions.version(req); m.version != "" {
		attrs = append(attrs, mcpconv.ProtocolVersion(m.version))
	}
	options := append(make([]trace.SpanStartOption, 0, 4),
		trace.WithSpanKind(kind), trace.WithAttributes(attrs...), trace.WithTimestamp(m.began))
	if !m.sending {
		var links []trace.Link
		ctx, links = m.i.extract(ctx, req)
		options = append(options, trace.WithLinks(links...))
	}
	m.ctx, m.span = m.i.tracer.Start(ctx, m.i.series.spanName(m.method, m.target(), m.sending), options...)
	return m.ctx
}

// target is what the span's name ends with.
func (m *message) target() string {
	if m.tool != "" {
		return m.tool
	}
	return m.prompt
}

// appendTarget appends what the message is about.
func (m *message) appendTarget(attrs []attribute.KeyValue, params mcp.Params) []attribute.KeyValue {
	if isNil(params) {
		return attrs
	}
	uri := ""
	switch p := params.(type) {
	case *mcp.CallToolParams:
		m.tool = bound.String(p.Name, maxName)
	case *mcp.CallToolParamsRaw:
		m.tool = bound.String(p.Name, maxName)
	case *mcp.GetPromptParams:
		m.prompt = bound.String(p.Name, maxName)
	case *mcp.ReadResourceParams:
		uri = p.URI
	case *mcp.SubscribeParams:
		uri = p.URI
	case *mcp.UnsubscribeParams:
		uri = p.URI
	case *mcp.ResourceUpdatedNotificationParams:
		uri = p.URI
	}
	if m.tool != "" {
		attrs = append(attrs, genaiconv.ToolName(m.tool), genaiconv.OperationName(genaiconv.OperationNameExecuteTool))
	}
	if m.prompt != "" {
		attrs = append(attrs, genaiconv.PromptName(m.prompt))
	}
	if uri != "" {
		attrs = append(attrs, mcpconv.ResourceURI(bound.String(uri, maxName)))
	}
	return attrs
}

// end ends the span and writes the metric, also where the handler panicked: it is
// deferred, and lets the panic pass.
func (m *message) end(result *mcp.Result, failure *error) {
	crash := recover()
	errType, code := errTypePanic, ""
	if crash == nil {
		errType, code = m.judge(*result, *failure)
	}
	answered := crash == nil && *failure == nil
	if name := m.i.series.answered(m.method, m.target(), m.sending, answered); name != "" {
		m.span.SetName(name)
	}
	if errType != "" {
		m.span.SetStatus(codes.Error, "") // a message could quote an argument
		attrs := []attribute.KeyValue{otelsemconv.ErrorTypeKey.String(errType)}
		if code != "" {
			attrs = append(attrs, otelsemconv.RPCResponseStatusCode(code))
		}
		m.span.SetAttributes(attrs...)
	}
	took := time.Since(m.began)
	m.span.End(trace.WithTimestamp(m.began.Add(took)))
	m.record(took, errType, code)
	if crash != nil {
		panic(crash)
	}
}

// judge says how the message ended: the error.type, and the code of a JSON-RPC error.
func (m *message) judge(result mcp.Result, err error) (errType, code string) {
	var wire *jsonrpc.Error
	switch {
	case err == nil:
		if called, ok := result.(*mcp.CallToolResult); ok && called != nil && called.IsError {
			return errTypeTool, ""
		}
		return "", ""
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(m.ctx.Err(), context.DeadlineExceeded):
		return errTypeTimeout, ""
	case m.ctx.Err() != nil:
		return "", "" // nobody waits any more, which is no failure; work that was cancelled while somebody waits is
	case errors.As(err, &wire):
		code = strconv.FormatInt(wire.Code, 10)
		return code, code
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		switch name := reflect.TypeOf(inner).String(); name {
		case "*errors.errorString", "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError":
		default:
			return bound.String(name, maxName), ""
		}
	}
	return bound.Other, ""
}

// inject writes the context into the _meta of what goes out. The parameters are the
// caller's, who may use them again or in several calls at once: so they are copied.
func (i *instrumentation) inject(ctx context.Context, req mcp.Request) {
	params := req.GetParams()
	if isNil(params) {
		return
	}
	carrier := i.carrier(ctx)
	if len(carrier) == 0 {
		return
	}
	field := reflect.ValueOf(req)
	if field.Kind() != reflect.Pointer || field.IsNil() || field.Elem().Kind() != reflect.Struct {
		return
	}
	field = field.Elem().FieldByName("Params")
	given := reflect.ValueOf(params)
	if !field.IsValid() || !field.CanSet() || given.Kind() != reflect.Pointer || !given.Type().AssignableTo(field.Type()) {
		return
	}
	copied := reflect.New(given.Type().Elem())
	copied.Elem().Set(given.Elem())
	ours, ok := copied.Interface().(mcp.Params)
	if !ok {
		return
	}
	meta := make(propagation.Meta, len(params.GetMeta())+len(carrier))
	for key, value := range params.GetMeta() {
		meta[key] = value
	}
	for key := range carrier { // in the place of another spelling
		meta.Set(key, carrier.Get(key))
	}
	ours.SetMeta(meta)
	field.Set(copied)
}

// carrier holds the context. A propagator that panics has written nothing.
func (i *instrumentation) carrier(ctx context.Context) (carrier propagation.Meta) {
	defer func() {
		if v := recover(); v != nil {
			carrier = nil
			reportPropagator(v)
		}
	}()
	carrier = propagation.Meta{}
	i.propagator.Inject(ctx, carrier)
	return carrier
}

// arrived is ctx with what carrier holds. A propagator that panics has found nothing.
func (i *instrumentation) arrived(ctx context.Context, carrier propagation.Meta) (remote context.Context) {
	defer func() {
		if v := recover(); v != nil {
			remote = ctx
			reportPropagator(v)
		}
	}()
	return i.propagator.Extract(ctx, carrier)
}

func reportPropagator(v any) {
	otel.Handle(fmt.Errorf("genaimcp: propagator panicked, message goes on without trace context: %v", v))
}

// extract reads the context of what comes in, and says what the span links to.
func (i *instrumentation) extract(ctx context.Context, req mcp.Request) (context.Context, []trace.Link) {
	around := trace.SpanContextFromContext(ctx)
	params := req.GetParams()
	if isNil(params) {
		return ctx, nil
	}
	ctx = i.arrived(ctx, propagation.Meta(params.GetMeta()))
	links := append([]trace.Link(nil), propagation.Links(ctx)...)
	if around.IsValid() && !around.Equal(trace.SpanContextFromContext(ctx)) {
		links = append(links, trace.Link{SpanContext: around})
	}
	return ctx, links
}

// isNil reports whether there are no parameters: a nil pointer in an interface counts.
func isNil(params mcp.Params) bool {
	if params == nil {
		return true
	}
	v := reflect.ValueOf(params)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
