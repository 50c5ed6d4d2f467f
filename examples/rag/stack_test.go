package main

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

func TestMain(m *testing.M) {
	// bleve's workers live as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

// secret stands in the documents and in the questions of the tests.
const secret = "xyzzyplover7741"

var testDocs = map[string]string{
	"times.md": "# Times\n\nThe queue wait lasts until the scheduler takes a request.\n\n## Prefill " + secret + "\n\n" +
		"Prefill " + secret + " is the pass over the whole prompt before the first token. It grows with the prompt.\n",
	"cache.md": "# Cache\n\nThe prefix cache keeps what prefill computed. Entries that nobody uses go first.\n",
	"ends.md":  "# Ends\n\nA stream ends when the client leaves, and the engine stops at once.\n",
}

func testChunks() (chunks []chunk) {
	for _, name := range []string{"cache.md", "ends.md", "times.md"} {
		chunks = append(chunks, split(name, testDocs[name])...)
	}
	return chunks
}

// A stack is the whole example on loopback, with the indexes filled.
type stack struct {
	tel      *telemetry.Telemetry
	pipeline *pipeline
	client   *chatclient.Client
	dense    *dense
	lexical  *lexical
	address  string
	unindex  func() // closes the lexical index
	stop     func()
}

// startStack runs it under a contract. embed nil is the hashing embedder.
func startStack(t *testing.T, obs *contracttest.Observer, engine toy.Config, embed embedder) *stack {
	t.Helper()
	return startStackOn(t, telemetry.On(obs.TracerProvider(), obs.MeterProvider()), engine, embed)
}

func startStackOn(t *testing.T, tel *telemetry.Telemetry, engine toy.Config, embed embedder) *stack {
	t.Helper()
	if embed == nil {
		embed = hashing{tel.Tracer}
	}
	chunks := testChunks()
	d, err := newDense(tel.Tracer, embed)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLexical(tel.Tracer)
	if err != nil {
		t.Fatal(err)
	}
	if err := ingest(t.Context(), tel, chunks, d, l, io.Discard); err != nil {
		t.Fatal(err)
	}
	gateway, stopBackend, err := serving.NewBackend(nil, engine, tel)
	if err != nil {
		t.Fatal(err)
	}
	p := newPipeline(tel, chunks, d, l)
	address, stop, err := serving.Listen(serving.Traced(grounded(p, gateway), tel))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s := &stack{tel: tel, pipeline: p, dense: d, lexical: l, address: address}
	s.unindex = sync.OnceFunc(func() { _ = l.index.Close() })
	s.client = newClient(address, transport, &config{model: toy.Model})
	s.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		stop()
		stopBackend()
		s.unindex()
	})
	t.Cleanup(s.stop)
	return s
}

// fast is an engine that takes a microsecond where the default takes milliseconds.
func fast() toy.Config {
	return toy.Config{PassTime: time.Microsecond, PrefillTime: time.Microsecond, DecodeTime: time.Microsecond}
}
