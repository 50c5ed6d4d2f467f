package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/genaitrace/otelgenai/capture"
)

// answer is what the receiver answered.
type answer struct {
	code   int
	body   string
	header http.Header
}

// do sends a request, whose headers come in pairs.
func do(t *testing.T, r *Receiver, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.HTTPAddr()+path, body)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, string(got), resp.Header}
}

func post(t *testing.T, r *Receiver, path, contentType, body string) answer {
	t.Helper()
	return do(t, r, http.MethodPost, path, strings.NewReader(body), "Content-Type", contentType)
}

func TestExportsOverHTTPAreAnsweredInTheirEncoding(t *testing.T) {
	r := started(t, Config{})
	good := bare(t, &capture.Capture{Spans: request().Spans})

	a := post(t, r, "/v1/traces", contentProtobuf, string(good))
	assert.Equal(t, http.StatusOK, a.code)
	assert.Equal(t, contentProtobuf, a.header.Get("Content-Type"))
	response := ptraceotlp.NewExportResponse()
	require.NoError(t, response.UnmarshalProto([]byte(a.body)))
	assert.Zero(t, response.PartialSuccess().RejectedSpans())

	a = post(t, r, "/v1/traces", contentJSON+"; charset=utf-8", " "+line("01")+" ")
	assert.Equal(t, http.StatusOK, a.code)
	assert.Equal(t, contentJSON, a.header.Get("Content-Type"))
	require.NoError(t, response.UnmarshalJSON([]byte(a.body)))

	for _, path := range []string{"/v1/traces", "/v1/metrics", "/v1/logs"} {
		assert.Equal(t, http.StatusOK, post(t, r, path, contentProtobuf, "").code, "an empty export")
		assert.Equal(t, http.StatusOK, post(t, r, path, contentJSON, "{}").code, "an empty export")
	}
	assert.Len(t, r.Capture().Spans, 3)
}

