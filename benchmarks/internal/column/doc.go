// Package column holds what is compared: clients of a model server that stream a chat,
// each instrumented in another way. A column is a transport, a client on top of it, or
// both; where it is neither it is the bare client that the cost of others is counted
// from.
package column
