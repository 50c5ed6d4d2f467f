package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/openai/openai-go/v3"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/examples/internal/toyserver"
)

// A program is a run of it that serves until it is interrupted.
type program struct {
	gateway, admin string
	interrupt      func()
	done           chan error
	mu             sync.Mutex
	log            strings.Builder
}

var address = regexp.MustCompile(`(listening|metrics) on (http://[0-9.:]+)`)

// start runs the program and waits until it listens.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	p := &program{interrupt: interrupt, done: make(chan error, 1)}
	stderr, w := io.Pipe()
	go func() {
		p.done <- run(ctx, append([]string{"-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...), io.Discard, w)
		_ = w.Close()
	}()
	listens := make(chan struct{})
	go func() {
		defer close(listens)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			if m := address.FindStringSubmatch(lines.Text()); m != nil && m[1] == "listening" {
				p.gateway = m[2]
			} else if m != nil {
				p.admin = m[2]
				listens <- struct{}{}
			}
			p.mu.Unlock()
		}
	}()
	if _, ok := <-listens; !ok {
		t.Fatalf("the program ended: %v\n%s", <-p.done, p.log.String())
	}
	t.Cleanup(func() { interrupt(); <-listens })
	return p
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// get asks with headers in pairs.
func get(t *testing.T, url string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// openStream asks the toy for a stream and returns what reads it, once it has begun.
func openStream(t *testing.T, base string) (rest func() (string, error)) {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	began := make(chan struct{})
	var once sync.Once
	var text string
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer transport.CloseIdleConnections()
		defer once.Do(func() { close(began) })
		c := chatclient.New(chatclient.Options{BaseURL: base + "/v1", Transport: transport, APIKey: "none", Model: toy.Model, Stream: true})
		text, err = c.Ask(t.Context(), "What is TTFT?", func(string) { once.Do(func() { close(began) }) })
	})
	<-began
	return func() (string, error) { wg.Wait(); return text, err }
}

// The program from its flags to its end: it passes requests on, its metrics lead to
// traces, and it lets an answer end when it is told to stop.
func TestRunServes(t *testing.T) {
	exampletest.WithoutCollector(t)
	var traceparent string
	engine := toyserver.New(toy.Config{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			traceparent = r.Header.Get("Traceparent")
		}
		engine.ServeHTTP(w, r)
	}))
	defer upstream.Close()
	p := start(t, "-upstream", upstream.URL)

	if status, body := get(t, p.gateway+"/v1/models"); status != 200 || !strings.Contains(body, "toy-1") {
		t.Errorf("models: %d %s", status, body)
	}
	if status, body := get(t, p.admin+"/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("health: %d %s", status, body)
	}
	rest := openStream(t, p.gateway)
	if text, err := rest(); err != nil || !strings.HasPrefix(text, "TTFT is") {
		t.Fatalf("answer: %q, %v", text, err)
	}

	// An exemplar of the time to first token leads to the trace of the request.
	_, metrics := get(t, p.admin+"/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
	exemplar := regexp.MustCompile(`(?m)^genai_time_to_first_token_seconds_bucket\{.*genai_span_role="inference".*\} 1 # \{.*trace_id="([0-9a-f]{32})"`).FindStringSubmatch(metrics)
	if exemplar == nil || traceparent == "" || !strings.Contains(traceparent, exemplar[1]) {
		t.Errorf("no exemplar with the trace of %s: %q\n%s", traceparent, exemplar, metrics)
	}
	for _, name := range []string{
		"gen_ai_client_inference_duration_seconds_count", "gen_ai_client_inference_usage_output_tokens_total",
		"http_server_request_duration_seconds_count", `target_info{service_name="otelgenai-gateway"`,
	} {
		if !strings.Contains(metrics, name) {
			t.Errorf("no %s in:\n%s", name, metrics)
		}
	}

	rest = openStream(t, p.gateway)
	p.interrupt()
	for !strings.Contains(p.said(), "stopping") {
		if status, _ := get(t, p.admin+"/healthz"); status != 200 && status != 503 {
			t.Errorf("health: %d", status)
		}
	}
	if status, body := get(t, p.admin+"/healthz"); status != 503 || body != "draining\n" {
		t.Errorf("health of a gateway that stops: %d %s", status, body)
	}
	if text, err := rest(); err != nil || !strings.HasSuffix(text, "add to it.") {
		t.Errorf("the answer under way ends with %q, %v", text, err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("run: %v", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(p.gateway, "http://")); err == nil {
		t.Error("the gateway still listens")
	}
}

// What does not end in time is cut off, WebSockets too.
func TestRunCutsOffWhatDoesNotEnd(t *testing.T) {
	exampletest.WithoutCollector(t)
	slow := toyserver.New(toy.Config{DecodeTime: 1 << 40})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			slow.ServeHTTP(w, r)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, []byte("hello"))
		_, _, _ = c.Read(r.Context()) // until it breaks
	}))
	defer upstream.Close()
	p := start(t, "-upstream", upstream.URL, "-drain", "10ms")

	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	socket, _, err := websocket.Dial(t.Context(), p.gateway+"/v1/realtime", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if _, text, err := socket.Read(t.Context()); err != nil || string(text) != "hello" {
		t.Fatalf("the socket says %q, %v", text, err)
	}
	rest := openStream(t, p.gateway)
	p.interrupt()
	if err := <-p.done; err != nil {
		t.Errorf("run: %v", err)
	}
	if text, err := rest(); err == nil {
		t.Errorf("the answer ended well: %q", text)
	}
	if _, _, err := socket.Read(t.Context()); err == nil {
		t.Error("the socket is open")
	}
	if !strings.Contains(p.said(), "answers cut off: 2") {
		t.Errorf("log:\n%s", p.said())
	}
}

