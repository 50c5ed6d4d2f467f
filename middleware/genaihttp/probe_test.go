package genaihttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	otelprop "go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// plain is a transport of its own, that nobody instruments.
func plain(t *testing.T) *http.Transport {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// app is a handler that a synthetic request must not reach.
func app(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s reached the application", r.URL) })
}

// failingExporter takes no span.
type failingExporter struct{ sdktrace.SpanExporter }

var errExport = errors.New("collector at 10.1.2.3:4317 is not there")

func (failingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return errExport }
func (failingExporter) Shutdown(context.Context) error                             { return nil }

func TestCheckFindsWhatIsMissing(t *testing.T) {
	sdk := func(opts ...sdktrace.TracerProviderOption) *sdktrace.TracerProvider {
		tp := sdktrace.NewTracerProvider(opts...)
		t.Cleanup(func() { _ = tp.Shutdown(context.Background()) })
		return tp
	}
	handled := func(tp trace.TracerProvider, opts ...genaihttp.Option) http.Handler {
		return genaihttp.NewHandler(app(t), append(opts, genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider()))...)
	}
	traced := func(opts ...genaihttp.Option) http.RoundTripper {
		return genaihttp.NewTransport(plain(t), append(opts, genaihttp.WithTracerProvider(sdk()))...)
	}
	stripping := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name := range r.Header {
				if name != "X-Genai-Probe" {
					delete(r.Header, name)
				}
			}
			next.ServeHTTP(w, r)
		})
	}
	for name, tc := range map[string]struct {
		root      http.Handler
		transport http.RoundTripper
		want      []string // in the error; none: all is well
	}{
		"all is well":                     {handled(sdk()), traced(), nil},
		"no transport":                    {handled(sdk()), nil, nil},
		"a layer around":                  {http.StripPrefix("", handled(sdk())), traced(), nil},
		"a filter":                        {handled(sdk(), genaihttp.WithFilter(func(*http.Request) bool { return false })), traced(), nil},
		"a public endpoint":               {handled(sdk(), genaihttp.WithPublicEndpoint()), traced(), nil},
		"a public endpoint, sampled":      {handled(sdk(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))), genaihttp.WithPublicEndpoint()), traced(), nil},
		"b3 alone":                        {handled(sdk(), genaihttp.WithPropagators(propagation.B3)), traced(genaihttp.WithPropagators(propagation.B3)), nil},
		"no handler":                      {http.NotFoundHandler(), traced(), []string{"handler", "404", "genaihttp.NewHandler"}},
		"an outer layer refuses":          {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), traced(), []string{"handler", "401"}},
		"headers are stripped":            {stripping(handled(sdk())), traced(), []string{"extract", "WithPropagators"}},
		"no propagators":                  {handled(sdk(), genaihttp.WithPropagators(otelprop.NewCompositeTextMapPropagator())), traced(), []string{"extract", "propagation.New()"}},
		"no SDK":                          {handled(tracenoop.NewTracerProvider()), traced(), []string{"span", "WithTracerProvider"}},
		"a sampler that is deaf":          {handled(sdk(sdktrace.WithSampler(sdktrace.NeverSample()))), traced(), []string{"span", "ParentBased"}},
		"a bare transport":                {handled(sdk()), plain(t), []string{"transport", "no trace context", "genaihttp.NewTransport"}},
		"a transport that writes nothing": {handled(sdk()), traced(genaihttp.WithPropagators(otelprop.NewCompositeTextMapPropagator())), []string{"transport", "no trace context"}},
		"a transport to nowhere":          {handled(sdk()), roundTripper(func(*http.Request) (*http.Response, error) { return nil, errExport }), []string{"transport", "did not arrive", errExport.Error()}},
		"a transport that panics":         {handled(sdk()), roundTripper(func(*http.Request) (*http.Response, error) { panic("no") }), []string{"transport", "panic: no"}},
		"a transport of another trace": {handled(sdk()), roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Traceparent", "00-11111111111111111111111111111111-2222222222222222-01")
			return plain(t).RoundTrip(r)
		}), []string{"transport", "another trace"}},
		"an exporter that fails": {handled(sdk(sdktrace.WithBatcher(failingExporter{}))), traced(), []string{"export", errExport.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			err := genaihttp.Check(t.Context(), tc.root, tc.transport)
			if tc.want == nil {
				assert.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, text := range tc.want {
				assert.ErrorContains(t, err, text)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCheckLeavesOneMarkedSpanAndNoDuration(t *testing.T) {
	o := newTelemetry(t)
	root := genaihttp.NewHandler(app(t), o.options()...)
	require.NoError(t, genaihttp.Check(t.Context(), root, genaihttp.NewTransport(plain(t), o.options()...)))
	span := o.only()
	assert.Equal(t, "GET /genaihttp.Probe", span.Name())
	assert.Equal(t, string(semconv.GenAITraceSourceProbe), attributes(span)[semconv.GenAITraceSourceKey])
	assert.True(t, span.Parent().IsRemote())
	count, _ := o.histogram("http.server.request.duration")
	assert.Zero(t, count)
}

func TestCheckGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := genaihttp.Check(ctx, genaihttp.NewHandler(app(t)), nil)
	assert.ErrorIs(t, err, context.Canceled)
}

// ask asks a health endpoint.
func ask(t *testing.T, url string) (status int, body string, answer struct {
	Status string
	Checks []struct {
		Check, Problem, Fix string
		OK                  bool
	}
}) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := plain(t).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &answer), "%s", text)
	return resp.StatusCode, string(text), answer
}

