package genaihttp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

const (
	probeRoute  = "/genaihttp.Probe"
	probeHeader = "X-Genai-Probe"
)

// anyFormat reads and writes every format, so that a probe asks nothing of the
// propagators but that they read one of them.
var anyFormat = sync.OnceValue(func() *propagation.Bridge {
	return propagation.New(propagation.WithMeterProvider(noop.NewMeterProvider()), propagation.WithFormats(
		propagation.TraceBin, propagation.B3, propagation.B3Multi, propagation.Jaeger,
		propagation.Contract, propagation.XTraceID, propagation.JaegerTraceID))
})

// A probing is one synthetic request on its way. The context of the server that it
// is sent to has it, which nobody else's request can.
type probing struct {
	nonce     string // lest somebody else's request to that server be taken for it
	caller    trace.SpanContext
	transport http.RoundTripper
	callee    string // URL of the server that the transport is asked for

	mu        sync.Mutex
	handler   *handler // nil: it did not get there
	span      trace.Span
	recording bool        // while the span was not ended
	received  http.Header // by the callee
	sendErr   error
}

type probingKey struct{}

func probingOf(ctx context.Context) *probing {
	p, _ := ctx.Value(probingKey{}).(*probing)
	return p
}

// runProbe sends a synthetic request through root and transport.
func runProbe(ctx context.Context, root http.Handler, transport http.RoundTripper) []finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p := &probing{nonce: randomHex(16), transport: transport, caller: trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(random(16)), SpanID: trace.SpanID(random(8)), TraceFlags: trace.FlagsSampled,
	})}
	status, err := p.run(ctx, root)
	if err != nil {
		return []finding{{Check: "handler", err: err,
			Problem: "no synthetic request could be made over the loopback interface", Fix: "allow the process to listen on 127.0.0.1"}}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handler == nil {
		return []finding{notReached(fmt.Sprintf("a request was answered with %d before it reached one", status))}
	}
	findings := []finding{{Check: "handler", OK: true}, p.extracted(), p.recorded()}
	if transport != nil {
		findings = append(findings, p.carried())
	}
	return append(findings, p.flushed(ctx)...)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

func randomHex(n int) string { return hex.EncodeToString(random(n)) }

// run makes the request and returns the status of its response.
func (p *probing) run(ctx context.Context, root http.Handler) (status int, err error) {
	callee, stop, err := serveLoopback(ctx, http.HandlerFunc(p.arriveBelow))
	if err != nil {
		return 0, err
	}
	defer stop()
	p.callee = callee
	server, stop, err := serveLoopback(context.WithValue(ctx, probingKey{}, p), root)
	if err != nil {
		return 0, err
	}
	defer stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+probeRoute, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set(probeHeader, p.nonce)
	anyFormat().Inject(trace.ContextWithSpanContext(ctx, p.caller), propagation.HTTPHeader(req.Header))
	plain := &http.Transport{DisableKeepAlives: true} // which no instrumentation of globals touches
	resp, err := plain.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode, resp.Body.Close()
}

// serveLoopback serves h on a port of its own until stop is called.
func serveLoopback(ctx context.Context, h http.Handler) (url string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: probeTimeout, ErrorLog: log.New(io.Discard, "", 0), //nolint:forbidigo // so that net/http does not log
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

// arrive stands for what h serves: it looks at the context that h made, and calls
// somebody below with it.
func (p *probing) arrive(h *handler, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(probeHeader) != p.nonce {
		http.NotFound(w, r)
		return
	}
	SetRoute(r.Context(), probeRoute)
	var err error
	if p.transport != nil {
		err = p.send(r.Context())
	}
	span := trace.SpanFromContext(r.Context())
	p.mu.Lock()
	p.handler, p.span, p.recording, p.sendErr = h, span, span.IsRecording(), err
	p.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (p *probing) send(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if end, ok := ctx.Deadline(); ok { // lest the request that this one is a part of ends with it
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.callee+probeRoute, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set(probeHeader, p.nonce)
	resp, err := p.transport.RoundTrip(req)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusNoContent:
		err = fmt.Errorf("answered with %d by somebody else", resp.StatusCode)
	}
	return errors.Join(err, resp.Body.Close())
}

// arriveBelow is the server that the transport calls.
func (p *probing) arriveBelow(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(probeHeader) != p.nonce {
		http.NotFound(w, r)
		return
	}
	p.mu.Lock()
	p.received = r.Header.Clone()
	p.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func notReached(problem string) finding {
	return finding{Check: "handler", Problem: problem,
		Fix: "wrap the service's handler in genaihttp.NewHandler, outside of what may answer before it"}
}

func (p *probing) extracted() finding {
	f := finding{Check: "extract"}
	switch same := p.span.SpanContext().TraceID() == p.caller.TraceID(); {
	case p.handler.config.public && same:
		f.Problem = "the trace of a stranger was joined, although WithPublicEndpoint says not to"
		f.Fix = "remove the instrumentation inside of NewHandler that reads trace context"
	case p.handler.config.public || same:
		f.OK = true
	default:
		f.Problem = "the trace context of the caller was not read from any header"
		f.Fix = "give NewHandler propagators that read what callers send, by WithPropagators; propagation.New() reads W3C trace context"
	}
	return f
}

func (p *probing) recorded() finding {
	f := finding{Check: "span"}
	sc := p.span.SpanContext()
	switch {
	case p.recording:
		f.OK = true
	case !sc.IsValid() || sc.SpanID() == p.caller.SpanID():
		f.Problem = "the tracer provider makes no spans"
		f.Fix = "give NewHandler one of the OpenTelemetry SDK by WithTracerProvider, or set it by otel.SetTracerProvider before NewHandler"
	case p.handler.config.public:
		f.OK = true // a share of the strangers' requests is recorded, and this was not one of it
	default:
		f.Problem = "the sampler left out a request that its caller records"
		f.Fix = "make the provider with a sampler that follows callers, such as sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.1))"
	}
	return f
}

func (p *probing) carried() finding {
	f := finding{Check: "transport", err: p.sendErr}
	if p.received == nil {
		f.Problem = "a request to a server of this process did not arrive"
		f.Fix = "check a transport that can reach 127.0.0.1, or none"
		return f
	}
	f.err = nil
	_, got := anyFormat().Receive(context.Background(), propagation.HTTPHeader(p.received))
	switch {
	case !got.SpanContext.IsValid():
		f.Problem = "requests carry no trace context"
		f.Fix = "make the client with genaihttp.NewTransport around its transport, and propagators that write"
	case got.SpanContext.TraceID() != p.span.SpanContext().TraceID():
		f.Problem = "requests carry the context of another trace"
		f.Fix = "let nothing between NewHandler and NewTransport start a trace, or set trace headers, of its own"
	default:
		f.OK = true
	}
	return f
}

// flushed asks the provider of the span to export it. One that cannot be asked is
// not checked.
func (p *probing) flushed(ctx context.Context) []finding {
	provider, ok := p.span.TracerProvider().(interface {
		ForceFlush(ctx context.Context) error
	})
	if !ok || !p.span.SpanContext().IsSampled() {
		return nil
	}
	f := finding{Check: "export", OK: true}
	if f.err = provider.ForceFlush(ctx); f.err != nil {
		f.OK = false
		f.Problem = "spans could not be exported"
		f.Fix = "see the error that was reported to otel.Handle; check the exporter's endpoint, its credentials and that the collector runs"
	}
	return []finding{f}
}