// Without a server it asks the toy engine one question, and with -once it ends then.
func TestRunOnce(t *testing.T) {
	exampletest.WithoutCollector(t)
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-once", "-prompt", "What is 17 * 23?"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(),
		"Q: What is 17 * 23?\nA: 17 * 23 = 391.\n",
		"· 5 spans ·",
		"\nPOST /v1/chat/completions  SERVER ",
		"\n└─ chat toy-1              CLIENT ",
		"\n   ├─ queue.wait           INTERNAL ",
		"\n   ├─ inference.prefill    INTERNAL ",
		"\n   └─ inference.decode     INTERNAL ",
		"seen by", "\ngateway ", "\nmodel call ",
		"where the TTFT of chat toy-1 went",
		"\n  queue ", "\n  prefill ", "\n  unattributed ",
		"\nThe answer began after ", " (prefill)", "\nFrom then on ",
	)
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
}

func TestRunOnceWithAServer(t *testing.T) {
	exampletest.WithoutCollector(t)
	t.Setenv("OPENAI_API_KEY", "secret")
	for _, base := range []string{"", "/v1", "/v1/"} {
		t.Run("base "+base, func(t *testing.T) {
			engine := toyserver.New(toy.Config{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != "Bearer secret" {
					t.Errorf("Authorization %q", got)
				}
				engine.ServeHTTP(w, r)
			}))
			defer upstream.Close()
			var stdout strings.Builder
			args := []string{"-upstream", upstream.URL + base, "-once", "-model", "toy-1", "-prompt", "1 + 1"}
			if err := run(t.Context(), args, &stdout, io.Discard); err != nil {
				t.Fatal(err)
			}
			exampletest.InOrder(t, stdout.String(), "A: 1 + 1 = 2.\n", "chat toy-1", "where the TTFT")
		})
	}
}

