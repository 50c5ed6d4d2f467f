package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/genaitrace/otelgenai/capture"
)

var update = flag.Bool("update", false, "write the golden files anew")

// request is what testdata/request.json says.
func request() *capture.Capture {
	at := func(ms int64) time.Time { return time.Unix(1_800_000_000, ms*1e6).UTC() }
	id := trace.TraceID{0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}
	server := trace.SpanID{0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74}
	client := trace.SpanID{0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x75}
	resource := &capture.Resource{Attributes: capture.Attributes{attribute.String("service.name", "gateway")}, SchemaURL: "https://opentelemetry.io/schemas/1.38.0"}
	scope := &capture.Scope{Name: "github.com/genaitrace/otelgenai/genaitrace", Version: "0.3.0"}
	return &capture.Capture{
		Spans: []*capture.Span{{
			TraceID: id, SpanID: server, Flags: trace.FlagsSampled,
			Name: "POST /v1/chat/completions", Kind: trace.SpanKindServer, Start: at(0), End: at(1500),
			Attributes: capture.Attributes{attribute.Int("http.response.status_code", 200)},
			Status:     codes.Ok,
			Resource:   resource, Scope: scope,
		}, {
			TraceID: id, SpanID: client, ParentID: server, ParentOrigin: capture.OriginRemote, Flags: trace.FlagsSampled,
			Name: "chat toy-1", Kind: trace.SpanKindClient, Start: at(100),
			Attributes: capture.Attributes{
				attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}),
				attribute.Float64("llm.ttft_ms", 180.5),
			},
			Events: []capture.Event{{Name: "first_token", Time: at(280).Add(500 * time.Microsecond)}},
			Status: codes.Error, StatusMessage: "the caller went away",
			Resource: resource, Scope: scope,
		}},
		Metrics: []*capture.Metric{{
			Name: "genai.time_to_first_token", Unit: "s", Kind: capture.KindHistogram, Temporality: capture.TemporalityCumulative,
			Points: []capture.Point{{
				Start: at(0), Time: at(1000), Count: 1, Sum: 0.1805, HasSum: true,
				Bounds: []float64{0.1}, BucketCounts: []uint64{0, 1},
				Exemplars: []capture.Exemplar{{Value: 0.1805, TraceID: id, SpanID: client}},
			}},
		}},
		Logs: []*capture.Log{{
			Observed: at(300), Severity: 13, EventName: "genai.stop",
			Body:    attribute.MapValue(attribute.String("reason", "cancelled")),
			TraceID: id, SpanID: client,
		}},
	}
}

func TestADocumentByHandIsRead(t *testing.T) {
	got, err := ReadFile("testdata/request.json")
	require.NoError(t, err)
	assert.Equal(t, request(), got)
}

func TestFilesInTheFormsOfTheCollectorAreRead(t *testing.T) {
	for name, format := range map[string]Format{"testdata/request.jsonl": JSONLines, "testdata/request.pb": Protobuf} {
		t.Run(name, func(t *testing.T) {
			var written bytes.Buffer
			require.NoError(t, Write(&written, request(), format))
			if *update {
				require.NoError(t, os.WriteFile(name, written.Bytes(), 0o644))
			}
			golden, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.Equal(t, golden, written.Bytes(), "what is written has changed; -update writes it anew")
			got, err := ReadFile(name)
			require.NoError(t, err)
			assert.Equal(t, request(), got)
		})
	}
}

