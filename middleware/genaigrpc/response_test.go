package genaigrpc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/propagation"
)

func TestTheTrailerTellsWhichSpanServedAnRPC(t *testing.T) {
	for name, fail := range map[string]error{"well": nil, "failed": status.Error(codes.Unavailable, "draining")} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			s := service{
				complete: func(context.Context, string) (string, error) { return "", fail },
				generate: func(string, grpc.ServerStream) error { return fail },
			}
			l := connectLoopback(t, s, append(genaigrpc.TraceResponseServerOptions(),
				grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))), nil)

			var header, trailer metadata.MD
			err := l.conn.Invoke(t.Context(), completeMethod, wrapperspb.String("hi"), new(wrapperspb.StringValue),
				grpc.Header(&header), grpc.Trailer(&trailer))
			require.Equal(t, status.Code(fail), status.Code(err))
			stream, err := generate(t.Context(), t, l.conn)
			require.NoError(t, err)
			_, _ = read(stream)
			l.stop()

			told := map[string]bool{}
			for _, md := range []metadata.MD{trailer, stream.Trailer()} {
				sc := propagation.ReadResponse(propagation.GRPCMetadata(md)).SpanContext
				assert.True(t, sc.IsSampled())
				told[sc.SpanID().String()] = true
			}
			for _, span := range o.ended() {
				assert.True(t, told[span.SpanContext().SpanID().String()], span.Name())
			}
			assert.Len(t, told, 2)
			assert.NotContains(t, header, "traceresponse")
		})
	}
}

func TestTheTrailerTellsNothingWhereThereIsNoSpan(t *testing.T) {
	l := connect(t, service{complete: func(context.Context, string) (string, error) { return "", nil }},
		genaigrpc.TraceResponseServerOptions(), nil)
	var trailer metadata.MD
	require.NoError(t, l.conn.Invoke(t.Context(), completeMethod, wrapperspb.String("hi"), new(wrapperspb.StringValue), grpc.Trailer(&trailer)))
	assert.NotContains(t, trailer, "traceresponse")
}
