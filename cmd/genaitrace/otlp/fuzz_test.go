package otlp

import (
	"bytes"
	"os"
	"testing"

	"github.com/genaitrace/otelgenai/capture"
)

// seeds adds small files in each form, whole and cut off.
func seeds(f *testing.F) {
	f.Helper()
	for _, name := range []string{"testdata/request.json", "testdata/request.jsonl", "testdata/request.pb"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
}

// FuzzRead reads any bytes. What can be read can be written in each form and read
// again, with the same result.
func FuzzRead(f *testing.F) {
	seeds(f)
	for _, form := range []string{"{}", "[]", "\x1f\x8b", "\xef\xbb\xbf{}", "\x00\x00\x00\x02\x0a\x00", "\x0a\x00", line("01"), `{"":{}}`, "{\n", "\x0a\x0a\x0a\x08\x12\x06\x12\x04\x0a\x02ab"} {
		f.Add([]byte(form))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read("f", bytes.NewReader(data), WithMaxMessage(1<<20))
		if err != nil {
			return
		}
		got.Dropped = 0
		want := rewrite(t, got, Protobuf)
		for _, format := range []Format{JSON, JSONLines, Protobuf} {
			again := rewrite(t, want, format)
			if asText(t, want) != asText(t, again) {
				t.Errorf("%v: wrote\n%s\nread\n%s", format, asText(t, want), asText(t, again))
			}
		}
	})
}

// asText writes a capture as text that can be compared, NaN included.
func asText(t *testing.T, c *capture.Capture) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, c, JSONLines); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// FuzzProtobuf decodes any bytes as an export of each signal, as the receiver does.
func FuzzProtobuf(f *testing.F) {
	c := newSource(1).capture(3)
	for _, one := range []*capture.Capture{{Spans: c.Spans}, {Metrics: c.Metrics}, {Logs: c.Logs}} {
		if err := eachExport(one, unknownSize, func(e export) error {
			message, err := e.proto()
			f.Add(message)
			return err
		}); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(nested(deepValue(1000), 5, 2, 2, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		for s := range signal(signals) {
			if _, err := decodeExport(newDecoder(), s, protobuf, data); err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error is long: %v", err)
			}
		}
	})
}

// FuzzJSON decodes any bytes as an export of each signal, as the receiver does.
func FuzzJSON(f *testing.F) {
	seeds(f)
	f.Add([]byte(line("01")))
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"abc","attributes":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"x"}]}}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for s := range signal(signals) {
			if _, err := decodeExport(newDecoder(), s, inJSON, data); err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error is long: %v", err)
			}
		}
	})
}