func TestProbeAnswersForTheHandlerAroundIt(t *testing.T) {
	for name, tc := range map[string]struct {
		opts   []genaihttp.Option
		bare   bool // no handler around
		status int
		fails  string
	}{
		"well":                {status: http.StatusOK},
		"filtered":            {opts: []genaihttp.Option{genaihttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/health" })}, status: http.StatusOK},
		"not inside":          {bare: true, status: http.StatusServiceUnavailable, fails: "handler"},
		"without propagators": {opts: []genaihttp.Option{genaihttp.WithPropagators(otelprop.NewCompositeTextMapPropagator())}, status: http.StatusServiceUnavailable, fails: "extract"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			mux := http.NewServeMux()
			mux.Handle("/health", genaihttp.Probe(genaihttp.NewTransport(plain(t), o.options()...)))
			var root http.Handler = mux
			if !tc.bare {
				root = genaihttp.NewHandler(mux, append(o.options(), tc.opts...)...)
			}
			server := httptest.NewServer(root)
			defer server.Close()

			status, body, a := ask(t, server.URL+"/health")
			assert.Equal(t, http.StatusOK, status)
			assert.Empty(t, a.Checks, body)
			status, body, a = ask(t, server.URL+"/health?probe=trace")
			assert.Equal(t, tc.status, status, body)
			if tc.fails == "" {
				assert.Equal(t, "ok", a.Status)
				assert.Len(t, a.Checks, 5, body)
				return
			}
			assert.Equal(t, "failing", a.Status)
			for _, c := range a.Checks {
				if c.Check == tc.fails {
					assert.False(t, c.OK)
					assert.NotEmpty(t, c.Problem)
					assert.NotEmpty(t, c.Fix)
				}
			}
		})
	}
}

func TestProbeRunsOnceHoweverManyAsk(t *testing.T) {
	o := newTelemetry(t)
	var sent atomic.Int32
	counting := genaihttp.NewTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		sent.Add(1)
		return plain(t).RoundTrip(r)
	}), o.options()...)
	unless := genaihttp.WithFilter(func(*http.Request) bool { return false })
	for name, tc := range map[string]struct {
		probe http.Handler
		runs  int32
	}{"within the interval": {genaihttp.Probe(counting), 1}, "out of date at once": {genaihttp.ProbeEvery(0, counting), 8}} {
		t.Run(name, func(t *testing.T) {
			sent.Store(0)
			server := httptest.NewServer(genaihttp.NewHandler(tc.probe, append(o.options(), unless)...))
			defer server.Close()
			var asking sync.WaitGroup
			for range 8 {
				asking.Go(func() {
					status, _, _ := ask(t, server.URL+"/?probe=trace")
					assert.Equal(t, http.StatusOK, status)
				})
			}
			asking.Wait()
			assert.Equal(t, tc.runs, sent.Load())
		})
	}
}

func TestProbeTellsStrangersNoAddresses(t *testing.T) {
	var mu sync.Mutex
	var reported []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, err)
	}))
	defer otel.SetErrorHandler(before)
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(failingExporter{}))
	defer func() { _ = tp.Shutdown(context.Background()) }()
	server := httptest.NewServer(genaihttp.NewHandler(genaihttp.Probe(nil), genaihttp.WithTracerProvider(tp)))
	defer server.Close()
	status, body, _ := ask(t, server.URL+"/?probe=trace")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.NotContains(t, body, "10.1.2.3")
	mu.Lock()
	defer mu.Unlock()
	assert.ErrorIs(t, errors.Join(reported...), errExport)
}

// The header of a synthetic request means nothing in a request of somebody else.
func TestTheHeaderOfAProbeOpensNothing(t *testing.T) {
	o := newTelemetry(t)
	reached := false
	server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }), o.options()...))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/genaihttp.Probe", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Genai-Probe", "guess")
	resp, err := plain(t).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.True(t, reached)
}

// A transport that gets no answer is what the check names, and not the way to it.
func TestATransportThatHangsIsNamed(t *testing.T) {
	root := genaihttp.NewHandler(http.NotFoundHandler(), genaihttp.WithTracerProvider(sdktrace.NewTracerProvider()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := genaihttp.Check(ctx, root, hanging{})
	require.ErrorContains(t, err, "check of transport: a request to a server of this process did not arrive")
	require.NotContains(t, err.Error(), "check of handler")
}

// hanging is a transport whose network swallows everything.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}
