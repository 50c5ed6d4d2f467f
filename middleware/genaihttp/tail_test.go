package genaihttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/sampling"
)

// A party is a process of its own as far as sampling goes.
type party struct {
	t        *testing.T
	tail     *sampling.Tail
	tracer   trace.Tracer
	exporter *tracetest.InMemoryExporter
	options  []genaihttp.Option
	answers  listener
}

// A listener notes what callees said.
type listener struct {
	*sampling.Tail

	mu   sync.Mutex
	seen []trace.SpanContext
}

func (a *listener) CalleeResponded(ctx context.Context, callee trace.SpanContext) {
	a.mu.Lock()
	a.seen = append(a.seen, callee)
	a.mu.Unlock()
	a.Tail.CalleeResponded(ctx, callee)
}

func newParty(t *testing.T) *party {
	t.Helper()
	p := &party{t: t, exporter: tracetest.NewInMemoryExporter()}
	var err error
	p.tail, err = sampling.NewTail(p.exporter, sampling.Errors(), sampling.WithMeterProvider(metricnoop.NewMeterProvider()))
	require.NoError(t, err)
	p.answers.Tail = p.tail
	tp := sdktrace.NewTracerProvider(p.tail.ProviderOptions()...)
	p.tracer = tp.Tracer("test")
	p.options = []genaihttp.Option{
		genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider()),
		genaihttp.WithTailSampler(&p.answers),
	}
	t.Cleanup(func() { assert.NoError(t, p.tail.Shutdown(context.Background())) })
	return p
}

// fails is a step that fails and is made good.
func (p *party) fails(r *http.Request) {
	_, step := p.tracer.Start(r.Context(), "step")
	step.SetStatus(codes.Error, "")
	step.End()
}

// kept returns the reason by which the span of a name was exported, "" where it was not.
func (p *party) kept(name string) string {
	p.t.Helper()
	require.NoError(p.t, p.tail.ForceFlush(context.Background()))
	for _, span := range p.exporter.GetSpans() {
		if span.Name != name {
			continue
		}
		for _, kv := range span.Attributes {
			if kv.Key == attribute.Key("genai.sampling.reason") {
				return kv.Value.AsString()
			}
		}
		return "?"
	}
	return ""
}

// call makes a request in a span of the caller and reads the answer to its end, or
// closes it unread.
func (p *party) call(base http.RoundTripper, target string, read bool, opts ...genaihttp.Option) *http.Response {
	p.t.Helper()
	ctx, root := p.tracer.Start(context.Background(), "caller")
	defer root.End()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	require.NoError(p.t, err)
	client := http.Client{Transport: genaihttp.NewTransport(base, append(p.options, opts...)...)}
	resp, err := client.Do(req)
	require.NoError(p.t, err)
	if read {
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(p.t, err)
	}
	require.NoError(p.t, resp.Body.Close())
	return resp
}

func TestTheCallerKeepsWhatItsCalleeKeeps(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  func(*party, http.ResponseWriter, *http.Request)
		unread bool
		kept   bool // by the callee
		told   bool // and by the caller
	}{
		{name: "fine", serve: func(_ *party, w http.ResponseWriter, _ *http.Request) { say(w, textEvent, finishEvent, doneEvent) }},
		{name: "failed before the answer", serve: func(p *party, w http.ResponseWriter, r *http.Request) {
			p.fails(r)
			_, _ = io.WriteString(w, "all is well")
		}, kept: true, told: true},
		{name: "failed in the middle of the answer", serve: func(p *party, w http.ResponseWriter, r *http.Request) {
			say(w, textEvent)
			p.fails(r)
		}, kept: true, told: true},
		{name: "which nobody reads to its end", serve: func(p *party, w http.ResponseWriter, r *http.Request) {
			say(w, textEvent)
			p.fails(r)
		}, unread: true, kept: true},
		{name: "an error inside a stream", serve: func(_ *party, w http.ResponseWriter, _ *http.Request) { say(w, errorEvent) }, kept: true, told: true},
		{name: "a status", serve: func(_ *party, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, kept: true, told: true},
		{name: "a trailer of the handler's own", serve: func(p *party, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Digest")
			say(w, textEvent)
			p.fails(r)
			w.Header().Set("Digest", "x")
		}, kept: true, told: true},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				caller, callee := newParty(t), newParty(t)
				handler := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					c.serve(callee, w, r)
				}), callee.options...)
				served := make(chan struct{})
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(served)
					handler.ServeHTTP(w, r)
				}))
				server.EnableHTTP2 = http2
				server.StartTLS()
				defer server.Close()
				caller.call(server.Client().Transport, server.URL, !c.unread)
				<-served

				assert.Equal(t, c.kept, callee.kept("GET") != "", "by the callee")
				want := ""
				if c.told {
					want = "callee"
				}
				assert.Equal(t, want, caller.kept("caller"))
				require.Len(t, caller.answers.seen, 1, "one answer")
				assert.Equal(t, c.told, caller.answers.seen[0].IsSampled())
			})
		}
	}
}

