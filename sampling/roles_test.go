package sampling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// What this test is where it runs as a process of processes_test.go, and whom it calls.
const (
	roleVariable   = "SAMPLING_TEST_ROLE"
	calleeVariable = "SAMPLING_TEST_CALLEE"
)

// A role is a service with a Tail of its own.
type role struct {
	tail     *sampling.Tail
	tp       *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter exporter
	reader   *sdkmetric.ManualReader
	mp       *sdkmetric.MeterProvider

	mu    sync.Mutex
	ended map[string]bool // traces whose local root has ended
}

// play is what a process does: it serves until its input ends.
func play(name string) error {
	r := &role{reader: sdkmetric.NewManualReader(), ended: map[string]bool{}}
	r.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	var err error
	r.tail, err = sampling.NewTail(&r.exporter, sampling.Any(sampling.Errors(), sampling.Slow(slowLimit)), sampling.WithMeterProvider(r.mp))
	if err != nil {
		return err
	}
	r.tp = sdktrace.NewTracerProvider(append(r.tail.ProviderOptions(), sdktrace.WithSpanProcessor(r))...)
	r.tracer = r.tp.Tracer("test")
	mux := http.NewServeMux()
	mux.HandleFunc("/kept", r.kept)
	mux.HandleFunc("/answered", r.answered)
	switch callee := os.Getenv(calleeVariable); name {
	case "engine":
		err = r.engine(mux)
	case "gateway":
		err = r.gateway(mux, strings.Fields(callee)[0])
	default:
		err = r.edge(mux, callee)
	}
	return errors.Join(err, r.tail.Shutdown(context.Background()))
}

// serveHTTP serves until the input ends. before are the addresses to tell besides its own.
func serveHTTP(h http.Handler, before ...string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(listener) }()
	fmt.Println(strings.Join(append(before, listener.Addr().String()), " "))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}

func (r *role) httpOptions() []genaihttp.Option {
	return []genaihttp.Option{genaihttp.WithTracerProvider(r.tp), genaihttp.WithMeterProvider(r.mp), genaihttp.WithTailSampler(r.tail)}
}

func (r *role) grpcOptions() []genaigrpc.Option {
	return []genaigrpc.Option{genaigrpc.WithTracerProvider(r.tp), genaigrpc.WithMeterProvider(r.mp), genaigrpc.WithTailSampler(r.tail)}
}

// edge calls the gateway and answers with the ID of the trace.
func (r *role) edge(mux *http.ServeMux, gateway string) error {
	client := &http.Client{Transport: genaihttp.NewTransport(nil, r.httpOptions()...)}
	mux.Handle("/chat", genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p, err := planOf(req.FormValue("plan"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sleep(req.Context(), p.Edge)
		_, wait := r.tracer.Start(req.Context(), "wait") // it ends and says how long it has taken
		wait.End()
		out, err := http.NewRequestWithContext(req.Context(), http.MethodGet,
			"http://"+gateway+"/chat?plan="+url.QueryEscape(req.FormValue("plan")), http.NoBody)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		resp, err := client.Do(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		_, _ = io.WriteString(w, trace.SpanContextFromContext(req.Context()).TraceID().String())
	}), r.httpOptions()...))
	return serveHTTP(mux)
}

// gateway calls the engine and answers whatever that says.
func (r *role) gateway(mux *http.ServeMux, engine string) error {
	conn, err := grpc.NewClient(engine, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(r.grpcOptions()...)))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	mux.Handle("/chat", genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p, err := planOf(req.FormValue("plan"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if p.Stream {
			_, _ = io.WriteString(w, "beginning, ")
			_ = http.NewResponseController(w).Flush()
		}
		_, queue := r.tracer.Start(req.Context(), "queue")
		sleep(req.Context(), p.Gateway)
		queue.End()
		_ = conn.Invoke(req.Context(), engineMethod, wrapperspb.String(req.FormValue("plan")), new(wrapperspb.StringValue))
		sleep(req.Context(), p.After)
		_, _ = io.WriteString(w, "end")
	}), r.httpOptions()...))
	return serveHTTP(mux)
}

const engineMethod = "/inference.v1.Inference/Complete"

func (r *role) engine(mux *http.ServeMux) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(append(genaigrpc.TailServerOptions(r.tail),
		grpc.StatsHandler(genaigrpc.NewServerHandler(r.grpcOptions()...)))...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "inference.v1.Inference", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Complete", Handler: func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{FullMethod: engineMethod}, func(ctx context.Context, _ any) (any, error) {
				return new(wrapperspb.StringValue), r.infer(ctx, in.GetValue())
			})
		}}},
	}, nil)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	return serveHTTP(mux, listener.Addr().String())
}

func (r *role) infer(ctx context.Context, text string) error {
	p, err := planOf(text)
	if err != nil {
		return err
	}
	_, step := r.tracer.Start(ctx, "decode")
	sleep(ctx, p.Engine)
	if p.Handled {
		step.SetStatus(codes.Error, "")
	}
	step.End()
	if p.Fails {
		return status.Error(grpccodes.Internal, "out of memory")
	}
	return nil
}

func planOf(text string) (p plan, err error) {
	err = json.Unmarshal([]byte(text), &p)
	return p, err
}

// kept answers with the reason by which a trace is kept, once its local root has ended.
func (r *role) kept(w http.ResponseWriter, req *http.Request) {
	id := req.FormValue("trace")
	for !r.hasEnded(id) {
		if req.Context().Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	if err := r.tail.ForceFlush(req.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, span := range r.exporter.all() {
		if span.SpanContext.TraceID().String() == id && (!span.Parent.IsValid() || span.Parent.IsRemote()) {
			_, _ = io.WriteString(w, attr(span, semconv.GenAISamplingReasonKey))
		}
	}
}

// answered answers with genai.sampling.answered_traces by genai.sampling.complete.
func (r *role) answered(w http.ResponseWriter, req *http.Request) {
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(req.Context(), &all); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	counts := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			data, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != "genai.sampling.answered_traces" {
				continue
			}
			for _, p := range data.DataPoints {
				v, _ := p.Attributes.Value("genai.sampling.complete")
				counts[v.String()] += p.Value
			}
		}
	}
	_ = json.NewEncoder(w).Encode(counts)
}

func (r *role) hasEnded(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[id]
}

// A role is a span processor behind the Tail's, so that what it has seen the Tail has.

func (*role) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (*role) Shutdown(context.Context) error                  { return nil }
func (*role) ForceFlush(context.Context) error                { return nil }

func (r *role) OnEnd(span sdktrace.ReadOnlySpan) {
	if parent := span.Parent(); parent.IsValid() && !parent.IsRemote() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[span.SpanContext().TraceID().String()] = true
}
