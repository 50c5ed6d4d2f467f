package sampling_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/sampling"
)

// A program without a Tail passes none on, and everything is as without the option.
func TestANilTailDoesNothing(t *testing.T) {
	var faults []error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { faults = append(faults, err) }))
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) })

	var tail *sampling.Tail
	tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	ctx, span := tp.Tracer("").Start(t.Context(), "root")
	assert.True(t, span.SpanContext().IsSampled(), "as the SDK decides")
	assert.True(t, tail.Kept(ctx), "as the SDK's filter says")
	tail.Keep(ctx, "why")
	tail.CalleeResponded(ctx, span.SpanContext())
	assert.False(t, tail.Promise(ctx, true).IsValid())
	span.End()

	server := httptest.NewServer(genaihttp.NewHandler(http.NotFoundHandler(), genaihttp.WithTracerProvider(tp), genaihttp.WithTailSampler(tail)))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: genaihttp.NewTransport(base, genaihttp.WithTracerProvider(tp), genaihttp.WithTailSampler(tail))}
	req, err := http.NewRequestWithContext(trace.ContextWithSpan(t.Context(), span), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Empty(t, resp.Header["Server-Timing"])
	assert.Len(t, genaigrpc.TailServerOptions(tail), 2)

	require.NoError(t, tail.ForceFlush(t.Context()))
	require.NoError(t, tail.Shutdown(t.Context()))
	assert.Empty(t, faults)
}
