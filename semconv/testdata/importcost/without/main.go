// Command without is a program that has the otel API and no vocabulary.
package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
)

func main() {
	_, span := otel.Tracer("importcost").Start(context.Background(), "main")
	counter, err := otel.Meter("importcost").Int64Counter("main")
	counter.Add(context.Background(), 1)
	span.End()
	fmt.Println(attribute.Key("gen_ai.request.model"), err)
}
