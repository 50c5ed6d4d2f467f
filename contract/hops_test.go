package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
)

func TestABrokenHopNamesBothEnds(t *testing.T) {
	c := parse(t, roles("ask", "answer")+"propagation: [{from: ask, to: answer, via: grpc}]")
	front, back := service("front"), service("back")
	r := c.Check(traces(
		span("ask", 0, 40, client, front), // before anything arrived
		span("ask", 100, 200, client, front), span("ask", 150, 250, client, front),
		span("answer", 110, 190, server, back),
		span("answer", 160, 240, server, back, below(3, 1)),
		span("answer", 900, 950, server, back, orphaned(capture.OriginRemote)),
	))
	var messages, found []string
	for _, f := range r.Findings {
		if f.Rule == "propagation.broken" || f.Rule == "propagation.missing" {
			messages = append(messages, f.Message)
			found = append(found, f.Found)
		}
	}
	assert.Equal(t, []string{
		"the hop from ask to answer over grpc broke: answer of back is not part of the calling trace; ask of front called at that time, in the trace 00000000000000000000000000000002",
		"ask of front called over grpc, and no answer span was captured for it",
	}, messages)
	assert.Equal(t, "a trace of its own, without a parent: no context arrived", found[0])
	require.Equal(t, 3, r.Findings[0].Count)
	assert.Contains(t, r.Findings[0].Fix, "not context.Background()", "the advice is that of the transport")

	r = c.Check(traces(span("ask", 150, 250, client, front), span("answer", 160, 240, server, back, below(1, 1))))
	assert.Equal(t, "the trace 00000000000000000000000000000002, while its parent is in 00000000000000000000000000000001", r.Findings[0].Found)
}

func TestAnOptionalHopIsJudgedOnlyWhereBothEndsWereCaptured(t *testing.T) {
	c := parse(t, roles("ask", "answer")+"propagation: [{from: ask, to: answer, optional: true}]")
	for name, got := range map[string]*capture.Capture{
		"the sender alone":                     traces(span("ask", 0, 9, client)),
		"the receiver alone":                   traces(span("answer", 0, 9, server, orphaned(capture.OriginRemote))),
		"the receiver, called by hand":         traces(span("answer", 0, 9, server)),
		"both":                                 traces(span("ask", 0, 9, client, span("answer", 1, 8, server))),
		"a sender long before, and a receiver": traces(span("ask", 0, 9, client), span("answer", 100, 109, server)),
	} {
		assert.Empty(t, c.Check(got).Findings, name)
	}
	assert.Equal(t, []string{"propagation.broken"}, rulesOf(c.Check(traces(span("ask", 0, 9, client), span("answer", 1, 8, server)))))
	assert.Equal(t, []string{"propagation.broken", "topology.trace_changed"}, rulesOf(c.Check(traces(span("ask", 0, 9, client), span("answer", 100, 109, server, below(1, 1))))))
}

func TestACallThatFailedNeedNotArrive(t *testing.T) {
	base := roles("ask", "answer")
	arrives := span("ask", 0, 9, client, span("answer", 1, 8, server))
	for name, ask := range map[string]*node{
		"failed":              span("ask", 0, 9, client, failed),
		"an error type":       span("ask", 0, 9, client, text("error.type", "timeout")),
		"refused over HTTP":   span("ask", 0, 9, client, text("http.request.method", "POST"), whole("http.response.status_code", 503)),
		"refused, older key":  span("ask", 0, 9, client, text("http.method", "POST"), whole("http.status_code", 429)),
		"no answer over HTTP": span("ask", 0, 9, client, text("http.request.method", "POST")),
		"refused over gRPC":   span("ask", 0, 9, client, text("rpc.response.status_code", "UNAVAILABLE")),
		"older key of gRPC":   span("ask", 0, 9, client, whole("rpc.grpc.status_code", 14)),
		"cancelled":           span("ask", 0, 9, client, text("genai.stream.terminal", "client_cancelled")),
	} {
		assert.Empty(t, parse(t, base+"propagation: [{from: ask, to: answer}]").Check(traces(arrives, ask)).Findings, name)
	}
	for name, ask := range map[string]*node{
		"served over HTTP": span("ask", 0, 9, client, text("http.request.method", "POST"), whole("http.response.status_code", 200)),
		"served over gRPC": span("ask", 0, 9, client, text("rpc.response.status_code", "OK"), whole("rpc.grpc.status_code", 0)),
		"complete":         span("ask", 0, 9, client, text("genai.stream.terminal", "done")),
	} {
		assert.Equal(t, []string{"propagation.missing"}, rulesOf(parse(t, base+"propagation: [{from: ask, to: answer}]").Check(traces(arrives, ask))), name)
	}
	when := parse(t, base+"propagation: [{from: ask, to: answer, when: {has: remote}}]")
	assert.Empty(t, when.Check(traces(arrives, span("ask", 0, 9, client))).Findings)
	assert.Equal(t, []string{"propagation.missing"}, rulesOf(when.Check(traces(arrives, span("ask", 0, 9, client, failed, truth("remote", true))))), "the condition alone decides")
}
