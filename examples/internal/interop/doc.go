// Package interop holds the tests of what stands beside the library in a service:
// otelhttp's handler and transport, a client library that makes spans itself, a
// decoder of the user's own.
package interop
