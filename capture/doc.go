// Package capture holds the spans, metrics and log records of a test or a file as
// one value that can be asked questions.
//
// A [Recorder] collects them from the SDK in memory:
//
//	rec := capture.NewRecorder()
//	srv := newServer(rec.TracerProvider(), rec.MeterProvider())
//	post(t, srv, "/v1/chat/completions")
//	got, err := rec.Capture(ctx)
//	for _, trace := range got.Traces() {
//		fmt.Print(trace) // the tree
//	}
//
// There is nothing to flush, and spans that never ended are there too. Each span
// knows the line of code that started it: the first one that is neither of the SDK,
// nor of this module's or OpenTelemetry's instrumentation, nor of net/http or gRPC
// between them and the user.
//
// OTLP files and a receiver are in cmd/genaitrace/otlp, which fills the same types.
// [Capture.WriteTree] writes text for golden files; package contract checks a
// Capture, and contract/contracttest does so in a test.
//
// The types are plain data. A value that the source does not say is absent: an
// invalid identifier, a zero time, a nil pointer.
package capture
