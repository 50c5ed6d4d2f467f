package genaihttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/sampling"
)

// Two services that keep failed requests. The second one makes a failure good, so that the
// first one sees none; it keeps its part because the answer says so.
func ExampleWithTailSampler() {
	newService := func() (*sampling.Tail, *tracetest.InMemoryExporter, *sdktrace.TracerProvider, []genaihttp.Option) {
		exporter := tracetest.NewInMemoryExporter()
		tail, err := sampling.NewTail(exporter, sampling.Errors())
		if err != nil {
			panic(err)
		}
		tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
		return tail, exporter, tp, []genaihttp.Option{
			genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider()),
			genaihttp.WithTailSampler(tail),
		}
	}
	first, kept, tp, opts := newService()
	second, _, tp2, opts2 := newService()

	server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, try := tp2.Tracer("example").Start(r.Context(), "try")
		try.SetStatus(codes.Error, "a replica is gone, the next one serves")
		try.End()
		_, _ = io.WriteString(w, "fine")
	}), opts2...))
	client := http.Client{Transport: genaihttp.NewTransport(nil, opts...)}

	ctx, span := tp.Tracer("example").Start(context.Background(), "first")
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	resp, err := client.Do(req)
	if err != nil {
		panic(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	span.End()
	server.Close()

	fmt.Println(resp.Status, string(body))
	_ = first.ForceFlush(context.Background())
	for _, s := range kept.GetSpans() {
		fmt.Println(s.Name, s.Status.Code, s.Attributes[0].Key, s.Attributes[0].Value.AsString())
	}
	_ = first.Shutdown(context.Background())
	_ = second.Shutdown(context.Background())
	// Output:
	// 200 OK fine
	// first Unset genai.sampling.reason callee
}
