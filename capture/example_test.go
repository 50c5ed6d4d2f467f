package capture_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// serve is a small inference service.
func serve(r *capture.Recorder) http.Handler {
	tracer := genaitrace.New(genaitrace.WithTracerProvider(r.TracerProvider()), genaitrace.WithMeterProvider(r.MeterProvider()))
	return genaihttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		ctx, inf := tracer.StartInference(req.Context(), genaitrace.Request{Model: "toy-1", Provider: "toy"})
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 7})
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		decode.End()
		inf.End()
	}), genaihttp.WithTracerProvider(r.TracerProvider()), genaihttp.WithMeterProvider(r.MeterProvider()))
}

// What a service records, as a value that can be asked questions.
func ExampleRecorder() {
	rec := capture.NewRecorder()
	serve(rec).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))

	got, err := rec.Capture(context.Background())
	if err != nil {
		fmt.Println(err)
	}
	for _, tr := range got.Traces() {
		fmt.Print(tr)
		for _, s := range got.Named("inference.decode") {
			fmt.Println(s.Name, "is below", tr.Parent(s).Name)
		}
	}
	fmt.Println(len(got.Metric("gen_ai.server.time_to_first_token")), "metric for the time to first token")
	// Output:
	// POST /v1/chat/completions [server, gateway]
	//   inference.generate [internal, inference]
	//     inference.prefill [internal, prefill]
	//     inference.decode [internal, decode]
	// inference.decode is below inference.generate
	// 1 metric for the time to first token
}

// Text for a golden file: what changes from run to run is shown as its type.
func ExampleCapture_WriteTree() {
	rec := capture.NewRecorder()
	serve(rec).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
	got, err := rec.Capture(context.Background())
	if err != nil {
		fmt.Println(err)
	}
	err = got.WriteTree(os.Stdout, capture.TreeOptions{Attributes: []string{"gen_ai.*", "llm.ttft_ms"}, Events: true})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// POST /v1/chat/completions [server, gateway]
	//   inference.generate [internal, inference]
	//       gen_ai.operation.name: "chat"
	//       gen_ai.provider.name: "toy"
	//       gen_ai.request.model: "toy-1"
	//       gen_ai.usage.input_tokens: 7
	//       gen_ai.usage.output_tokens: 1
	//       llm.ttft_ms: <double>
	//     inference.prefill [internal, prefill]
	//     inference.decode [internal, decode]
	//         * phase.transition
	//         * first_token
	//             llm.ttft_ms: <double>
}

// A span that was never ended knows the line that started it.
func ExampleSpan_ended() {
	rec := capture.NewRecorder()
	rec.TracerProvider().Tracer("app").Start(context.Background(), "forgotten")
	got, err := rec.Capture(context.Background())
	if err != nil {
		fmt.Println(err)
	}
	for _, s := range got.Select(func(s *capture.Span) bool { return !s.Ended() }) {
		fmt.Println(s.Name, "started in", s.Source.Function)
	}
	// Output:
	// forgotten started in github.com/genaitrace/otelgenai/capture_test.ExampleSpan_ended
}
