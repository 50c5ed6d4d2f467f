package otlp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/genaitrace/otelgenai/capture"
)

// Format is a form in which telemetry is written.
type Format int8

// Formats. JSON is one document, which [Read] refuses beyond [DefaultMaxMessage]: what
// may be large is better a stream. The others are streams of exports, each with at
// most 512 spans, metrics or log records: JSON one a line, protobuf each after its
// length in 4 bytes, big endian. The file exporter of the OpenTelemetry Collector
// writes the same.
const (
	JSON Format = iota
	JSONLines
	Protobuf
)

// String returns the name of the format.
func (f Format) String() string {
	switch f {
	case JSON:
		return "JSON"
	case JSONLines:
		return "JSON lines"
	case Protobuf:
		return "protobuf"
	}
	return fmt.Sprintf("Format(%d)", int8(f))
}

// batch is how many items an export of a stream holds.
const batch = 512

// WriteFile writes a capture to a file, which it creates or replaces. The ending of
// the path chooses the format: .jsonl and .ndjson are JSON lines, .pb and .binpb are
// protobuf, everything else is JSON; .gz behind it compresses.
func WriteFile(path string, c *capture.Capture) (err error) {
	file, err := os.Create(path) //nolint:gosec // the caller chooses the file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	format, compressed := formatOf(path)
	if !compressed {
		return Write(file, c, format)
	}
	zipped := gzip.NewWriter(file)
	if err := Write(zipped, c, format); err != nil {
		return err
	}
	return zipped.Close()
}

func formatOf(path string) (f Format, compressed bool) {
	path, compressed = strings.CutSuffix(strings.ToLower(path), ".gz")
	switch filepath.Ext(path) {
	case ".jsonl", ".ndjson":
		return JSONLines, compressed
	case ".pb", ".binpb":
		return Protobuf, compressed
	}
	return JSON, compressed
}

// Write writes a capture. What OTLP cannot say is lost: the line of code that started
// a span, and the number of what was dropped. A span that has not ended is written
// with the end time 0, which [Read] takes for the same. Times before 1970 become
// unknown. The errors are those of w, and a metric whose kind is none.
func Write(w io.Writer, c *capture.Capture, f Format) error {
	out := bufio.NewWriter(w)
	var err error
	switch f {
	case JSON:
		err = writeJSON(out, c)
	case JSONLines:
		err = eachExport(c, batch, func(e export) error { return writeLine(out, e) })
	case Protobuf:
		err = eachExport(c, batch, func(e export) error { return writeSized(out, e) })
	default:
		err = fmt.Errorf("otlp: unknown %v; expected JSON, JSONLines or Protobuf", f)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// export is one message of pdata, able to write itself.
type export struct{ json, proto func() ([]byte, error) }

// eachExport makes exports of at most size items.
func eachExport(c *capture.Capture, size int, do func(export) error) error {
	for spans := range slices.Chunk(c.Spans, size) {
		if err := do(exportSpans(spans)); err != nil {
			return err
		}
	}
	for metrics := range slices.Chunk(c.Metrics, size) {
		e, err := exportMetrics(metrics)
		if err != nil {
			return err
		}
		if err := do(e); err != nil {
			return err
		}
	}
	for logs := range slices.Chunk(c.Logs, size) {
		if err := do(exportLogs(logs)); err != nil {
			return err
		}
	}
	return nil
}

func exportSpans(spans []*capture.Span) export {
	from := encodeSpans(spans)
	return export{
		json:  func() ([]byte, error) { return new(ptrace.JSONMarshaler).MarshalTraces(from) },
		proto: func() ([]byte, error) { return new(ptrace.ProtoMarshaler).MarshalTraces(from) },
	}
}

func exportMetrics(metrics []*capture.Metric) (export, error) {
	from, err := encodeMetrics(metrics)
	return export{
		json:  func() ([]byte, error) { return new(pmetric.JSONMarshaler).MarshalMetrics(from) },
		proto: func() ([]byte, error) { return new(pmetric.ProtoMarshaler).MarshalMetrics(from) },
	}, err
}

func exportLogs(records []*capture.Log) export {
	from := encodeLogs(records)
	return export{
		json:  func() ([]byte, error) { return new(plog.JSONMarshaler).MarshalLogs(from) },
		proto: func() ([]byte, error) { return new(plog.ProtoMarshaler).MarshalLogs(from) },
	}
}

// writeJSON joins the documents of the signals, each an object with one key, to one.
func writeJSON(out *bufio.Writer, c *capture.Capture) error {
	begin := "{"
	err := eachExport(c, unknownSize, func(e export) error {
		doc, err := e.json()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s", begin, bytes.TrimSuffix(bytes.TrimPrefix(doc, []byte("{")), []byte("}")))
		begin = ","
		return nil
	})
	if begin == "{" { // nothing to write
		fmt.Fprint(out, begin)
	}
	fmt.Fprintln(out, "}")
	return err
}

func writeLine(out *bufio.Writer, e export) error {
	line, err := e.json()
	fmt.Fprintf(out, "%s\n", line)
	return err
}

func writeSized(out *bufio.Writer, e export) error {
	message, err := e.proto()
	fmt.Fprintf(out, "%s%s", binary.BigEndian.AppendUint32(nil, uint32(len(message))), message)
	return err
}