func TestRunOnceReportsWhatIsWrong(t *testing.T) {
	exampletest.WithoutCollector(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	var stdout, stderr strings.Builder
	err := run(t.Context(), []string{"-upstream", gone.URL, "-once", "-model", "m"}, &stdout, &stderr)
	if !errors.As(err, new(command.ShownError)) {
		t.Errorf("run: %v, want an error that is shown", err)
	}
	exampletest.InOrder(t, stdout.String(), "A: ✗ ", "502", "the upstream "+gone.URL+" cannot be reached: dial tcp", "POST /v1/chat/completions", "chat m")
	exampletest.InOrder(t, stderr.String(), "gateway: the upstream "+gone.URL+" cannot be reached")
}

// Telemetry reaches a collector although the program ends.
func TestRunExports(t *testing.T) {
	var mu sync.Mutex
	got := map[string]bool{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		for _, word := range []string{"otelgenai-gateway", "inference.prefill", "genai.time_to_first_token"} {
			if strings.Contains(string(body), word) {
				got[r.URL.Path+" "+word] = true
			}
		}
	}))
	defer collector.Close()
	exampletest.WithoutCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)

	upstream := httptest.NewServer(toyserver.New(toy.Config{}))
	defer upstream.Close()
	p := start(t, "-upstream", upstream.URL)
	rest := openStream(t, p.gateway)
	p.interrupt() // in mid-stream
	if _, err := rest(); err != nil {
		t.Error(err)
	}
	if err := <-p.done; err != nil {
		t.Error(err)
	}
	exampletest.InOrder(t, p.said(), "traces to "+collector.URL, "metrics to "+collector.URL, "listening on")
	for _, want := range []string{
		"/v1/traces otelgenai-gateway", "/v1/traces inference.prefill",
		"/v1/metrics otelgenai-gateway", "/v1/metrics genai.time_to_first_token",
	} {
		if !got[want] {
			t.Errorf("the collector did not get %s, but %v", want, got)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	exampletest.WithoutCollector(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	upstream := []string{"-upstream", "http://127.0.0.1:1"}
	for _, tt := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"-upstream", "localhost:11434"}, true, "-upstream is no URL of a server, want something like http://localhost:11434"},
		{[]string{"-upstream", "ftp://host"}, true, "-upstream is no URL"},
		{[]string{"-upstream", "http://"}, true, "-upstream is no URL"},
		{[]string{"-upstream", "http://me:secret@host"}, true, "clients send their own Authorization"},
		{[]string{"-upstream", "http://host/?a=b"}, true, "want something like http://host"},
		{[]string{"-upstream", "http://host", "-once"}, true, "-once needs -model"},
		{[]string{"-upstream", "http://host", "-model", "m"}, true, "-model is for -once"},
		{[]string{"-model", "gpt-17"}, true, "only the model toy-1"},
		{[]string{"http://host"}, true, `unexpected argument "http://host": the server goes behind -upstream`},
		{[]string{"-listen", "4000"}, true, `-listen is "4000", want an address such as 127.0.0.1:4000`},
		{[]string{"-admin", ""}, true, `-admin is ""`},
		{[]string{"-drain", "-1s"}, true, "-drain is -1s"},
		{[]string{"-drain", "long"}, true, `invalid value "long" for flag -drain`},
		{[]string{"-colour"}, true, "flag provided but not defined: -colour"},
		{append(upstream, "-listen", taken.Addr().String()), false, "-listen: listen tcp " + taken.Addr().String()},
		{append(upstream, "-listen", "127.0.0.1:0", "-admin", taken.Addr().String()), false, "-admin: listen tcp " + taken.Addr().String()},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var stdout strings.Builder
			err := run(t.Context(), tt.args, &stdout, io.Discard)
			if err == nil || errors.As(err, new(command.UsageError)) != tt.usage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("run: %v, want an error with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") || stdout.Len() > 0 {
				t.Errorf("run says a password, or goes on: %v, %s", err, stdout.String())
			}
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")
	if err := run(t.Context(), []string{"-once"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "such as http://localhost:4318") {
		t.Errorf("run: %v, want what is wrong with the endpoint", err)
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "-help"} {
		var help strings.Builder
		if err := run(t.Context(), []string{arg}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", arg, err)
		}
		for _, name := range []string{"upstream", "listen", "admin", "drain", "once", "model", "prompt", "record"} {
			if !strings.Contains(help.String(), "\n  -"+name+" ") && !strings.Contains(help.String(), "\n  -"+name+"\n") {
				t.Errorf("%s does not explain -%s:\n%s", arg, name, help.String())
			}
		}
	}
}

// A server that is not there is named, in the shape that each client looks for.
func TestClientsLearnThatTheUpstreamIsGone(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, ask := range map[string]asker{
		"openai-go": openaiWhole, "anthropic-sdk-go": anthropicStream, "go-openai": goOpenAIStream, "ollama": ollamaChat,
	} {
		t.Run(name, func(t *testing.T) {
			obs, spans := observe(t)
			gateway, stop := startGateway(t, gone.URL, obs)
			transport := http.DefaultTransport.(*http.Transport).Clone()
			defer transport.CloseIdleConnections()
			_, err := ask(t.Context(), gateway, &http.Client{Transport: transport}, func(string) {})
			if e, ok := errors.AsType[*openai.Error](err); ok {
				err = errors.New(e.Message) // which it keeps out of its error
			}
			if err == nil || !strings.Contains(err.Error(), gone.URL+" cannot be reached") {
				t.Errorf("the library says: %v", err)
			}
			stop()
			spans.ended(t)
			obs.Holds(t)
			checkStatus(t, obs.Span(t, "gateway"), true, "502")
			obs.Span(t, "call").Attr("error.type").Present()
		})
	}
}

// The error is JSON, whatever was asked.
func TestABadGatewayIsJSON(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	obs, _ := observe(t)
	gateway, stop := startGateway(t, gone.URL, obs)
	status, body := get(t, gateway+"/api/tags")
	stop()
	obs.Holds(t)
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != http.StatusBadGateway ||
		e.Error.Type != "server_error" || e.Error.Code != "upstream_unreachable" || !strings.HasPrefix(e.Error.Message, "the upstream "+gone.URL+" cannot be reached: ") {
		t.Errorf("%d %s (%v)", status, body, err)
	}
}

// What -record writes can be checked and drawn later.
func TestARecordingMeetsTheContract(t *testing.T) {
	exampletest.WithoutCollector(t)
	file := filepath.Join(t.TempDir(), "gateway.jsonl.gz")
	var stderr strings.Builder
	if err := run(t.Context(), []string{"-once", "-record", file}, io.Discard, &stderr); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stderr.String(), "gateway: recorded 5 spans and ", " metrics in ", file)
	recorded, err := otlp.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load("testdata/busy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if report := c.Check(recorded); len(recorded.Spans) != 5 || report.Failed(false) {
		t.Errorf("%d spans, want 5; findings %+v", len(recorded.Spans), report.Findings)
	}
}

