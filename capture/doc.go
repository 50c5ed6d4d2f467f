// Package capture holds finished spans, metrics and log records of a test or a
// file as one value that can be asked questions.
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
// Each span it records knows the line of code that started it. OTLP files and a
// receiver are in cmd/genaitrace/otlp, which fills the same types.
//
// The types are plain data. A value that the source does not say is absent: an
// invalid identifier, a zero time, a nil pointer.
package capture
