package genaigrpc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWhatEachStatusCodeMakesOfTheSpans(t *testing.T) {
	const unset, failed = otelcodes.Unset, otelcodes.Error
	for code, want := range map[codes.Code]struct {
		name           string
		server, client otelcodes.Code
	}{
		codes.OK:                 {"OK", unset, unset},
		codes.Canceled:           {"CANCELLED", unset, failed}, // this client cancelled nothing
		codes.Unknown:            {"UNKNOWN", failed, failed},
		codes.InvalidArgument:    {"INVALID_ARGUMENT", unset, failed},
		codes.DeadlineExceeded:   {"DEADLINE_EXCEEDED", failed, failed},
		codes.NotFound:           {"NOT_FOUND", unset, failed},
		codes.AlreadyExists:      {"ALREADY_EXISTS", unset, failed},
		codes.PermissionDenied:   {"PERMISSION_DENIED", unset, failed},
		codes.ResourceExhausted:  {"RESOURCE_EXHAUSTED", unset, failed},
		codes.FailedPrecondition: {"FAILED_PRECONDITION", unset, failed},
		codes.Aborted:            {"ABORTED", unset, failed},
		codes.OutOfRange:         {"OUT_OF_RANGE", unset, failed},
		codes.Unimplemented:      {"UNIMPLEMENTED", failed, failed},
		codes.Internal:           {"INTERNAL", failed, failed},
		codes.Unavailable:        {"UNAVAILABLE", failed, failed},
		codes.DataLoss:           {"DATA_LOSS", failed, failed},
		codes.Unauthenticated:    {"UNAUTHENTICATED", unset, failed},
		codes.Code(4242):         {"UNKNOWN", failed, failed},
	} {
		t.Run(code.String(), func(t *testing.T) {
			o := newTelemetry(t)
			l := traced(t, o, service{complete: func(context.Context, string) (string, error) {
				return "", status.Error(code, "the prompt of a user")
			}})
			_, err := complete(context.Background(), l.conn)
			require.Equal(t, code, status.Code(err))
			l.stop()

			for kind, wantStatus := range map[trace.SpanKind]otelcodes.Code{
				trace.SpanKindServer: want.server, trace.SpanKindClient: want.client,
			} {
				span := o.only("inference.v1.Inference/Complete", kind)
				assert.Equal(t, wantStatus, span.Status().Code, kind)
				assert.Empty(t, span.Status().Description, kind)
				assert.Equal(t, want.name, attr(span, "rpc.response.status_code"), kind)
				if wantStatus == failed {
					assert.Equal(t, want.name, attr(span, "error.type"), kind)
				} else {
					assert.Nil(t, attr(span, "error.type"), kind)
				}
			}
		})
	}
}
