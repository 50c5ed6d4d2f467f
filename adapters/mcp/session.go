package genaimcp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/semconv/mcpconv"
)

// sessions knows the protocol version that each session agreed on, without keeping the
// sessions, and times those that begin with initialize, if asked to.
type sessions struct {
	versions       sync.Map // weak pointer → version
	client, server metric.Float64Histogram
	timed          bool
}

// version is what the message says itself, as the stateless protocol wants, or else what
// its session agreed on.
func (s *sessions) version(req mcp.Request) string {
	if params := req.GetParams(); !isNil(params) {
		if said, ok := params.GetMeta()[mcp.MetaKeyProtocolVersion].(string); ok {
			return knownVersion(said)
		}
	}
	var key any
	switch session := req.GetSession().(type) {
	case *mcp.ClientSession:
		key = weak.Make(session)
	case *mcp.ServerSession:
		key = weak.Make(session)
	default:
		return ""
	}
	version, _ := s.versions.Load(key)
	text, _ := version.(string)
	return text
}

// knownVersion is a version that exists: anybody could send another one.
func knownVersion(said string) string {
	if slices.Contains(mcp.SupportedProtocolVersions(), said) {
		return said
	}
	return ""
}

// learn takes the version from the answer to initialize, with which a session begins.
func (s *sessions) learn(ctx context.Context, req mcp.Request, result mcp.Result, m *message) {
	answer, ok := result.(*mcp.InitializeResult)
	if !ok || answer == nil || m.method != string(mcpconv.MethodNameInitialize) {
		return
	}
	attrs := slices.Clone(m.transport)
	if m.version = knownVersion(answer.ProtocolVersion); m.version != "" {
		m.span.SetAttributes(mcpconv.ProtocolVersion(m.version))
		attrs = append(attrs, mcpconv.ProtocolVersion(m.version))
	}
	switch session := req.GetSession().(type) {
	case *mcp.ClientSession:
		remember(&s.versions, session, m.version)
		s.time(ctx, s.client, session.Wait, append(attrs, m.i.peer...))
	case *mcp.ServerSession:
		remember(&s.versions, session, m.version)
		s.time(ctx, s.server, session.Wait, attrs)
	}
}

// remember keeps the version for as long as the session is in use.
func remember[S any](versions *sync.Map, session *S, version string) {
	key := weak.Make(session)
	if _, known := versions.Swap(key, version); !known {
		runtime.AddCleanup(session, func(key weak.Pointer[S]) { versions.Delete(key) }, key)
	}
}

// time records how long a session lasts, once it is over.
func (s *sessions) time(ctx context.Context, duration metric.Float64Histogram, wait func() error, attrs []attribute.KeyValue) {
	if !s.timed || !duration.Enabled(ctx) {
		return
	}
	began := time.Now()
	ctx = context.WithoutCancel(ctx)
	go func() {
		if err := wait(); err != nil && !closed(err) {
			attrs = append(attrs, otelsemconv.ErrorTypeKey.String("connection_lost"))
		}
		duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attrs...))
	}()
}

// closed reports whether the error is that of a reader or writer whose own side, or the
// other end of a pipe, was closed: a session that is closed may end with it.
func closed(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed)
}

// sessionID is the identifier of a session, which only some transports have.
func sessionID(session mcp.Session) string {
	switch session := session.(type) {
	case *mcp.ClientSession:
		if session != nil {
			return session.ID()
		}
	case *mcp.ServerSession:
		if session != nil {
			return session.ID()
		}
	}
	return ""
}
