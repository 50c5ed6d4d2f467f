package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

var _ = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a response as a server of models sends it, with the plan of its writes
// and what an observer must report of it.
type fixture struct {
	Name    string            `json:"name"`
	File    string            `json:"file"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Writes  []struct {
		AtMs float64 `json:"at_ms"`
		End  int     `json:"end"`
	} `json:"writes"`
	Expect struct {
		FirstTokenMs    *float64 `json:"first_token_ms"`
		InputTokens     *int     `json:"input_tokens"`
		OutputTokens    *int     `json:"output_tokens"`
		CachedTokens    *int     `json:"cached_tokens"`
		ReasoningTokens *int     `json:"reasoning_tokens"`
		Finish          []string `json:"finish"`
		Terminal        string   `json:"terminal"`
		ErrorType       string   `json:"error_type"`
		Engine          struct {
			QueueMs   *float64 `json:"queue_ms"`
			LoadMs    *float64 `json:"load_ms"`
			PrefillMs *float64 `json:"prefill_ms"`
			DecodeMs  *float64 `json:"decode_ms"`
			Source    string   `json:"source"`
		} `json:"engine"`
	} `json:"expect"`

	body []byte
}

func loadFixture(t *testing.T, name string) *fixture {
	t.Helper()
	dir := filepath.Join("testdata", "fixtures")
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*fixture
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(f *fixture) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("there is no fixture %s", name)
	}
	if all[i].body, err = os.ReadFile(filepath.Join(dir, all[i].File)); err != nil {
		t.Fatal(err)
	}
	return all[i]
}

// An upstream is a server of models that replays a fixture. It takes stretch times as
// long as the plan, so that what an engine tells of its work fits in.
type upstream struct {
	*httptest.Server
	*fixture
	stretch float64
	after   behaviour
	left    atomic.Bool // the client did, while the upstream waited for that

	mu       sync.Mutex
	received []string
}

// A behaviour is what an upstream does after the first token.
type behaviour int

const (
	sendsAll behaviour = iota
	holds              // until the client leaves
	cuts               // the connection
)

func startUpstream(t *testing.T, f *fixture, stretch float64, after behaviour) *upstream {
	t.Helper()
	u := &upstream{fixture: f, stretch: stretch, after: after}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(u.replay))
	u.Config.ErrorLog = quiet
	u.Start()
	t.Cleanup(u.Close)
	return u
}

// quiet is a log that nobody reads.
var quiet = log.New(io.Discard, "", 0)

func (u *upstream) replay(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	start := time.Now()
	u.mu.Lock()
	u.received = append(u.received, describe(r, body))
	u.mu.Unlock()

	for k, v := range u.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(u.Status)
	http.NewResponseController(w).Flush()
	from := 0
	for _, write := range u.Writes {
		time.Sleep(time.Until(start.Add(time.Duration(write.AtMs * u.stretch * float64(time.Millisecond)))))
		w.Write(u.body[from:write.End])
		http.NewResponseController(w).Flush()
		from = write.End
		if u.after == sendsAll || u.Expect.FirstTokenMs == nil || write.AtMs < *u.Expect.FirstTokenMs {
			continue
		}
		if u.after == cuts {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
		u.left.Store(true)
		return
	}
	w.Write(u.body[from:])
}

// describe is a request but for its trace context, and for what is said hop by hop.
func describe(r *http.Request, body []byte) string {
	h := r.Header.Clone()
	for _, added := range []string{"Traceparent", "Tracestate", "Baggage", "Connection"} {
		h.Del(added)
	}
	return strings.Join([]string{r.Method, r.URL.String(), describeHeader(h), string(body)}, "\n")
}

func describeHeader(h http.Header) string {
	var b strings.Builder
	_ = h.WriteSubset(&b, map[string]bool{"Date": true})
	return b.String()
}

// An asker asks the server at base with a client library, and returns everything that
// the library hands to its user. It calls heard with each piece of text.
type asker func(ctx context.Context, base string, client *http.Client, heard func(text string)) (answer string, err error)

// An asked is a question and its answer as everybody saw them.
type asked struct {
	Answer, Err string // of the library
	Response    string // as it came from the network
	Request     string // as it reached the upstream
}

// askAt asks the upstream at base, which is its own address or a gateway's. With
// leave, the client leaves after the first text.
func (u *upstream) askAt(t *testing.T, base string, ask asker, leave bool) asked {
	t.Helper()
	tap := &tap{base: http.DefaultTransport.(*http.Transport).Clone()}
	defer tap.base.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer, err := ask(ctx, base, &http.Client{Transport: tap}, func(text string) {
		if leave && text != "" {
			cancel()
		}
	})
	got := asked{Answer: answer, Response: tap.seen.String()}
	if err != nil {
		got.Err = strings.ReplaceAll(err.Error(), base, "http://server")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.received); n != 1 {
		t.Fatalf("%d requests reached the upstream", n)
	}
	got.Request, u.received = strings.ReplaceAll(u.received[0], base, "http://server"), nil
	return got
}

// A tap keeps what a client reads from the network.
type tap struct {
	base *http.Transport
	seen strings.Builder
}

func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.base.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	p.seen.WriteString(resp.Status + "\n" + describeHeader(resp.Header) + "\n")
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &p.seen), resp.Body}
	return resp, nil
}

// startGateway puts the gateway of the program before an upstream. stop waits for its
// requests, and so for their spans.
func startGateway(t *testing.T, upstream string, obs *contracttest.Observer) (address string, stop func()) {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	base := newBase()
	gateway := newGateway(target, base, quiet,
		genaihttp.WithTracerProvider(obs.TracerProvider()), genaihttp.WithMeterProvider(obs.MeterProvider()))
	address, stop, err = serveLocally(gateway, quiet)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(stop)
	t.Cleanup(func() { stop(); base.CloseIdleConnections() })
	return address, stop
}