func TestAProxySpeaksForItself(t *testing.T) {
	caller, proxy, engine := newParty(t), newParty(t), newParty(t)
	upstream := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		say(w, textEvent)
		engine.fails(r)
	}), engine.options...))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	reverse := httputil.NewSingleHostReverseProxy(target)
	reverse.FlushInterval = -1
	reverse.Transport = genaihttp.NewTransport(nil, proxy.options...)
	server := httptest.NewServer(genaihttp.NewHandler(reverse, proxy.options...))
	defer server.Close()
	caller.call(nil, server.URL, true)
	server.Close()

	for name, p := range map[string]*party{"engine": engine, "proxy": proxy} {
		assert.NotEmpty(t, p.kept("GET"), name)
	}
	assert.Equal(t, "callee", caller.kept("caller"))
	require.Len(t, caller.answers.seen, 1)
	spans := proxy.exporter.GetSpans()
	assert.Equal(t, spans[len(spans)-1].SpanContext.SpanID(), caller.answers.seen[0].SpanID(), "not the engine's")
}

func TestWhoeverMustNotKnowIsToldNothing(t *testing.T) {
	callee := newParty(t)
	fails := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		callee.fails(r)
		say(w, textEvent)
	})
	t.Run("strangers", func(t *testing.T) {
		caller := newParty(t)
		server := httptest.NewServer(genaihttp.NewHandler(fails, append(callee.options, genaihttp.WithPublicEndpoint())...))
		defer server.Close()
		resp := caller.call(nil, server.URL, true)
		assert.NotContains(t, resp.Header, "Server-Timing")
		assert.Empty(t, resp.Trailer)
		assert.Empty(t, caller.kept("caller"))
	})
	t.Run("a caller without a word for it", func(t *testing.T) {
		server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			say(w, textEvent)
			callee.fails(r)
		}), callee.options...))
		defer server.Close()
		resp, err := http.Get(server.URL)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Empty(t, resp.Trailer, "it did not ask")
	})
}

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestThirdPartiesDoNotDecide(t *testing.T) {
	for host, own := range map[string]bool{"http://api.example.com": false, "http://engine": true} {
		caller := newParty(t)
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			assert.Equal(t, own, r.Header.Get("Te") == "trailers", host)
			sc := trace.SpanContextFromContext(r.Context())
			state, err := trace.ParseTraceState("genai=k:1,ot=th:0")
			assert.NoError(t, err)
			header := http.Header{}
			propagation.InjectResponse(trace.ContextWithSpanContext(context.Background(),
				sc.WithTraceFlags(trace.FlagsSampled).WithTraceState(state)), propagation.HTTPHeader(header))
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody, Request: r}, nil
		})
		caller.call(base, host, true)
		assert.Equal(t, own, caller.kept("caller") == "callee", host)
	}
}

func TestARequestWithoutAnAnswerSaysNothing(t *testing.T) {
	caller := newParty(t)
	ctx, root := caller.tracer.Start(context.Background(), "caller")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine", http.NoBody)
	require.NoError(t, err)
	_, err = genaihttp.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("no route")
	}), caller.options...).RoundTrip(req)
	require.Error(t, err)
	root.End()
	assert.Empty(t, caller.answers.seen)
}

func TestACalleeIsToldWhatIsCertainByNow(t *testing.T) {
	for host, own := range map[string]bool{"http://engine": true, "http://api.example.com": false} {
		caller := newParty(t)
		ctx, root := caller.tracer.Start(context.Background(), "caller")
		send := func() trace.SpanContext {
			var told trace.SpanContext
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				told = trace.SpanContextFromContext(propagation.New().FromHTTP(r))
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, host, http.NoBody)
			require.NoError(t, err)
			resp, err := genaihttp.NewTransport(base, caller.options...).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return told
		}
		assert.False(t, send().IsSampled(), host)
		caller.fails(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		told := send()
		assert.Equal(t, root.SpanContext().SpanID(), told.SpanID(), host)
		assert.Equal(t, own, told.IsSampled(), host)
		assert.Equal(t, own, propagation.MemberOf(told).Keep, host)
		root.End()
	}
}

// What an upstream's trailer says besides its trace is passed on.
func TestTheTrailerOfAnUpstreamKeepsItsOtherMetrics(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Other")
		_, _ = io.WriteString(w, "hello")
		http.NewResponseController(w).Flush()
		w.Header().Set("X-Other", "1")
		w.Header().Set(http.TrailerPrefix+"Server-Timing", `db;dur=53, trace;desc=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`)
	}))
	defer engine.Close()
	target, err := url.Parse(engine.URL)
	require.NoError(t, err)
	p := newParty(t)
	gateway := httptest.NewServer(genaihttp.NewReverseProxy(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}, p.options...))
	defer gateway.Close()
	req, err := http.NewRequest(http.MethodGet, gateway.URL+"/x", nil)
	require.NoError(t, err)
	req.Header.Set("TE", "trailers")
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	timing := strings.Join(resp.Trailer["Server-Timing"], ", ")
	assert.Contains(t, timing, "db;dur=53")
	assert.NotContains(t, timing, "b7ad6b7169203331")
}
