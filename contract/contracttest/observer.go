package contracttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// TB is the part of *testing.T that this package needs, so that other frameworks
// can take its place. Fatalf must not return.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// A Source says where the contract comes from: [File], [Builtin] or [Contract].
type Source struct {
	load func() (*contract.Contract, error)
	file string // where accepted violations are added; empty where there is none
}

// File is a contract file. A relative path counts from the directory of the test's
// package.
func File(path string) Source {
	load := func() (*contract.Contract, error) {
		c, err := contract.Load(path)
		if errors.Is(err, fs.ErrNotExist) {
			if abs, absErr := filepath.Abs(path); absErr == nil {
				return nil, fmt.Errorf("%w (looked for %s)", err, abs)
			}
		}
		return c, err
	}
	return Source{load, path}
}

// Builtin is a built-in profile, such as chat; [contract.Builtins] lists them.
func Builtin(name string) Source {
	return Source{load: func() (*contract.Contract, error) { return contract.Builtin(name) }}
}

// Contract is a contract that was read already.
func Contract(c *contract.Contract) Source {
	return Source{load: func() (*contract.Contract, error) {
		if c == nil {
			return nil, errors.New("the contract is nil")
		}
		return c, nil
	}}
}

// An Observer records what the code under test does and holds it against a
// contract. It sets no global: give its providers to the code. It is safe for
// concurrent use.
type Observer struct {
	contract *contract.Contract
	file     string
	recorder *capture.Recorder
	bubble   bool      // runs under testing/synctest
	now      time.Time // of the real clock; zero for now

	mu       sync.Mutex
	checked  bool            // by Require or Holds
	kinds    []string        // that were required
	all      bool            // everything was required
	reported map[string]bool // findings
}

// New returns an Observer for one test. At the end of the test, after the cleanups
// that were registered later than it, what the test did not Require itself is
// checked; see [Observer.Require].
func New(t TB, from Source, opts ...capture.Option) *Observer {
	t.Helper()
	o := newObserver(t, from, opts)
	o.start(t)
	return o
}

func newObserver(t TB, from Source, opts []capture.Option) *Observer {
	t.Helper()
	if from.load == nil {
		t.Fatalf("contracttest: no contract: give File, Builtin or Contract")
	}
	c, err := from.load()
	if err != nil {
		t.Fatalf("contracttest: %v", err)
	}
	return &Observer{contract: c, file: from.file, recorder: capture.NewRecorder(opts...), reported: map[string]bool{}}
}

func (o *Observer) start(t TB) {
	t.Helper()
	t.Cleanup(func() {
		t.Helper()
		o.finish(t)
		_ = o.recorder.Shutdown(context.Background()) // nothing is exported that could fail
	})
}

// TracerProvider returns the provider of tracers for the code under test.
func (o *Observer) TracerProvider() *sdktrace.TracerProvider { return o.recorder.TracerProvider() }

// MeterProvider returns the provider of meters for the code under test.
func (o *Observer) MeterProvider() *sdkmetric.MeterProvider { return o.recorder.MeterProvider() }

// LoggerProvider returns the provider of loggers for the code under test.
func (o *Observer) LoggerProvider() *sdklog.LoggerProvider { return o.recorder.LoggerProvider() }

// Recorder returns what records, for code that makes its own providers: its
// SpanProcessor beside that of a sampling.Tail sees every span, kept or not, where New
// is given [capture.WithRecordOnly].
func (o *Observer) Recorder() *capture.Recorder { return o.recorder }

// Capture returns what was recorded so far.
func (o *Observer) Capture(t TB) *capture.Capture {
	t.Helper()
	if o.bubble {
		synctest.Wait() // what the test has caused is done then
	}
	got, err := o.recorder.Capture(context.Background())
	if err != nil {
		t.Errorf("contracttest: collecting the metrics: %v", err)
	}
	return got
}

// Require fails the test where what was recorded so far breaks the contract, and
// where it holds no request of one of these kinds that shows the roles it requires.
// Without kinds everything that the contract speaks of must have happened.
//
// It does not wait: a span that is still open is a failure, because what it lacks
// may yet come. Let the server finish first, or leave the check to the end of the
// test. There, what came after the last Require is checked too, and where Require
// was never called, everything. A test that has failed already is not checked any
// further.
func (o *Observer) Require(t TB, kinds ...string) {
	t.Helper()
	if unknown := o.unknownKinds(kinds); unknown != "" {
		t.Fatalf("contracttest: %s", unknown)
	}
	o.mu.Lock()
	o.checked = true
	o.kinds = append(o.kinds, kinds...)
	o.all = o.all || len(kinds) == 0
	o.mu.Unlock()
	o.check(t, kinds, len(kinds) == 0)
}

// Holds fails the test where what was recorded so far breaks the contract. Unlike
// [Observer.Require] it does not ask that anything of the contract has happened: it
// suits tests of requests that fail, or that their caller leaves, and so show only a
// part of what a request shows. The end of the test asks for no more.
func (o *Observer) Holds(t TB) {
	t.Helper()
	o.mu.Lock()
	o.checked = true
	o.mu.Unlock()
	o.check(t, nil, false)
}

// finish is the check at the end of a test.
func (o *Observer) finish(t TB) {
	t.Helper()
	if t.Failed() {
		t.Logf("contracttest: the test has failed already, so the contract is not checked at its end")
		return
	}
	o.mu.Lock()
	kinds, all := o.kinds, o.all || !o.checked
	o.mu.Unlock()
	o.check(t, kinds, all)
}

func (o *Observer) unknownKinds(kinds []string) string {
	known := o.contract.Requests()
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			return fmt.Sprintf("the contract %s has no requests of the kind %q; %s", o.name(), kind, choice(kind, known, "it has"))
		}
	}
	return ""
}

func (o *Observer) name() string { return cmp.Or(o.contract.Name(), o.file) }
