package sampling_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The requests of this file pass three processes, each of which decides for itself:
// edge -(HTTP)-> gateway -(gRPC)-> engine. All of them keep what failed or took slowLimit.
const slowLimit = time.Second

// A plan is what happens to a request, in milliseconds and events.
type plan struct {
	Edge    int  `json:"edge,omitempty"`    // wait before the gateway is called
	Gateway int  `json:"gateway,omitempty"` // queue before the engine is called
	Engine  int  `json:"engine,omitempty"`
	After   int  `json:"after,omitempty"`   // in the gateway, after the engine
	Stream  bool `json:"stream,omitempty"`  // the gateway's header goes out before the engine is called
	Handled bool `json:"handled,omitempty"` // a step of the engine fails, and it answers all the same
	Fails   bool `json:"fails,omitempty"`   // the engine's RPC fails, and the gateway answers all the same
}

// over is enough to be slow, half is not, and twice half is.
const over, half = 1200, 600

func TestThreeProcessesKeepTheSameTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, as slow requests do")
	}
	engine := startProcess(t, "engine", "")
	gateway := startProcess(t, "gateway", engine.address)
	edge := startProcess(t, "edge", gateway.address)

	t.Run("requests", func(t *testing.T) {
		for name, c := range map[string]struct {
			plan plan
			// By what each keeps its part: one of several reasons, "" for not at all.
			edge, gateway, engine string
		}{
			"fast and fine":                          {plan{}, "", "", ""},
			"time in the engine":                     {plan{Engine: over}, "callee slow", "callee slow", "slow"},
			"time in the gateway's queue":            {plan{Gateway: over}, "callee slow", "slow", "remote"},
			"time in both":                           {plan{Gateway: half, Engine: half}, "callee slow", "callee slow", "slow"},
			"time before the gateway":                {plan{Edge: over}, "slow", "remote", "remote"},
			"time before and in the engine":          {plan{Edge: half, Engine: half}, "callee slow", "callee slow", "slow"},
			"time before and in the gateway":         {plan{Edge: half, Gateway: half}, "callee slow", "slow", "remote"},
			"time after the engine":                  {plan{After: over}, "callee slow", "slow", ""}, // what no SDK can mend
			"an error that the engine handles":       {plan{Handled: true}, "callee", "callee", "errors"},
			"an error that the gateway swallows":     {plan{Fails: true}, "callee", "callee errors", "errors"},
			"an error after the gateway's header":    {plan{Handled: true, Stream: true}, "callee", "callee", "errors"},
			"time in the engine, streamed":           {plan{Engine: over, Stream: true}, "callee slow", "callee slow", "slow"},
			"fast and fine, streamed":                {plan{Stream: true}, "", "", ""},
			"time after the engine, streamed slowly": {plan{After: over, Stream: true}, "callee slow", "slow", ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				id := edge.request(t, c.plan)
				for _, p := range []struct {
					process *process
					reasons string
				}{{edge, c.edge}, {gateway, c.gateway}, {engine, c.engine}} {
					got := p.process.kept(t, id)
					if p.reasons == "" || got == "" {
						assert.Equal(t, p.reasons, got, p.process.role)
						continue
					}
					assert.Contains(t, strings.Fields(p.reasons), got, p.process.role)
				}
			})
		}
	})
	assert.Equal(t, map[string]int64{"true": 10, "false": 2}, gateway.answered(t), "traces of which the engine's part is there, and is not")
}

// A process is this test in another role.
type process struct {
	role, address string
}

// startProcess runs until the end of the test.
func startProcess(t *testing.T, role, callee string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, calleeVariable+"="+callee)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, in.Close()) // tells it to end
		assert.NoError(t, cmd.Wait(), role)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s did not start", role)
	return &process{role: role, address: strings.TrimSpace(line)}
}

// get asks a process. An engine listens on two ports, the second of which is for this.
func (p *process) get(t *testing.T, path string) string {
	t.Helper()
	addresses := strings.Fields(p.address)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addresses[len(addresses)-1]+path, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", path, body)
	return string(body)
}

// request makes a request and returns the ID of its trace.
func (p *process) request(t *testing.T, what plan) string {
	t.Helper()
	data, err := json.Marshal(what)
	require.NoError(t, err)
	return p.get(t, "/chat?plan="+url.QueryEscape(string(data)))
}

// kept returns the reason by which the process keeps its part of a trace, "" if it does not.
func (p *process) kept(t *testing.T, id string) string {
	t.Helper()
	return p.get(t, "/kept?trace="+id)
}

func (p *process) answered(t *testing.T) map[string]int64 {
	t.Helper()
	var counts map[string]int64
	require.NoError(t, json.Unmarshal([]byte(p.get(t, "/answered")), &counts))
	return counts
}

func sleep(ctx context.Context, ms int) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
	}
}
