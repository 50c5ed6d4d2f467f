// Package clients shows, as examples that run, how the client libraries of OpenAI and
// Anthropic are traced: one line each, the transport of their http.Client.
package clients