// A file that cannot be written costs the recording and nothing else.
func TestARecordingThatCannotBeWritten(t *testing.T) {
	exampletest.WithoutCollector(t)
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-once", "-record", filepath.Join(t.TempDir(), "no", "dir.jsonl")}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(), "A: ", "POST /v1/chat/completions")
	exampletest.InOrder(t, stderr.String(), "gateway: telemetry: -record: ", "no such file or directory")
}

// The toy engine through the gateway shows everything that the contract speaks of.
func TestTheContractIsMet(t *testing.T) {
	obs, spans := observe(t)
	engine := httptest.NewServer(toyserver.New(toy.Config{}))
	defer engine.Close()
	gateway, stop := startGateway(t, engine.URL, obs)
	if status, _ := get(t, gateway+"/v1/models"); status != http.StatusOK {
		t.Errorf("models: %d", status)
	}
	if status, _ := get(t, gateway+"/no/such/path"); status != http.StatusNotFound {
		t.Errorf("an unknown path: %d", status)
	}
	_, err := openStream(t, gateway)()
	if err != nil {
		t.Fatal(err)
	}
	stop()
	spans.ended(t)
	obs.Require(t)
	obs.Require(t, "gateway", "told")
	if got := fmt.Sprint(len(obs.Spans(t, "gateway")), len(obs.Spans(t, "call")), len(obs.Spans(t, "prefill"))); got != "3 1 1" {
		t.Errorf("spans of gateway, call and prefill: %s", got)
	}
}
