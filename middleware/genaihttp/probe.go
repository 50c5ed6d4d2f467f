package genaihttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

const (
	// probeInterval is how long an answer of Probe holds.
	probeInterval = 30 * time.Second
	// probeTimeout bounds one run.
	probeTimeout = 5 * time.Second
)

// Check sends one synthetic request through the server's and the client's side of
// a service, over sockets of the loopback interface, and returns nil if its trace
// came through, else an error that names each thing that is missing and what mends
// it. Call it at the start of a service.
//
//	client := &http.Client{Transport: genaihttp.NewTransport(nil)}
//	root := genaihttp.NewHandler(mux)
//	if err := genaihttp.Check(ctx, root, client.Transport); err != nil {
//		log.Print(err)
//	}
//
// root is what the service serves, whatever stands around the [NewHandler] in it;
// nothing inside of that handler runs. transport is what the service calls models
// with; nil is not checked. Checked are:
//
//	handler    the request reaches a NewHandler
//	extract    its propagators read the caller's trace context, or keep it apart
//	           behind WithPublicEndpoint
//	span       a span of the handler's tracer provider records
//	transport  the request that the transport sends carries that trace on
//	export     the provider takes a flush: an exporter that fails is seen where
//	           the SDK tells, which it does of batches
//
// It leaves one span, with genai.trace.source=probe, and no measurement of a
// request's duration. It gives up when ctx ends, or after 5 seconds.
func Check(ctx context.Context, root http.Handler, transport http.RoundTripper) error {
	var errs []error
	for _, f := range runProbe(ctx, root, transport) {
		if f.OK {
			continue
		}
		err := fmt.Errorf("genaihttp: check of %s: %s; %s", f.Check, f.Problem, f.Fix)
		if f.err != nil {
			err = fmt.Errorf("%w: %w", err, f.err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Probe returns a handler for a health endpoint inside of a [NewHandler]:
//
//	mux.Handle("/health", genaihttp.Probe(client.Transport))
//
// A request with ?probe=trace is answered with what [Check] finds about that
// handler and transport, as JSON: 200, or 503 with what is missing and what mends it.
// Any other request is answered with 200. Errors of exporters, which name addresses,
// go to otel.Handle and not into the answer.
//
// It works behind [WithFilter], too. An answer holds for 30 seconds, whoever asks:
// what is asked more often costs nothing and leaves no span.
func Probe(transport http.RoundTripper) http.Handler {
	return &probe{transport: transport, interval: probeInterval}
}

type probe struct {
	transport http.RoundTripper
	interval  time.Duration

	mu       sync.Mutex
	findings []finding // of the last run
	until    time.Time // when they are out of date
}

// An answer is what Probe says.
type answer struct {
	Status string    `json:"status"` // ok or failing
	Checks []finding `json:"checks,omitempty"`
}

// A finding is the result of one check.
type finding struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`

	err error
}

func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := answer{Status: "ok"}
	if r.URL.Query().Get("probe") == "trace" {
		a.Checks = p.check(handlerOf(r.Context()))
	}
	status := http.StatusOK
	for _, f := range a.Checks {
		if !f.OK {
			a.Status, status = "failing", http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	body, err := json.Marshal(a)
	if err != nil {
		otel.Handle(fmt.Errorf("genaihttp: probe: %w", err))
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who left does not read it
}

// check runs at most once an interval. What asks meanwhile waits for the run.
func (p *probe) check(h *handler) []finding {
	if h == nil {
		return []finding{notReached("the probe is not inside of a NewHandler")}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		return p.findings
	}
	// Who asked may leave, but the answer is for others too.
	p.findings = runProbe(context.Background(), h, p.transport)
	p.until = time.Now().Add(p.interval)
	for _, f := range p.findings {
		if f.err != nil {
			otel.Handle(fmt.Errorf("genaihttp: probe of %s: %w", f.Check, f.err))
		}
	}
	return p.findings
}

type handlerKey struct{}

// handlerOf returns the handler around whatever has ctx.
func handlerOf(ctx context.Context) *handler {
	if x := exchangeOf(ctx); x != nil {
		return x.handler
	}
	h, _ := ctx.Value(handlerKey{}).(*handler)
	return h
}

// passBy serves a request that is not traced. Only a probe asks for its handler.
func (h *handler) passBy(w http.ResponseWriter, outer *http.Request) {
	if !strings.Contains(outer.URL.RawQuery, "probe=trace") {
		h.next.ServeHTTP(w, outer)
		return
	}
	r := outer.WithContext(context.WithValue(outer.Context(), handlerKey{}, h))
	defer handBack(outer, r)
	h.next.ServeHTTP(w, r)
}

// probed serves the synthetic request as any other, but with p in the place of the
// handler inside, and without a duration.
func (h *handler) probed(p *probing, w http.ResponseWriter, r *http.Request) {
	inside := *h
	inside.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.arrive(h, w, r) })
	inside.duration = durations{noop.Float64Histogram{}}
	ctx := genaitrace.ContextWith(r.Context(), genaitrace.TraceSource(semconv.GenAITraceSourceProbe))
	inside.serve(w, r.WithContext(ctx))
}
