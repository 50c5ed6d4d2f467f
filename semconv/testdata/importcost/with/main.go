// Command with is the program without, with all tables of the vocabulary.
package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

func main() {
	_, span := otel.Tracer("importcost").Start(context.Background(), "main")
	counter, err := otel.Meter("importcost").Int64Counter("main")
	counter.Add(context.Background(), 1)
	span.End()
	_, a := semconv.Lookup("gen_ai.request.model")
	_, s := semconv.LookupSpan("gen_ai.client.inference")
	_, m := semconv.LookupMetric("genai.queue.wait")
	_, e := semconv.LookupEvent("first_token")
	fmt.Println(attribute.Key("gen_ai.request.model"), err, a, s, m, e, semconv.Suggest("gen_ai.request.modle"))
}
