package genaigrpc_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// A textAddr is an address of a type that gRPC does not know.
type textAddr string

func (textAddr) Network() string  { return "test" }
func (a textAddr) String() string { return string(a) }

func TestHowThePeerOfAConnectionIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		addr    net.Addr
		address any
		port    any
	}{
		"TCP":            {&net.TCPAddr{IP: net.IPv4(10, 1, 2, 80), Port: 65123}, "10.1.2.80", int64(65123)},
		"TCP, IPv6":      {&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 80}, "2001:db8::1", int64(80)},
		"TCP, no IP":     {&net.TCPAddr{Port: 80}, nil, nil},
		"Unix":           {&net.UnixAddr{Name: "/run/engine.sock", Net: "unix"}, "/run/engine.sock", nil},
		"Unix, unnamed":  {&net.UnixAddr{Net: "unix"}, nil, nil},
		"host and port":  {textAddr("192.0.2.7:443"), "192.0.2.7", int64(443)},
		"not valid text": {textAddr("a\xffb"), "a\uFFFDb", nil},
		"none":           {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			h := genaigrpc.NewServerHandler(o.options()...)
			ctx := h.TagConn(t.Context(), &stats.ConnTagInfo{RemoteAddr: tc.addr})
			ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: generateMethod})
			h.HandleRPC(ctx, &stats.Begin{})
			h.HandleRPC(ctx, &stats.OutTrailer{})
			h.HandleRPC(ctx, &stats.End{EndTime: time.Now()})

			assert.Equal(t, tc.address, attr(o.server(), "network.peer.address"))
			assert.Equal(t, tc.port, attr(o.server(), "network.peer.port"))
		})
	}
}

func TestHowTheServerOfAnRPCIsWritten(t *testing.T) {
	for authority, want := range map[string]struct{ address, port any }{
		"engine:8033":        {"engine", int64(8033)},
		"engine.example.com": {"engine.example.com", nil},
		"[2001:db8::1]:80":   {"2001:db8::1", int64(80)},
		"engine:http":        {"engine:http", nil},
		"":                   {nil, nil},
	} {
		t.Run(authority, func(t *testing.T) {
			o := newTelemetry(t)
			h := genaigrpc.NewClientHandler(o.options()...)
			ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: generateMethod})
			h.HandleRPC(ctx, &stats.Begin{Client: true})
			h.HandleRPC(ctx, &stats.OutHeader{Client: true, Authority: authority})
			h.HandleRPC(ctx, &stats.OutPayload{Client: true})
			h.HandleRPC(ctx, &stats.InTrailer{Client: true})
			h.HandleRPC(ctx, &stats.End{Client: true, EndTime: time.Now()})
			h.HandleRPC(ctx, &stats.End{Client: true, EndTime: time.Now()})

			span := o.only("inference.v1.Inference/Generate", trace.SpanKindClient)
			assert.Equal(t, want.address, attr(span, "server.address"))
			assert.Equal(t, want.port, attr(span, "server.port"))
		})
	}
}