func TestASenderLearnsWhatWasDropped(t *testing.T) {
	r := started(t, Config{})
	a := post(t, r, "/v1/traces", contentJSON, `{"resourceSpans":[{"scopeSpans":[{"spans":[{},{},{"traceId":"01010101010101010101010101010101"}]}]}]}`)
	assert.Equal(t, http.StatusOK, a.code)
	assert.JSONEq(t, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"1 × span without a span id; 2 × span without a trace id"}}`, a.body)
	assert.Equal(t, &capture.Capture{Dropped: 3}, r.Capture())
	assert.Equal(t, map[string]int{noSpanID: 1, noTraceID: 2}, r.Dropped())
}

func TestRejectedAreDataPoints(t *testing.T) {
	r := started(t, Config{})
	got := post(t, r, "/v1/metrics", contentJSON, `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
		{"sum":{"dataPoints":[{"asInt":"1"},{"asInt":"2"},{"asInt":"3"}]}},
		{"histogram":{"dataPoints":[{"count":"1"}]}},
		{"name":"kept","gauge":{"dataPoints":[{"asInt":"1","exemplars":[{}]}]}}]}]}]}`)
	assert.Equal(t, http.StatusOK, got.code)
	assert.JSONEq(t, `{"partialSuccess":{"rejectedDataPoints":"4","errorMessage":"1 × exemplar without a value; 4 × metric without a name"}}`, got.body)
	assert.Equal(t, map[string]int{noExemplar: 1, noMetricName: 4}, r.Dropped())
}

func TestBadRequestsAreRefusedAndSurvived(t *testing.T) {
	r := started(t, Config{MaxBody: 10_000})
	bomb := zip(t, bytes.NewReader(make([]byte, 4<<20)))
	require.Less(t, len(bomb), 100_000)
	small := zip(t, strings.NewReader(line("01")))
	for name, c := range map[string]struct {
		method, path, contentType, encoding, body string
		code                                      int
		want                                      string
	}{
		"GET":                  {"GET", "/v1/traces", contentJSON, "", "", 405, "OTLP is sent with POST\n"},
		"other path":           {"POST", "/v1/profiles", contentJSON, "", "{}", 404, "OTLP is at /v1/traces, /v1/metrics and /v1/logs\n"},
		"root":                 {"POST", "/", contentJSON, "", "{}", 404, "OTLP is at /v1/traces, /v1/metrics and /v1/logs\n"},
		"no content type":      {"POST", "/v1/traces", "", "", "{}", 415, "the Content-Type has to be application/x-protobuf or application/json\n"},
		"other content type":   {"POST", "/v1/traces", "text/plain", "", "{}", 415, "the Content-Type has to be application/x-protobuf or application/json\n"},
		"other encoding":       {"POST", "/v1/traces", contentJSON, "br", "{}", 415, `{"code":3,"message":"the Content-Encoding has to be gzip or identity"}`},
		"no gzip":              {"POST", "/v1/traces", contentJSON, "gzip", line("01"), 400, `{"code":3,"message":"the body is no gzip: gzip: invalid header"}`},
		"gzip cut off":         {"POST", "/v1/traces", contentJSON, "gzip", string(small[:30]), 400, `{"code":3,"message":"the body cannot be read: unexpected EOF"}`},
		"large":                {"POST", "/v1/traces", contentJSON, "", strings.Repeat(" ", 10_001), 413, `{"code":3,"message":"the export is larger than 10000 bytes"}`},
		"bomb":                 {"POST", "/v1/traces", contentJSON, "gzip", string(bomb), 413, `{"code":3,"message":"the export is larger than 10000 bytes"}`},
		"empty":                {"POST", "/v1/traces", contentJSON, "", "", 400, `{"code":3,"message":"this is no export of traces: byte 0: expected a JSON object"}`},
		"no JSON":              {"POST", "/v1/traces", contentJSON, "", "<html>", 400, `{"code":3,"message":"this is no export of traces: byte 0: expected a JSON object"}`},
		"JSON cut off":         {"POST", "/v1/traces", contentJSON, "", `{"resourceSpans":[`, 400, `{"code":3,"message":"this is no export of traces: byte 18: the document is cut off here"}`},
		"two documents":        {"POST", "/v1/traces", contentJSON, "", `{}{}`, 400, `{"code":3,"message":"this is no export of traces: byte 2: something follows the document"}`},
		"other JSON":           {"POST", "/v1/traces", contentJSON, "", `{"data":[]}`, 400, `{"code":3,"message":"this is no export of traces: byte 0: this is no OTLP: the document has the keys \"data\"; expected resourceSpans, resourceMetrics or resourceLogs"}`},
		"other signal":         {"POST", "/v1/metrics", contentJSON, "", line("01"), 400, `{"code":3,"message":"this is no export of metrics: byte 0: the document holds traces"}`},
		"damaged JSON":         {"POST", "/v1/traces", contentJSON, "", `{"resourceSpans":[{"scopeSpans":7}]}`, 400, `{"code":3,"message":"this is no export of traces: byte 32: resourceSpans[0].scopeSpans: found 7; expected a list"}`},
		"deep JSON":            {"POST", "/v1/logs", contentJSON, "", `{"resourceLogs":` + strings.Repeat("[", 5000), 400, `{"code":3,"message":"this is no export of logs: byte 515: more than 500 brackets lie in each other"}`},
		"protobuf is no JSON":  {"POST", "/v1/traces", contentProtobuf, "", line("01"), 400, "this is no export of traces: byte 0: field 15: longer than the message that holds it; the message is cut off or damaged"},
		"protobuf of a metric": {"POST", "/v1/traces", contentProtobuf, "", string(bare(t, &capture.Capture{Metrics: request().Metrics})), 400, "this is no export of traces: byte 11: resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value: protobuf wire type 0, which this field cannot have"},
	} {
		t.Run(name, func(t *testing.T) {
			a := do(t, r, c.method, c.path, strings.NewReader(c.body), "Content-Type", c.contentType, "Content-Encoding", c.encoding)
			assert.Equal(t, c.code, a.code)
			if a.header.Get("Content-Type") == contentProtobuf {
				var s statuspb.Status
				require.NoError(t, proto.Unmarshal([]byte(a.body), &s))
				assert.Equal(t, c.want, s.GetMessage())
				return
			}
			assert.Equal(t, c.want, a.body)
		})
	}
	assert.Equal(t, &capture.Capture{}, r.Capture())
	a := do(t, r, http.MethodPost, "/v1/traces", bytes.NewReader(small), "Content-Type", contentJSON, "Content-Encoding", "gzip")
	assert.Equal(t, http.StatusOK, a.code, a.body)
	assert.Len(t, r.Capture().Spans, 1)
}

func TestNoiseOnThePortsIsSurvived(t *testing.T) {
	r := started(t, Config{})
	for _, addr := range []string{r.GRPCAddr(), r.HTTPAddr()} {
		for _, noise := range []string{"\x16\x03\x01\x02\x00\x01\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnoise, no frame at all", "POST /v1/traces HTTP/1.1\r\nContent-Length: -7\r\n\r\n", "\x00\x00\x00"} {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			_, err = conn.Write([]byte(noise))
			require.NoError(t, err)
			_ = conn.(*net.TCPConn).CloseWrite() // the receiver may have hung up before
			_, _ = io.Copy(io.Discard, conn)     // until the receiver hangs up
			conn.Close()
		}
	}
	assert.Equal(t, http.StatusOK, post(t, r, "/v1/traces", contentJSON, line("01")).code)
	require.NoError(t, invoke(t, r.GRPCAddr(), "trace.v1.TraceService", bare(t, &capture.Capture{Spans: request().Spans})))
}

func TestCloseWaitsForWhatIsBeingReceived(t *testing.T) {
	r, err := Listen(Config{})
	require.NoError(t, err)
	body, sender := io.Pipe()
	done := make(chan answer)
	go func() {
		done <- do(t, r, http.MethodPost, "/v1/traces", body, "Content-Type", contentJSON)
	}()
	_, err = sender.Write([]byte(line("01")[:50]))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !r.Last().IsZero() }, 10*time.Second, time.Millisecond, "the receiver is receiving")

	closed := make(chan error)
	go func() { closed <- r.Close(t.Context()) }()
	require.Eventually(t, func() bool { // it no longer listens
		conn, err := net.Dial("tcp", r.HTTPAddr())
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, 10*time.Second, time.Millisecond)

	_, err = sender.Write([]byte(line("01")[50:]))
	require.NoError(t, err)
	sender.Close()
	assert.Equal(t, http.StatusOK, (<-done).code)
	assert.NoError(t, <-closed)
	assert.Len(t, r.Capture().Spans, 1, "what was kept stays")
	assert.NoError(t, r.Close(t.Context()), "again")
}

func TestCloseEndsConnectionsThatAreIdle(t *testing.T) {
	r, err := Listen(Config{})
	require.NoError(t, err)
	message := bare(t, &capture.Capture{Spans: request().Spans})
	for _, addr := range []string{r.GRPCAddr(), r.HTTPAddr()} {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
		require.NoError(t, err)
		defer conn.Close()
		var answer []byte
		require.NoError(t, conn.Invoke(t.Context(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export", message, &answer))
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post("http://"+r.HTTPAddr()+"/v1/traces", contentJSON, strings.NewReader(line("01")))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	assert.NoError(t, r.Close(ctx))
	assert.Len(t, r.Capture().Spans, 5)
}

func TestCloseDoesNotWaitLongerThanItsContext(t *testing.T) {
	r, err := Listen(Config{})
	require.NoError(t, err)
	var hung []net.Conn
	for addr, request := range map[string]string{
		r.HTTPAddr(): "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		r.GRPCAddr(): "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte(request))
		require.NoError(t, err)
		hung = append(hung, conn)
	}
	require.Eventually(t, func() bool { return !r.Last().IsZero() }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, r.Close(ctx), context.DeadlineExceeded)
	for _, conn := range hung {
		_, err := io.Copy(io.Discard, conn)
		_ = err // closed or reset, it ends
	}
}

func TestCloseDoesNotWaitForASinkLongerThanItsContext(t *testing.T) {
	for name, addr := range map[string]func(*Receiver) string{"gRPC": (*Receiver).GRPCAddr, "gRPC on the HTTP port": (*Receiver).HTTPAddr} {
		t.Run(name, func(t *testing.T) {
			entered, release := make(chan struct{}), make(chan struct{})
			r, err := Listen(Config{Sink: func(*capture.Capture) { close(entered); <-release }})
			require.NoError(t, err)
			sent := make(chan error, 1)
			go func() { sent <- invoke(t, addr(r), "trace.v1.TraceService", nil) }()
			<-entered

			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- r.Close(ctx) }()
			select {
			case err = <-closed:
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			case <-time.After(10 * time.Second):
				t.Error("Close waits for the sink")
			}
			close(release)
			<-sent // answered or broken off
		})
	}
}

func TestACompressedBodyMayHoldSeveralGzipStreams(t *testing.T) {
	r := started(t, Config{})
	var body bytes.Buffer
	for _, part := range []string{line("01")[:40], line("01")[40:]} {
		w := gzip.NewWriter(&body)
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	a := do(t, r, http.MethodPost, "/v1/traces", &body, "Content-Type", contentJSON, "Content-Encoding", "gzip")
	assert.Equal(t, http.StatusOK, a.code)
	assert.Len(t, r.Capture().Spans, 1)
}

// A sender that hung up before it had an answer sends its export again; a second exporter
// sends the same at any time.
func TestAnExportThatIsSentAgainCountsOnce(t *testing.T) {
	body := bare(t, &capture.Capture{Spans: request().Spans})
	var hangUp context.CancelFunc
	taken := 0
	r := started(t, Config{Sink: func(*capture.Capture) {
		taken++
		hangUp()
	}})
	send := func(hangsUp bool) int {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if hangUp = func() {}; hangsUp {
			hangUp = cancel
		}
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/traces", bytes.NewReader(body))
		req.Header.Set("Content-Type", contentProtobuf)
		w := httptest.NewRecorder()
		r.http.Handler.ServeHTTP(w, req)
		return w.Code
	}
	for _, hangsUp := range []bool{false, false, true} {
		assert.Equal(t, http.StatusOK, send(hangsUp))
	}
	assert.Equal(t, 3, taken, "two exporters, the second of which hung up at last")
	assert.Equal(t, http.StatusOK, send(false))
	assert.Equal(t, 3, taken, "sent again")

	require.NoError(t, r.unanswered.fill(t.Context()))
	assert.LessOrEqual(t, len(r.unanswered.exports), maxUnanswered)
}

// fill remembers more than there is room for.
func (u *unanswered) fill(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for i := range 2 * maxUnanswered {
		if _, again := u.begin(ctx, []byte(strconv.Itoa(i))); again {
			return fmt.Errorf("%d came before", i)
		}
	}
	return nil
}
