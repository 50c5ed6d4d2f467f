// Package propagation carries trace context and baggage from one process to
// the next, and from one transport to another, without losing a bit.
//
// A gateway that is called over HTTP and calls an inference engine over gRPC:
//
//	bridge := propagation.New(propagation.WithTraceBin())
//
//	func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
//		ctx := bridge.Extract(r.Context(), propagation.HTTPHeader(r.Header))
//		ctx, span := tracer.Start(ctx, "chat")
//		defer span.End()
//
//		md := metadata.MD{}
//		bridge.Inject(ctx, propagation.GRPCMetadata(md))
//		g.engine.Generate(metadata.NewOutgoingContext(ctx, md), prompt)
//	}
//
// There are three layers, and each works without the others:
//
//   - [HTTPHeader] and [GRPCMetadata] are carriers that know the rules of
//     their transport: letter case, repeated fields, which bytes are legal,
//     how binary values are held. They serve any OpenTelemetry propagator.
//   - [W3C] and [TraceBin] are the formats: traceparent with tracestate, and
//     the grpc-trace-bin of OpenCensus and gRPC. They accept any carrier.
//   - [Bridge] reads several formats in a fixed order of precedence, writes
//     all of them and carries baggage.
//
// [ContextWithCallerMark] and [HasCallerMark] tell the callee that its caller
// already reports the token usage of the request, so that it is counted once.
//
// The package never fails a request: what cannot be read is absent, what a
// transport cannot carry is not sent. It never logs, starts no goroutine,
// holds no state and never sets an OpenTelemetry global. It does not decide
// whom to trust: a server that strangers can reach must itself choose to link
// to the extracted context rather than to continue it.
package propagation
