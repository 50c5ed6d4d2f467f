package genaihttp

import (
	"net/http"
	"net/http/httputil"
)

// NewReverseProxy makes a gateway of the standard library's proxy: it is
// [NewHandler] around a copy of proxy whose Transport is wrapped in
// [NewTransport]. Each request has the SERVER span of the gateway and below it,
// where it is a model call, the CLIENT span of the call. All of proxy's hooks work
// as before.
//
//	http.ListenAndServe(addr, genaihttp.NewReverseProxy(&httputil.ReverseProxy{
//		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
//	}))
//
// A stream is parsed once, as it is read from the model server. The time to first
// token of the CLIENT span is when the token was read, that of the SERVER span when
// it was flushed to the client, which the proxy does at once with a stream.
// Where ModifyResponse puts another Body in the place of the response's, the handler
// parses what is written on its own.
//
// The model of a request whose server cannot be reached is read from the request
// all the same where that costs no time: over HTTP/1, where net/http's server reads
// the rest of a short body before it answers anyway. At most 64 KiB are read.
//
// What is set in proxy later has no effect. It may stand inside a [NewHandler],
// behind a mux and other middleware; that handler's span is then its own.
func NewReverseProxy(proxy *httputil.ReverseProxy, opts ...Option) http.Handler {
	p := *proxy
	if _, wrapped := p.Transport.(*transport); !wrapped {
		p.Transport = NewTransport(p.Transport, opts...)
	}
	modify := p.ModifyResponse
	p.ModifyResponse = func(resp *http.Response) error {
		if modify != nil {
			if err := modify(resp); err != nil {
				return err
			}
		}
		if b, ok := resp.Body.(*body); ok {
			exchangeOf(b.ctx).passOn(b)
		}
		return nil
	}
	return NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchangeOf(r.Context()).proxied(r)
		p.ServeHTTP(w, r)
	}), opts...)
}

// proxied notes that the answer to r will be another server's.
func (x *exchange) proxied(r *http.Request) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drained = r.ProtoMajor == 1 && !r.Close && r.Header.Get("Expect") == "" && r.ContentLength <= serverReads
}

// serverReads is how much of a body net/http's server reads before it answers, in
// bytes; it gives up on a longer one at once.
const serverReads = 256 << 10

// isDrained reports whether the server itself reads the rest of the request's
// body before it answers, so that reading it costs no time.
func (x *exchange) isDrained() bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.drained
}

// passOn lets the handler's span follow the stream that b reads: its bytes are
// those that the handler writes.
func (x *exchange) passOn(b *body) {
	if x == nil || x.writer == nil {
		return
	}
	x.writer.mu.Lock()
	defer x.writer.mu.Unlock()
	x.writer.follower = b.follow(x.writer.call)
}
