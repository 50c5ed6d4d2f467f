package contracttest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recordingT is a test that notes what is said to it.
type recordingT struct {
	mu       sync.Mutex
	errors   []string
	logs     []string
	fatal    bool
	cleanups []func()
}

func (r *recordingT) Helper() {}

func (r *recordingT) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recordingT) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recordingT) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.fatal = true
	runtime.Goexit()
}

func (r *recordingT) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errors) > 0
}

func (r *recordingT) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// run runs a test and its cleanups, as testing does.
func run(test func(t *recordingT)) *recordingT {
	r := &recordingT{}
	for _, f := range []func(){func() { test(r) }, func() {
		for _, f := range slices.Backward(r.cleanups) {
			f()
		}
	}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	return r
}

// failure returns the only failure of a test.
func failure(t *testing.T, r *recordingT) string {
	t.Helper()
	require.Len(t, r.errors, 1, "failures: %s", strings.Join(r.errors, "\n---\n"))
	return r.errors[0]
}

func passes(t *testing.T, r *recordingT) {
	t.Helper()
	assert.Empty(t, r.errors)
}

const contractFile = "testdata/observability.yaml"

// shop is a small service: a gateway that runs its model itself.
type shop struct {
	tp trace.TracerProvider
	mp metric.MeterProvider

	noModel     bool // forget the model
	earlyStop   bool // stop before the first token
	leaveOpen   bool // do not end the decode
	twoDecoders bool
}

func newShop(obs *contracttest.Observer) *shop {
	return &shop{tp: obs.TracerProvider(), mp: obs.MeterProvider()}
}

func (s *shop) chat() {
	tracer := genaitrace.New(genaitrace.WithTracerProvider(s.tp), genaitrace.WithMeterProvider(s.mp))
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request := genaitrace.Request{Model: "toy-1", Provider: "toy", Stream: true}
		if s.noModel {
			request.Model = ""
		}
		ctx, inf := tracer.StartInference(r.Context(), request)
		defer inf.End()
		_, decode := inf.StartDecode(ctx)
		time.Sleep(10 * time.Millisecond)
		if s.earlyStop {
			trace.SpanFromContext(ctx).AddEvent("early_stop")
		}
		decode.Token()
		if !s.leaveOpen {
			decode.End()
		}
		if s.twoDecoders {
			s.span(ctx, "inference.decode")
		}
	})
	traced := genaihttp.NewHandler(handler, genaihttp.WithTracerProvider(s.tp), genaihttp.WithMeterProvider(s.mp))
	traced.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
}

func (s *shop) span(ctx context.Context, name string, opts ...trace.SpanStartOption) {
	_, span := s.tp.Tracer("shop").Start(ctx, name, opts...)
	span.End()
}
