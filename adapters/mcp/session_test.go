package genaimcp

import (
	"runtime"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// attached is what Attach adds to a client.
func attached(client *mcp.Client) *instrumentation {
	i := newInstrumentation(nil)
	client.AddSendingMiddleware(i.send)
	client.AddReceivingMiddleware(i.receive)
	return i
}

func (s *sessions) known() (n int) {
	s.versions.Range(func(any, any) bool { n++; return true })
	return n
}

// What is known of a session goes with it.
func TestSessionsThatAreOverAreForgotten(t *testing.T) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, nil)
	i := attached(client)
	for range 5 {
		here, there := mcp.NewInMemoryTransports()
		served, err := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "v1"}, nil).Connect(t.Context(), there, nil)
		require.NoError(t, err)
		session, err := client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
		require.NoError(t, err)
		require.GreaterOrEqual(t, i.sessions.known(), 1)
		require.NoError(t, session.Close())
		_ = served.Wait()
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return i.sessions.known() == 0
	}, time.Minute, 10*time.Millisecond)
}
