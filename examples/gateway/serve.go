package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// serve passes requests on until ctx ends, and then lets those under way end: for as
// long as -drain says, after which they are cut off.
func serve(ctx context.Context, cfg *config, gateway, scrape http.Handler, out *log.Logger) error {
	public, err := listen("-listen", cfg.listen)
	if err != nil {
		return err
	}
	defer func() { _ = public.Close() }()
	admin, err := listen("-admin", cfg.admin)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	url := "http://" + public.Addr().String()
	out.Printf("listening on %s → %s", url, cfg.upstream)
	out.Printf("metrics on http://%s/metrics, health on http://%[1]s/healthz", admin.Addr())
	out.Printf("try: OPENAI_BASE_URL=%s and any OpenAI client", cfg.apiBase(url))

	var draining atomic.Bool
	side := newServer(adminHandler(scrape, &draining), out)
	defer side.Close()
	underWay := &requests{next: gateway}
	main := newServer(underWay, out)
	requestCtx, cutOff := context.WithCancel(context.Background())
	defer cutOff()
	main.BaseContext = func(net.Listener) context.Context { return requestCtx }

	failed := make(chan error, 2)
	for _, s := range []struct {
		server   *http.Server
		listener net.Listener
	}{{side, admin}, {main, public}} {
		go func() {
			if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
		draining.Store(true)
		out.Printf("stopping: answers under way have %v, a second signal ends at once", cfg.drain)
	}
	drain(main, underWay, cfg.drain, cutOff, out)
	return err
}

// drain waits for the requests, and so for their spans. Those that take longer than
// limit are cut off, which ends them.
func drain(server *http.Server, underWay *requests, limit time.Duration, cutOff func(), out *log.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// Shutdown closes the listener at once, and knows nothing of connections that
	// became WebSockets.
	if server.Shutdown(ctx) == nil && underWay.wait(ctx) == nil {
		return
	}
	out.Printf("answers cut off: %d", underWay.count())
	cutOff()
	_ = server.Close()
	last, cancelLast := context.WithTimeout(context.Background(), flushTimeout)
	defer cancelLast()
	_ = underWay.wait(last)
}

func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return l, nil
}

// newServer bounds how long a client may take for its headers and lie idle; an answer
// may take as long as it takes.
func newServer(h http.Handler, faults *log.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: faults}
}

// adminHandler is apart from what is passed on, because engines have a /metrics and a
// /health of their own. /healthz speaks of the gateway alone: whether upstream
// answers is for its own health check.
func adminHandler(scrape http.Handler, draining *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// requests counts those under way, hijacked ones too.
type requests struct {
	next http.Handler

	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil where nobody waits
}

func (r *requests) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.n++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.n--; r.n == 0 && r.none != nil {
			close(r.none)
			r.none = nil
		}
	}()
	r.next.ServeHTTP(w, req)
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// wait returns when no request is under way. One waits at a time.
func (r *requests) wait(ctx context.Context) error {
	r.mu.Lock()
	if r.n == 0 {
		r.mu.Unlock()
		return nil
	}
	none := make(chan struct{})
	r.none = none
	r.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
