package propagation_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

func TestAResponseTellsItsSpanInTheWayOfItsTransport(t *testing.T) {
	ctx := trace.ContextWithSpanContext(context.Background(), extractW3C(benchTraceparent, "a=1"))
	h := http.Header{}
	propagation.InjectResponse(ctx, propagation.HTTPHeader(h))
	assert.Equal(t, http.Header{"Server-Timing": {"trace;desc=" + benchTraceparent}}, h, "and no tracestate")

	h = http.Header{"Server-Timing": {`cache;desc="hit, warm";dur=1, Trace;desc=old`, "db;dur=2,"}}
	propagation.InjectResponse(ctx, propagation.HTTPHeader(h))
	propagation.InjectResponse(ctx, propagation.HTTPHeader(h))
	assert.Equal(t, http.Header{"Server-Timing": {`cache;desc="hit, warm";dur=1, db;dur=2, trace;desc=` + benchTraceparent}}, h,
		"beside what the handler says, in place of what an upstream said")

	md := metadata.MD{}
	propagation.InjectResponse(ctx, propagation.GRPCMetadata(md))
	assert.Equal(t, metadata.MD{"traceresponse": {benchTraceparent}}, md)

	none := http.Header{}
	propagation.InjectResponse(context.Background(), propagation.HTTPHeader(none))
	assert.Empty(t, none)
	for _, c := range []carrier{propagation.HTTPHeader(h), propagation.GRPCMetadata(md), propagation.HTTPHeader{"Traceresponse": {benchTraceparent}}} {
		assert.Equal(t, mustSpanContext(t, benchTraceparent, ""), propagation.ReadResponse(c).SpanContext)
	}
}

func TestServerTimingIsReadByItsGrammar(t *testing.T) {
	for _, tt := range []struct {
		field string
		want  map[string]time.Duration
		trace bool
	}{
		{`queue;dur=12.5`, map[string]time.Duration{"queue": 12500 * time.Microsecond}, false},
		{` queue ; DUR = "12.5" ; x ,prefill;desc="a;b,c\"d";dur=1`, map[string]time.Duration{"queue": 12500 * time.Microsecond, "prefill": time.Millisecond}, false},
		{`a;dur=1,a;dur=2`, map[string]time.Duration{"a": time.Millisecond}, false},
		{`a;dur=-1,b;dur=NaN,c;dur=1e300,d;dur=+Inf,e;dur=x,f,g;dur=,h;dur=0`, map[string]time.Duration{"h": 0}, false},
		{`bad name;dur=1,;dur=2,"q";dur=3`, nil, false},
		{`TRACE;Desc="` + benchTraceparent + `";dur=5`, nil, true},
		{`trace;desc=00-` + strings.ToUpper(traceHex) + `-` + spanHex + `-01`, nil, false},
		{`trace;desc=x, trace;desc=` + benchTraceparent, nil, true},
		{`trace, ,,;`, nil, false},
		{`a;desc="never closed;dur=1, trace;desc=` + benchTraceparent, nil, false},
		{strings.Repeat(" ", 4097) + "a;dur=1", nil, false},
	} {
		got := propagation.ReadResponse(propagation.HTTPHeader{"Server-Timing": {tt.field}})
		assert.Equal(t, tt.want, got.Durations, tt.field)
		assert.Equal(t, tt.trace, got.SpanContext.IsValid(), tt.field)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("m%d;dur=%d", i, i))
	}
	assert.Len(t, propagation.ReadResponse(propagation.HTTPHeader{"Server-Timing": many}).Durations, 32)
}

func TestTheLoadOfAnEngineIsRead(t *testing.T) {
	got := propagation.ReadResponse(propagation.Map{"endpoint-load-metrics": "TEXT named_metrics.kv=0.5, cpu_utilization=1.5,bad,x=NaN,y=inf,=3"})
	assert.Equal(t, map[string]float64{"kv": 0.5, "cpu_utilization": 1.5}, got.Load)
	assert.Nil(t, propagation.ReadResponse(propagation.Map{"endpoint-load-metrics": `JSON {"a":1}`}).Load)
	assert.Equal(t, propagation.Response{}, propagation.ReadResponse(propagation.Map{}))
	got = propagation.ReadResponse(propagation.Map{"openai-processing-ms": fmt.Sprint(math.MaxFloat64), "x-envoy-upstream-service-time": "1"})
	assert.Equal(t, map[string]time.Duration{"upstream": time.Millisecond}, got.Durations)
}

// As a trailer, because the decision may come after the headers went out.
func TestASpanIsToldInATrailer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.New().FromHTTP(r)
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
		_ = http.NewResponseController(w).Flush()
		trailer := http.Header{}
		propagation.InjectResponse(ctx, propagation.HTTPHeader(trailer))
		for key := range trailer {
			w.Header().Set(http.TrailerPrefix+key, trailer.Get(key))
		}
	}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Traceparent", benchTraceparent)
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	assert.Equal(t, traceHex, propagation.ReadResponse(propagation.HTTPHeader(resp.Trailer)).SpanContext.TraceID().String())
}
