package view_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/capture/view"
	"github.com/genaitrace/otelgenai/capture/waterfall"
)

func ExampleSpans() {
	ctx := context.Background()
	rec := capture.NewRecorder()
	tracer := rec.TracerProvider().Tracer("example")
	ctx, root := tracer.Start(ctx, "POST /v1/chat/completions")
	_, child := tracer.Start(ctx, "chat toy-1")
	child.End()
	root.End()

	got, err := rec.Capture(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	spans := view.Spans(got.Spans)
	for _, s := range spans {
		fmt.Println(s.Kind, s.Name)
	}

	var page strings.Builder
	err = waterfall.RenderPage(&page, spans, waterfall.PageOptions{Title: "one request"})
	fmt.Println(strings.Contains(page.String(), "<h1>one request</h1>"), err)
	_ = waterfall.Render(os.Stderr, spans, waterfall.Options{})
	// Output:
	// INTERNAL POST /v1/chat/completions
	// INTERNAL chat toy-1
	// true <nil>
}
