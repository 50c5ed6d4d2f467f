// Package serving is what stands behind the client in the examples: an
// OpenAI-compatible HTTP gateway and the gRPC inference service that it asks, or a
// proxy before any other server.
package serving
