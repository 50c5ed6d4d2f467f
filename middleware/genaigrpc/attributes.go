package genaigrpc

import (
	"net"
	"net/netip"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// codeNames are the status codes as the conventions write them, which is how
// the gRPC specification does.
var codeNames = [...]string{
	codes.OK:                 "OK",
	codes.Canceled:           "CANCELLED",
	codes.Unknown:            "UNKNOWN",
	codes.InvalidArgument:    "INVALID_ARGUMENT",
	codes.DeadlineExceeded:   "DEADLINE_EXCEEDED",
	codes.NotFound:           "NOT_FOUND",
	codes.AlreadyExists:      "ALREADY_EXISTS",
	codes.PermissionDenied:   "PERMISSION_DENIED",
	codes.ResourceExhausted:  "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION",
	codes.Aborted:            "ABORTED",
	codes.OutOfRange:         "OUT_OF_RANGE",
	codes.Unimplemented:      "UNIMPLEMENTED",
	codes.Internal:           "INTERNAL",
	codes.Unavailable:        "UNAVAILABLE",
	codes.DataLoss:           "DATA_LOSS",
	codes.Unauthenticated:    "UNAUTHENTICATED",
}

// codeOf is the status code of an RPC that ended with err. A code outside the
// specification is one that the other side made up, and UNKNOWN.
func codeOf(err error) codes.Code {
	code := status.Code(err)
	if int(code) >= len(codeNames) {
		return codes.Unknown
	}
	return code
}

// isServerError reports whether a server is at fault where it answers with
// code: https://opentelemetry.io/docs/specs/semconv/rpc/grpc/.
func isServerError(code codes.Code) bool {
	switch code {
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented,
		codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	default:
		return false
	}
}

// What stands in place of a code where the RPC had none.
const (
	// unwound: the handler panicked, so that no status was sent.
	unwound = codes.Code(len(codeNames)) + iota
	// hidden: gRPC does not tell which; see [clientRPC.code].
	hidden
	// silent: the RPC goes on, but its idle time-out ended its span.
	silent

	endings = iota + len(codeNames)
)

// endAttributes and failureAttributes are the attributes of an RPC's end by its
// code, made once: without and with error.type.
var endAttributes, failureAttributes = func() (end, failure [endings][]attribute.KeyValue) {
	for code, name := range codeNames {
		failure[code] = []attribute.KeyValue{
			otelsemconv.RPCResponseStatusCode(name),
			otelsemconv.ErrorTypeKey.String(name),
		}
		end[code] = failure[code][:1:1]
	}
	failure[unwound] = []attribute.KeyValue{otelsemconv.ErrorTypeKey.String("panic")}
	failure[hidden] = []attribute.KeyValue{otelsemconv.ErrorTypeOther}
	failure[silent] = []attribute.KeyValue{otelsemconv.ErrorTypeKey.String("timeout")}
	return end, failure
}()

// appendPeer describes the other end of a connection.
func appendPeer(attrs []attribute.KeyValue, addr net.Addr) []attribute.KeyValue {
	switch a := addr.(type) {
	case nil:
		return attrs
	case *net.TCPAddr:
		if ap := a.AddrPort(); ap.IsValid() {
			return appendHostPort(attrs, ap)
		}
		return attrs
	}
	text := addr.String()
	if text == "" {
		return attrs
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return appendHostPort(attrs, ap)
	}
	return append(attrs, otelsemconv.NetworkPeerAddress(bound.String(text, maxName)))
}

func appendHostPort(attrs []attribute.KeyValue, ap netip.AddrPort) []attribute.KeyValue {
	return append(attrs,
		otelsemconv.NetworkPeerAddress(ap.Addr().Unmap().String()),
		otelsemconv.NetworkPeerPort(int(ap.Port())))
}

// A server is where a client sends an RPC, as the client calls it.
type server struct {
	address string
	port    int
}

// serverOf reads the authority of an RPC, a host with or without a port.
func serverOf(authority string) server {
	if host, text, err := net.SplitHostPort(authority); err == nil {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			return server{address: bound.String(host, maxName), port: int(port)}
		}
	}
	return server{address: bound.String(authority, maxName)}
}

func (s server) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	if s.address != "" {
		attrs = append(attrs, otelsemconv.ServerAddress(s.address))
	}
	if s.port > 0 {
		attrs = append(attrs, otelsemconv.ServerPort(s.port))
	}
	return attrs
}