func TestEveryFormIsTold(t *testing.T) {
	c := newSource(3).capture(5)
	var doc, lines, sized, varint bytes.Buffer
	require.NoError(t, Write(&doc, c, JSON))
	require.NoError(t, Write(&lines, c, JSONLines))
	require.NoError(t, Write(&sized, c, Protobuf))
	require.NoError(t, eachExport(c, 2, func(e export) error {
		message, err := e.proto()
		varint.Write(protowire.AppendBytes(nil, message))
		return err
	}))
	spans := &capture.Capture{Spans: c.Spans}
	for name, form := range map[string]struct {
		data []byte
		want *capture.Capture
	}{
		"document":              {doc.Bytes(), c},
		"byte order mark":       {append([]byte("\xef\xbb\xbf \n"), doc.Bytes()...), c},
		"lines":                 {lines.Bytes(), c},
		"lines, CRLF and blank": {bytes.ReplaceAll(lines.Bytes(), []byte("\n"), []byte("\r\n\r\n")), c},
		"documents in a row":    {bytes.ReplaceAll(lines.Bytes(), []byte("\n"), nil), c},
		"last line without end": {bytes.TrimSpace(lines.Bytes()), c},
		"bare protobuf":         {bare(t, spans), spans},
		"protobuf by size":      {sized.Bytes(), c},
		"protobuf by varint":    {varint.Bytes(), c},
	} {
		for suffix, wrap := range map[string]func(io.Reader) io.Reader{
			"":                 func(r io.Reader) io.Reader { return r },
			", byte by byte":   iotest.OneByteReader,
			", end with data":  iotest.DataErrReader,
			", compressed":     func(r io.Reader) io.Reader { return bytes.NewReader(zip(t, r)) },
			", compressed, so": func(r io.Reader) io.Reader { return iotest.OneByteReader(bytes.NewReader(zip(t, r))) },
		} {
			t.Run(name+suffix, func(t *testing.T) {
				got, err := Read("f", wrap(bytes.NewReader(form.data)))
				require.NoError(t, err)
				assert.Equal(t, sorted(form.want), sorted(got))
			})
		}
	}
}

