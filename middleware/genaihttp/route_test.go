package genaihttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

const serverDuration = "http.server.request.duration"

// get sends a request without a body to a handler.
func get(h http.Handler, path string) {
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
}

func TestARouterOtherThanServeMuxNamesItsRoute(t *testing.T) {
	const route = "/tenants/{tenant}/chat"
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", func(_ http.ResponseWriter, r *http.Request) { genaihttp.SetRoute(r.Context(), route) })
	for _, tt := range []struct {
		name    string
		handler http.Handler
		path    string
		want    string
	}{
		{"once", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			genaihttp.SetRoute(r.Context(), route)
		}), "/tenants/4711/chat", route},
		{"the first name counts", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			genaihttp.SetRoute(r.Context(), route)
			genaihttp.SetRoute(r.Context(), "/other")
		}), "/tenants/4711/chat", route},
		{"it beats a pattern", mux, "/api/tenants/4711/chat", route},
		{"it beats a well-known path", mux, "/api/v1/chat/completions", route},
		{"a long one is cut, and valid", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			genaihttp.SetRoute(r.Context(), "/\xff"+strings.Repeat("x", 1000))
		}), "/x", "/\uFFFD" + strings.Repeat("x", 252)},
		{"an empty one is none", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			genaihttp.SetRoute(r.Context(), "")
		}), "/v1/models", "/v1/models"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			get(genaihttp.NewHandler(tt.handler, o.options()...), tt.path)
			assert.Equal(t, "GET "+tt.want, o.only().Name())
			assert.Equal(t, tt.want, attributes(o.only())["http.route"])
			require.Len(t, o.points(serverDuration), 1)
			assert.Equal(t, tt.want, o.points(serverDuration)[0].dims["http.route"])
		})
	}
	assert.NotPanics(t, func() { genaihttp.SetRoute(context.Background(), "/outside") })
}

// A middleware that replaces the request hides the mux's pattern. A handler
// around the mux finds it, and makes no span of its own.
func TestAHandlerBehindAMiddlewareTellsItsRouteToTheOuterOne(t *testing.T) {
	replacing := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, "x")))
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/tenants/{tenant}/chat", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("tenant") == "panic" {
			panic("secret")
		}
		say(w, textEvent, finishEvent, doneEvent)
	})
	for _, tt := range []struct {
		name, tenant string
		layers       int
		want         string
	}{
		{"without it", "4711", 0, "GET"},
		{"one", "4711", 1, "GET /tenants/{tenant}/chat"},
		{"three", "4711", 3, "GET /tenants/{tenant}/chat"},
		{"the handler panics", "panic", 2, "GET /tenants/{tenant}/chat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			var h http.Handler = mux
			for range tt.layers {
				h = replacing(genaihttp.NewHandler(h, o.options()...))
			}
			if tt.layers == 0 {
				h = replacing(h)
			}
			h = genaihttp.NewHandler(h, o.options()...)
			call := func() { get(h, "/tenants/"+tt.tenant+"/chat") }
			if tt.tenant == "panic" {
				assert.PanicsWithValue(t, "secret", call)
			} else {
				call()
			}
			assert.Equal(t, tt.want, o.only().Name())
			require.Len(t, o.points(serverDuration), 1, "recorded once")
			assert.EqualValues(t, 1, o.points(serverDuration)[0].count)
			if tt.tenant == "panic" {
				checkEnding(t, o.only(), "error", "panic")
				return
			}
			checkEnding(t, o.only(), "done", "")
			count, _ := o.histogram(semconv.GenAITimeToFirstTokenName)
			assert.EqualValues(t, 1, count)
		})
	}
}

// An outer handler, such as one that logs, reads the pattern from its request.
func TestThePatternIsVisibleOutside(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /x/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "panic" {
			panic(errors.New("boom"))
		}
	})
	o := newTelemetry(t)
	nothing := []genaihttp.Option{
		genaihttp.WithTracerProvider(tracenoop.NewTracerProvider()), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider()),
	}
	for name, opts := range map[string][]genaihttp.Option{"recorded": o.options(), "not recorded": nothing} {
		t.Run(name, func(t *testing.T) {
			for path, want := range map[string]string{"/x/1": "GET /x/{id}", "/x/panic": "GET /x/{id}", "/y": ""} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				func() {
					defer func() { _ = recover() }()
					genaihttp.NewHandler(mux, opts...).ServeHTTP(httptest.NewRecorder(), r)
				}()
				assert.Equal(t, want, r.Pattern, path)
			}
		})
	}
}

// net/http removes the files of a form that it finds in its own request.
func TestTheFilesOfAFormAreRemoved(t *testing.T) {
	for name, opts := range map[string]func(o *telemetry) []genaihttp.Option{
		"recorded": (*telemetry).options,
		"not recorded": func(*telemetry) []genaihttp.Option {
			return []genaihttp.Option{genaihttp.WithTracerProvider(tracenoop.NewTracerProvider()), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider())}
		},
		"left alone": func(o *telemetry) []genaihttp.Option {
			return append(o.options(), genaihttp.WithFilter(func(*http.Request) bool { return false }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir := newTelemetry(t), t.TempDir()
			t.Setenv("TMPDIR", dir)
			files := func() int {
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				return len(entries)
			}
			during := make(chan int, 1)
			server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				assert.NoError(t, r.ParseMultipartForm(1))
				during <- files()
			}), opts(o)...))
			defer server.Close()
			var form bytes.Buffer
			w := multipart.NewWriter(&form)
			part, err := w.CreateFormFile("file", "speech.wav")
			require.NoError(t, err)
			_, _ = part.Write(make([]byte, 64<<10))
			require.NoError(t, w.Close())
			resp, err := server.Client().Post(server.URL+"/v1/audio/transcriptions", w.FormDataContentType(), &form)
			require.NoError(t, err)
			_, _ = readAll(resp)
			resp.Body.Close()
			server.Close() // waits for the request to be finished
			assert.Equal(t, 1, <-during)
			assert.Zero(t, files())
		})
	}
}

