package genaimcp_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	genaimcp "github.com/genaitrace/otelgenai/adapters/mcp"
)

// A client calls a tool of a server; both are in this process.
func ExampleAttach() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	ctx := context.Background()

	server := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "v1"}, nil)
	genaimcp.Attach(server, genaimcp.WithTracerProvider(provider))
	mcp.AddTool(server, &mcp.Tool{Name: "now"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "12:00"}}}, nil, nil
	})
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		fmt.Println(err)
		return
	}

	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "v1"}, nil)
	genaimcp.Attach(client, genaimcp.WithTracerProvider(provider))
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "now"}); err != nil {
		fmt.Println(err)
		return
	}

	for _, s := range spans.GetSpans() {
		for _, kv := range s.Attributes {
			if kv.Key == "gen_ai.tool.name" {
				fmt.Println(s.SpanKind, s.Name, "remote parent:", s.Parent.IsRemote())
			}
		}
	}
	// Output:
	// server tools/call now remote parent: true
	// client tools/call now remote parent: false
}
