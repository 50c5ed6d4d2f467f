// Package propagation carries trace context, sampling state, baggage and prompt
// chains from one process to the next, and from one transport to another,
// without losing a bit.
//
// A gateway that is called over HTTP and calls an inference engine over gRPC:
//
//	bridge := propagation.New()
//
//	func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
//		ctx, span := tracer.Start(bridge.FromHTTP(r), "chat")
//		defer span.End()
//		g.engine.Generate(bridge.ToGRPC(ctx), prompt)
//	}
//
// There are three layers, and each works without the others:
//
//   - Carriers know the rules of their transport: letter case, repeated fields,
//     which bytes are legal, how binary values are held. They serve any
//     OpenTelemetry propagator. [HTTPHeader], also for the upgrade request of a
//     WebSocket; [GRPCMetadata], incoming, outgoing, header or trailer; [Kafka],
//     over the record type of any client library; [Meta], the _meta of MCP;
//     [Map], also as the metadata of a WebSocket message ([ReadEnvelope],
//     [WriteEnvelope]).
//   - A [Format] is one way to write a trace context: [W3C], [TraceBin], [B3],
//     [Jaeger] and others. Each is a propagator by itself.
//   - A [Bridge] reads several formats in a fixed order of precedence, writes
//     one or several, carries baggage, and holds to a budget of bytes. It is
//     what services use.
//
// # What is read and written
//
// By default W3C Trace Context (Level 2) and W3C baggage. Everything private is
// an option: [WithFormats], [WithPromptChain]. Of several formats in a request
// the first valid one in the order of the [Format] constants is the parent.
// Another one that names another trace or span is a conflict: [Bridge.Receive]
// reports it, and [Links] has it for the span that is started next.
//
// A context without a sampling flag is not "not sampled", and a b3 denial is more
// than a missing parent: [SamplingFromContext] tells them apart, and the sampler
// of package deferred acts on them.
//
// # Whom to trust
//
// Callers are trusted unless [WithPublicEndpoint] says that strangers can call:
// then their context becomes a link. [ContextWithTenant] keeps the traces of
// tenants apart. Towards others, [Bridge.ToHTTP] and [Bridge.InjectTo] write
// everything to hosts of one's own ([IsOwnHost], [WithTrustedHosts]) and
// traceparent alone to third parties.
//
// # Limits
//
// A hop carries at most 4 KiB ([WithBudget]). What does not fit is left out in
// this order: baggage, prompt chain, tracestate members of others; never the ids.
// [Bridge.Stats] counts it.
//
// The package never fails a request: what cannot be read is absent, what a
// transport cannot carry is not sent. It never logs, starts no goroutine and
// never sets an OpenTelemetry global.
package propagation
