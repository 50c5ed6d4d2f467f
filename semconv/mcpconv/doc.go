// Package mcpconv holds the official vocabulary of the Model Context Protocol:
// attributes, metric instruments and the types of its two spans.
//
//	span.SetAttributes(
//		mcpconv.MethodName(mcpconv.MethodNameToolsCall),
//		genaiconv.ToolName("get_weather"),
//		mcpconv.SessionID("s-7f3a"),
//	)
//
//	duration, err := mcpconv.NewClientOperationDuration(meter)
//	duration.Record(ctx, 0.12, mcpconv.MethodNameToolsCall)
//
// The conventions moved these names to the GenAI repository. Of its release
// v0.1.0 no text about MCP was seen: the metrics are as in version 1.41.0 of the
// semantic conventions, attributes and spans as in the newest text before that
// release. All of it is in development, and there is
// no schema URL to claim.
//
// The package is generated from semconv/registry/mcp.yaml.
package mcpconv
