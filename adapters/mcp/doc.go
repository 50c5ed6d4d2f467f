// Package genaimcp records what passes between clients and servers of the Model
// Context Protocol that are made with github.com/modelcontextprotocol/go-sdk, and
// carries the trace from one to the other:
//
//	client := mcp.NewClient(implementation, nil)
//	genaimcp.Attach(client, genaimcp.WithTransport(transport))
//	session, err := client.Connect(ctx, transport, nil)
//
//	server := mcp.NewServer(implementation, nil)
//	genaimcp.Attach(server)
//	mcp.AddTool(server, tool, handler) // its context goes on with the caller's trace
//
// Each request and notification that one side sends is a CLIENT span, and a SERVER
// span where the other side receives it: "tools/call get_weather", "initialize",
// "notifications/progress". Either side sends and receives, so a server that asks its
// client for a completion has a CLIENT span for that. The spans have the attributes of
// the conventions (package semconv/mcpconv), and the metrics
// mcp.client.operation.duration and mcp.server.operation.duration; with [WithSessions]
// also mcp.client.session.duration and mcp.server.session.duration.
//
// The context travels in the _meta object of the message, as MCP says, over any
// transport: stdio, streamable HTTP, in memory. A context there wins over that of an
// HTTP request around it; the span links to what it did not become a child of.
//
// A tool that answers with isError has failed with error.type tool_error, a JSON-RPC
// error with its code. Who gave up waiting has not failed. A tool that the model asked
// for is [genaitrace.Tracer.StartTool] around the call: its span is the parent of the
// one here.
//
// # What it never does
//
// It records no argument, no result and no text of an error, and changes nothing but
// _meta: parameters that a caller passes in are copied before they get one. Names of
// tools and prompts that a stranger asks for become part of a name or of a metric only
// where the server has answered them, and only 100 of each. It starts no goroutine
// unless [WithSessions] asks for it.
//
// jsonrpc.request.id is absent: the SDK does not tell it to middleware.
package genaimcp