func zip(t *testing.T, r io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.Copy(w, r)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestAKeyThatIsThereTwiceIsReadOnce(t *testing.T) {
	list := strings.TrimPrefix(strings.TrimSuffix(line("01"), "}\n"), `{"resourceSpans":`)
	got, err := Read("f", strings.NewReader(`{"resourceSpans":`+list+`,"resource_spans":`+list+`}`))
	require.NoError(t, err)
	assert.Len(t, got.Spans, 2)
}

func TestTheFormIsToldWhateverTheLength(t *testing.T) {
	// Among the lengths are those that read as an opening brace, a tag or a line end.
	for n := range 400 {
		c := &capture.Capture{Spans: []*capture.Span{{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Name: strings.Repeat("n", n), Start: time.Unix(1, 0)}}}
		message := bare(t, c)
		f, _, _ := detect(message)
		require.Equal(t, bareFraming, f, "%d bytes", len(message))
		f, _, _ = detect(binary.BigEndian.AppendUint32(nil, uint32(len(message))))
		require.Equal(t, unknownFraming, f, "a length alone says nothing")
		f, _, _ = detect(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
		require.Equal(t, sizedFraming, f, "%d bytes", len(message))
		f, _, _ = detect(protowire.AppendBytes(nil, message))
		require.Equal(t, varintFraming, f, "%d bytes", len(message))
		for _, indent := range []string{"", " ", "\n", "\n\n\n\n\n", "\r\n\t", strings.Repeat(" ", n)} {
			f, _, _ = detect([]byte("{" + indent + `"resourceSpans": []}`))
			require.Equal(t, jsonFraming, f)
		}
	}
}

func TestNextReturnsOneMessageAtATime(t *testing.T) {
	in := NewReader("f", strings.NewReader(line("01")+line("02")+"{}\n"+line("03")))
	var spans []int
	for {
		c, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		spans = append(spans, len(c.Spans))
	}
	assert.Equal(t, []int{1, 1, 0, 1}, spans)
	_, err := in.Next()
	assert.ErrorIs(t, err, io.EOF, "and again")
}

// line is a line with a span; id are two hexadecimal digits.
func line(id string) string {
	return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + strings.Repeat(id, 16) + `","spanId":"` + strings.Repeat(id, 8) + `","name":"chat"}]}]}]}` + "\n"
}

func TestNothingIsAnEmptyCapture(t *testing.T) {
	for _, data := range []string{"", "\n", " \t\r\n\xef", "{}", "{}\n{}\n", "\x00\x00\x00\x00", strings.Repeat(" ", 5000), `{"resourceSpans":null}`, `{"resourceLogs":[]}`} {
		got, err := Read("f", strings.NewReader(strings.TrimSuffix(data, "\xef")))
		require.NoError(t, err, "%q", data)
		assert.Equal(t, &capture.Capture{}, got, "%q", data)
	}
}

func TestDamageNamesThePlace(t *testing.T) {
	span := func(fields string) string { return `{"resourceSpans":[{"scopeSpans":[{"spans":[{` + fields + `}]}]}]}` }
	damaged := bare(t, &capture.Capture{Logs: request().Logs})
	sized := binary.BigEndian.AppendUint32(nil, uint32(len(damaged)))
	sized = append(sized, damaged...)
	for name, c := range map[string]struct{ data, want string }{
		"short id":             {line("01") + span(`"name":"a","traceId":"abc0"`), `f:2:66: resourceSpans[0].scopeSpans[0].spans[0].traceId: found the text "abc0"; expected 32 hexadecimal digits`},
		"id is no hexadecimal": {span(`"spanId":"zzzzzzzzzzzzzzzz"`), `f:1:54: resourceSpans[0].scopeSpans[0].spans[0].spanId: found the text "zzzzzzzzzzzzzzzz"; expected 16 hexadecimal digits`},
		"number for a text":    {span("\n\"name\":\n  7"), `f:3:3: resourceSpans[0].scopeSpans[0].spans[0].name: found 7; expected a text`},
		"text for a time":      {span(`"startTimeUnixNano":"noon"`), `f:1:65: resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano: found the text "noon"; expected a whole number`},
		"object for a list":    {`{"resourceSpans":{}}`, `f:1:18: resourceSpans: found an object; expected a list`},
		"text for an object":   {`{"resourceSpans":["x"]}`, `f:1:19: resourceSpans[0]: found the text "x"; expected an object`},
		"bad base64":           {span(`"attributes":[{"key":"k","value":{"bytesValue":"***"}}]`), `f:1:92: resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.bytesValue: found the text "***"; expected base64`},
		"unknown kind":         {span(`"kind":"SPAN_KIND_GPU"`), `f:1:52: resourceSpans[0].scopeSpans[0].spans[0].kind: found the text "SPAN_KIND_GPU"; expected a whole number or a name such as SPAN_KIND_SERVER`},
		"fraction for a kind":  {span(`"kind":2.0`), `f:1:52: resourceSpans[0].scopeSpans[0].spans[0].kind: found 2.0; expected a whole number or a name such as SPAN_KIND_SERVER`},
		"null for an id":       {span(`"name":null,"parentSpanId":null`), `f:1:72: resourceSpans[0].scopeSpans[0].spans[0].parentSpanId: found null; expected 16 hexadecimal digits, or nothing`},
		"null for a time":      {span(`"startTimeUnixNano":null`), `f:1:65: resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano: found null; expected a whole number, or nothing`},
		"too many flags":       {span(`"flags":4294967296`), `f:1:53: resourceSpans[0].scopeSpans[0].spans[0].flags: found 4294967296; expected a whole number of 32 bits`},
		"too large an integer": {span(`"attributes":[{"key":"k","value":{"intValue":"9223372036854775808"}}]`), `f:1:90: resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.intValue: found the text "9223372036854775808"; expected a whole number of 64 bits`},
		"former scopes":        {`{"resourceSpans":[{"instrumentationLibrarySpans":[{"spans":[{"name":"a"}]}]}]}`, `f:1:20: a field that OTLP removed before version 1.0; expected scopeSpans, scopeMetrics or scopeLogs`},
		"missing comma":        {span(`"name":"a" "kind":2`), `f:1:56: resourceSpans[0].scopeSpans[0].spans[0]: no valid JSON: invalid character '"' after object key:value pair`},
		"cut off":              {line("01") + line("02")[:60], `f:2:61: resourceSpans[0].scopeSpans[0].spans[0].traceId: the document is cut off here`},
		"cut off in a text":    {line("01")[:75] + "\n" + line("02"), `f:1:76: a text is not closed: it holds the character '\n'`},
		"cut off in a line":    {line("01")[:len(line("01"))-4] + "\n" + line("02") + line("03"), `f:2:1: resourceSpans[0]: no valid JSON: invalid character '{' after object key:value pair`},
		"log between lines":    {line("01") + "listening on :8080\n" + line("02"), `f:2:1: found "listening on :8080\n{"; expected a JSON object`},
		"empty key":            {`{"":{"resourceSpans":[]}}`, `f:1:4: a key is empty`},
		"other JSON":           {`{"data":[{"traceID":"1"}],"total":0}`, `f:1:1: this is no OTLP: the document has the keys "data, total"; expected resourceSpans, resourceMetrics or resourceLogs`},
		"many keys":            {`{` + strings.Repeat(`"a":1,`, 20) + `"b":1}`, `f:1:101: the document has more than 16 keys; expected resourceSpans, resourceMetrics or resourceLogs`},
		"a list":               {`[{"resourceSpans":[]}]`, "f: this is no OTLP: it is a JSON list; expected an object with resourceSpans, resourceMetrics or resourceLogs, or such objects one a line"},
		"deep JSON":            {span(`"attributes":` + strings.Repeat(`[`, 1000)), `f:1:551: more than 500 brackets lie in each other`},
		"text":                 {"trace: 1\n", `f: this is no OTLP: it begins with "trace: 1\n"; expected JSON or protobuf, as it is or compressed with gzip`},
		"zstd":                 {"\x28\xb5\x2f\xfd....", "f: this is no OTLP: it is compressed with zstd; decompress it first"},
		"zstd by size":         {"\x00\x00\x00\x08\x28\xb5\x2f\xfd....", "f: byte 4: the message is compressed with zstd; have the Collector's file exporter write without compression"},
		"gzip cut off":         {string(zip(t, strings.NewReader(line("01"))))[:30], "f: cut off: unexpected EOF"},
		"no gzip":              {"\x1f\x8bno gzip at all", "f: gzip: invalid header"},
		"protobuf cut off":     {string(sized[:len(sized)-1]), "f: byte 4: the message is cut off: 87 of 88 bytes are there"},
		"protobuf, then junk":  {string(sized) + "\x01", "f: byte 92: the length of a message is cut off or damaged"},
		"bare, then junk":      {string(bare(t, &capture.Capture{Spans: request().Spans})) + "\x12\x00", "f: byte 444: found 0x12; expected another resource (0x0a)"},
		"huge size":            {"\x07\xff\xff\xff\x0a\x00", "f: byte 0: a message of 134217727 bytes is announced; the limit is 64 MiB (WithMaxMessage)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read("f", strings.NewReader(c.data))
			assert.Nil(t, got)
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestEveryNameOfANumberIsRead(t *testing.T) {
	for _, m := range messages {
		for _, f := range m {
			assert.True(t, f.kind != enum || len(enumNames[f.name]) > 0, f.name)
		}
	}
	for field, doc := range map[string]string{
		"kind":                   `{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":%q}]}]}]}`,
		"code":                   `{"resourceSpans":[{"scopeSpans":[{"spans":[{"status":{"code":%q}}]}]}]}`,
		"aggregationTemporality": `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"aggregationTemporality":%q}}]}]}]}`,
		"severityNumber":         `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":%q}]}]}]}`,
	} {
		for _, name := range enumNames[field] {
			_, err := Read("f", strings.NewReader(fmt.Sprintf(doc, name)))
			assert.NoError(t, err)
		}
	}
}

func TestDeepProtobufIsRefused(t *testing.T) {
	span := slices.Concat(nested(make([]byte, 16), 1), nested(make([]byte, 8), 2), nested(slices.Concat(nested([]byte("k"), 1), nested(deepValue(1000), 2)), 9))
	_, err := Read("f", bytes.NewReader(nested(span, 2, 2, 1)))
	require.Error(t, err)
	assert.Regexp(t, `^f: byte \d+: resourceSpans\[0\].*….*: more than 500 messages lie in each other$`, err.Error())
}

func TestAnErrorIsFinal(t *testing.T) {
	in := NewReader("f", strings.NewReader(line("01")+"x\n"+line("02")))
	_, err := in.Next()
	require.NoError(t, err)
	_, first := in.Next()
	require.Error(t, first)
	_, second := in.Next()
	assert.Equal(t, first, second)
}

func TestErrorsOfTheSourceNameTheInput(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, begin := range []string{"", line("01"), line("01")[:20], "\x00\x00\x00\xff\x0a\x02", "\x1f\x8b"} {
		_, err := Read("f", io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken)))
		assert.ErrorIs(t, err, broken, "%q", begin)
		assert.ErrorContains(t, err, "f: ", "%q", begin)
	}
	_, err := ReadFile("testdata/missing.json")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAMessageBeyondTheLimitIsRefused(t *testing.T) {
	c := newSource(1).capture(50)
	limit := WithMaxMessage(1000)
	var doc bytes.Buffer
	require.NoError(t, Write(&doc, c, JSON))
	_, err := Read("f", &doc, limit)
	assert.EqualError(t, err, "f:1: the document is larger than 1000 bytes: write one export a line (JSON lines), or raise the limit (WithMaxMessage)")

	_, err = Read("f", strings.NewReader(line("01")[:100]+strings.Repeat(" ", 5000)), limit)
	assert.EqualError(t, err, "f:1: the document is larger than 1000 bytes: write one export a line (JSON lines), or raise the limit (WithMaxMessage)")

	got, err := Read("f", strings.NewReader(strings.Repeat(line("01"), 50)), limit)
	require.NoError(t, err, "each line is below it")
	assert.Len(t, got.Spans, 50)

	_, err = Read("f", strings.NewReader(strings.Repeat(line("01")[:70]+"\n", 50)), limit)
	assert.EqualError(t, err, "f:1:71: a text is not closed: it holds the character '\\n'", "a line that is cut off is not called too large")
}

func TestWhatBelongsNowhereIsCounted(t *testing.T) {
	data := `{"resourceSpans":[{"scopeSpans":[{"spans":[
		{"spanId":"0101010101010101"},
		{"traceId":"01010101010101010101010101010101"},
		{"traceId":"01010101010101010101010101010101","spanId":"0101010101010101"}]}]}]}
	{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
		{"gauge":{"dataPoints":[{"asInt":"1"}]}},
		{"name":"empty"},
		{"name":"gauge","gauge":{"dataPoints":[{},{"flags":1},{"asInt":"7","exemplars":[{}]}]}},
		{"name":"histogram","histogram":{"dataPoints":[{"explicitBounds":[1,2],"bucketCounts":["1"]}]}}]}]}]}`
	in := NewReader("f", strings.NewReader(data))
	first, err := in.Next()
	require.NoError(t, err)
	assert.Len(t, first.Spans, 1)
	assert.Equal(t, 2, first.Dropped)

	second, err := in.Next()
	require.NoError(t, err)
	require.Len(t, second.Metrics, 2)
	assert.Equal(t, []capture.Point{{Int: true, Value: 7}}, second.Metrics[0].Points, "a point that says that nothing was recorded is none, and not counted")
	assert.Equal(t, 5, second.Dropped)
	assert.Equal(t, map[string]int{
		noTraceID: 1, noSpanID: 1, noMetricName: 1, noMetricData: 1, noPointValue: 1, noExemplar: 1, badBuckets: 1,
	}, in.Dropped())

	all, err := Read("f", strings.NewReader(data))
	require.NoError(t, err)
	assert.Equal(t, 7, all.Dropped)
}
