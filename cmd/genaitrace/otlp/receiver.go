package otlp

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/capture"
)

// Defaults of [Config].
const (
	DefaultMaxBody = 16 << 20
	DefaultMaxKept = 256 << 20
)

// Config says how a [Receiver] listens and what it keeps. The zero value is a good
// default.
type Config struct {
	// GRPCAddr and HTTPAddr are where to listen, as host:port. Default: a free port of
	// 127.0.0.1. What other machines can reach has to be asked for with Remote; there is
	// neither encryption nor authentication.
	GRPCAddr, HTTPAddr string
	Remote             bool

	// MaxBody bounds one export in bytes after decompression; eight are received at a
	// time. Default DefaultMaxBody.
	MaxBody int
	// MaxKept bounds what is kept, in bytes of the exports after decompression; the
	// memory is two to four times that. What comes beyond it is refused and counted, again
	// where the sender tries again. Of cumulative metrics only the points that are kept
	// count. Default DefaultMaxKept. It does not matter with a Sink.
	MaxKept int

	// Sink gets each export, decoded, instead of the receiver keeping it. It is called by
	// one goroutine at a time, before the sender has its answer. Metrics come as they were
	// exported; a Merger merges them.
	Sink func(*capture.Capture)
}

// Receiver receives OTLP over gRPC and HTTP, in protobuf and JSON, as it is or
// compressed with gzip. Its methods are safe for concurrent use.
//
// What a sender sends again, because it had no answer in time, counts once.
//
// The HTTP port takes gRPC too, so that [Receiver.Env] serves a program whatever
// exporter it was built with.
type Receiver struct {
	config Config
	grpc   *grpc.Server
	http   *http.Server
	listen struct{ grpc, http net.Listener }

	slots   chan struct{} // held while an export is received
	serving sync.WaitGroup
	closing sync.Once
	closed  error

	mu        sync.Mutex
	receiving int       // exports right now
	last      time.Time // end of the last one
	got       capture.Capture
	metrics   Merger
	kept      int            // bytes, see MaxKept
	dropped   map[string]int // by reason

	sink sync.Mutex // held while Sink runs

	unanswered unanswered
}

// maxReceiving is how many exports are received at a time; more of them wait.
const maxReceiving = 8

// Listen starts a receiver. The caller has to close it.
func Listen(config Config) (*Receiver, error) {
	if config.MaxBody <= 0 {
		config.MaxBody = DefaultMaxBody
	}
	if config.MaxKept <= 0 {
		config.MaxKept = DefaultMaxKept
	}
	r := &Receiver{
		config:  config,
		slots:   make(chan struct{}, maxReceiving),
		dropped: make(map[string]int),
	}
	r.unanswered.seed = maphash.MakeSeed()
	var err error
	if r.listen.grpc, err = listen("GRPCAddr", config.GRPCAddr, config.Remote); err != nil {
		return nil, err
	}
	if r.listen.http, err = listen("HTTPAddr", config.HTTPAddr, config.Remote); err != nil {
		_ = r.listen.grpc.Close() // nothing came yet
		return nil, err
	}
	r.grpc = r.grpcServer()
	r.http = r.httpServer()
	r.serving.Go(func() { _ = r.grpc.Serve(r.listen.grpc) }) // it ends when Close stops the server
	r.serving.Go(func() { _ = r.http.Serve(r.listen.http) }) // the same
	return r, nil
}

func listen(field, addr string, remote bool) (net.Listener, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("otlp: %s: %w", field, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !remote && (!ok || !tcp.IP.IsLoopback()) {
		_ = l.Close() // nothing came yet
		return nil, fmt.Errorf("otlp: %s: other machines can reach %s; expected a loopback address such as 127.0.0.1:4317, or Remote", field, addr)
	}
	return l, nil
}

// GRPCAddr returns the address of the gRPC listener, as host:port.
func (r *Receiver) GRPCAddr() string { return r.listen.grpc.Addr().String() }

// HTTPAddr returns the address of the HTTP listener, as host:port.
func (r *Receiver) HTTPAddr() string { return r.listen.http.Addr().String() }

// Capture returns what was kept so far, metrics merged as a [Merger] does.
func (r *Receiver) Capture() *capture.Capture {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &capture.Capture{
		Spans:   slices.Clone(r.got.Spans),
		Logs:    slices.Clone(r.got.Logs),
		Metrics: r.metrics.Metrics(),
	}
	for _, n := range r.dropped {
		c.Dropped += n
	}
	return c
}

// Dropped returns how much was not kept so far, by reason: for example what came
// beyond MaxKept, or spans without a trace id. Capture counts it too.
func (r *Receiver) Dropped() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.dropped)
}

// Last returns when the last export came, and now where one is just being received.
// It is zero as long as none came.
func (r *Receiver) Last() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.receiving > 0 {
		return time.Now()
	}
	return r.last
}

// begin waits for a turn to receive an export, as long as ctx lasts.
func (r *Receiver) begin(ctx context.Context) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.receiving++
	return nil
}

func (r *Receiver) end() {
	r.mu.Lock()
	r.receiving--
	r.last = time.Now()
	r.mu.Unlock()
	<-r.slots
}

// Close stops listening and waits until what is being received has an answer, or ctx
// ends; then it breaks the connections and returns the error of ctx, even where Sink has
// not returned. What was kept stays. Only the first call does something.
func (r *Receiver) Close(ctx context.Context) error {
	r.closing.Do(func() { r.closed = r.close(ctx) })
	return r.closed
}

func (r *Receiver) close(ctx context.Context) error {
	err := r.http.Shutdown(ctx)
	if err != nil {
		_ = r.http.Close() // err says more
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.grpc.GracefulStop()
		r.serving.Wait()
	}()
	select {
	case <-stopped:
		return err
	case <-ctx.Done():
		go r.grpc.Stop() // the graceful stop waits for senders to hang up, and both for a Sink
		return ctx.Err()
	}
}

// quiet keeps the HTTP server from writing to the program's standard error.
var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