func TestAFilterLeavesRequestsAlone(t *testing.T) {
	o := newTelemetry(t)
	var seen []http.ResponseWriter
	h := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { seen = append(seen, w) }),
		append(o.options(), genaihttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" }))...)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	assert.Zero(t, o.started.Load())
	assert.Empty(t, o.points(serverDuration))
	assert.Same(t, w, seen[0], "the server's own writer")

	get(h, "/v1/models")
	assert.Equal(t, "GET /v1/models", o.only().Name())
	assert.Len(t, o.points(serverDuration), 1)

	o = newTelemetry(t)
	get(genaihttp.NewHandler(http.NotFoundHandler(), append(o.options(), genaihttp.WithFilter(nil))...), "/healthz")
	o.only()
}

func TestTheDurationOfAServersRequest(t *testing.T) {
	base := func(status int, more ...any) map[string]any {
		m := map[string]any{"http.request.method": "GET", "url.scheme": "http", "http.route": "/v1/models"}
		if status > 0 {
			m["http.response.status_code"] = int64(status)
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	answers := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		method  string
		url     string
		want    map[string]any
	}{
		{"200", answers(200), "GET", "/v1/models", base(200)},
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, "GET", "/v1/models", base(200)},
		{"404", answers(404), "GET", "/v1/models", base(404)},
		{"500", answers(500), "GET", "/v1/models", base(500, "error.type", "500")},
		{"503", answers(503), "GET", "/v1/models", base(503, "error.type", "503")},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic("secret") }, "GET", "/v1/models", base(0, "error.type", "panic")},
		{"a panic after the header", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted); panic("secret") }, "GET", "/v1/models", base(202, "error.type", "panic")},
		{"over TLS", answers(200), "GET", "https://gateway/v1/models", base(200, "url.scheme", "https")},
		{"a made up method", answers(200), "BREW", "/v1/models", base(200, "http.request.method", "_OTHER")},
		{"no route", answers(200), "GET", "/customers/4711", map[string]any{
			"http.request.method": "GET", "url.scheme": "http", "http.response.status_code": int64(200),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			func() {
				defer func() { _ = recover() }()
				genaihttp.NewHandler(tt.handler, o.options()...).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, tt.url, nil))
			}()
			points := o.points(serverDuration)
			require.Len(t, points, 1)
			assert.EqualValues(t, 1, points[0].count)
			assert.Equal(t, tt.want, points[0].dims)
		})
	}
}

func TestTheDurationHasItsBucketsAndScope(t *testing.T) {
	o := newTelemetry(t)
	get(genaihttp.NewHandler(http.NotFoundHandler(), o.options()...), "/v1/models")
	var rm metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(t.Context(), &rm))
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != serverDuration {
				continue
			}
			assert.Equal(t, genaihttp.ScopeName, scope.Scope.Name)
			assert.Equal(t, "s", m.Unit)
			assert.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
				m.Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds)
			return
		}
	}
	assert.Fail(t, "not recorded")
}

// The other instrumentation records it.
func TestInsideAnotherInstrumentationsSpanTheDurationIsLeftToIt(t *testing.T) {
	o := newTelemetry(t)
	inner := genaihttp.NewHandler(http.NotFoundHandler(), o.options()...)
	get(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := o.tp.Tracer("outer").Start(r.Context(), "outer")
		defer span.End()
		inner.ServeHTTP(w, r.WithContext(ctx))
	}), "/v1/models")
	o.named("GET /v1/models")
	assert.Empty(t, o.points(serverDuration))
}

func TestTheDurationIsRecordedWhereTheSpanIsNot(t *testing.T) {
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	for name, tp := range map[string]genaihttp.Option{
		"not sampled": genaihttp.WithTracerProvider(never), "no tracing": genaihttp.WithTracerProvider(tracenoop.NewTracerProvider()),
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			mux := http.NewServeMux()
			mux.HandleFunc("/x/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
			get(genaihttp.NewHandler(mux, append(o.options(), tp)...), "/x/4711")
			require.Len(t, o.points(serverDuration), 1)
			assert.Equal(t, map[string]any{
				"http.request.method": "GET", "url.scheme": "http", "http.route": "/x/{id}",
				"http.response.status_code": int64(502), "error.type": "502",
			}, o.points(serverDuration)[0].dims)
		})
	}
}

// Whoever gives paths for routes gets so many series and names of spans, and no more.
func TestRoutesAreBounded(t *testing.T) {
	o := newTelemetry(t)
	h := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		genaihttp.SetRoute(r.Context(), r.URL.Path)
		_, _ = io.WriteString(w, "x")
	}), o.options()...)
	for range 2 {
		for i := range 1200 {
			get(h, fmt.Sprint("/", i))
		}
	}
	routes := map[any]uint64{}
	for _, p := range o.points(serverDuration) {
		routes[p.dims["http.route"]] += p.count
	}
	assert.Len(t, routes, 1001)
	assert.EqualValues(t, 400, routes["_OTHER"])
	assert.EqualValues(t, 2, routes["/0"], "those named first stay named")
	names := map[string]int{}
	for _, s := range o.spans.Ended() {
		names[s.Name()]++
	}
	assert.Equal(t, 1001, len(names))
	assert.Equal(t, 400, names["GET"])
	assert.Equal(t, 2, names["GET /0"])
	assert.Equal(t, "/1199", attributes(o.spans.Ended()[1199])["http.route"], "what was said stays on the span")
}
