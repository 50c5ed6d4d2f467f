// Package otlp reads and writes telemetry in the forms of the OpenTelemetry protocol,
// and receives it live, all as a [capture.Capture].
//
// A file may be JSON, JSON lines or protobuf, as the file exporter of the
// OpenTelemetry Collector writes them, compressed with gzip or not; the content tells:
//
//	got, err := otlp.ReadFile("capture.jsonl")
//	err = otlp.WriteFile("capture.pb.gz", got)
//
// A [Reader] reads it message by message, in memory that does not grow with the file.
//
// A [Receiver] takes what an SDK exports, over gRPC and HTTP:
//
//	r, err := otlp.Listen(otlp.Config{})
//	cmd := exec.Command("go", "test", "./...")
//	cmd.Env = append(os.Environ(), r.Env()...)
//	err = cmd.Run()
//	err = r.Close(ctx)
//	for _, trace := range r.Capture().Traces() { … }
//
// Damage is an error that names the place: FILE:LINE:COLUMN in JSON, the offset of the
// byte in protobuf. What can be decoded but belongs nowhere, such as a span without a
// trace id, is left out and counted. Nothing panics, and nothing is held beyond the
// documented limits.
//
// An SDK exports cumulative metrics again and again. [ReadFile], [Read] and the
// receiver keep the latest point of each series; a [Merger] does so for who reads
// message by message.
package otlp
