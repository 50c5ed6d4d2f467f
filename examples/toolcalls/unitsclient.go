package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	genaimcp "github.com/genaitrace/otelgenai/adapters/mcp"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
)

// A unitsServer is the MCP server in its process, as its client sees it.
type unitsServer struct {
	session *mcp.ClientSession
	process *os.Process
}

// startUnits starts the program once more, as an MCP server over stdio. stop ends it,
// after which its spans are here.
func startUnits(ctx context.Context, tel *telemetry.Telemetry, stderr io.Writer) (server *unitsServer, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	env, err := tel.ReceiveChildren()
	if err != nil {
		return nil, nil, err
	}
	child := exec.Command(self, unitsCommand) //nolint:gosec // this program; it ends with its standard input
	child.Env = append(os.Environ(), env...)
	child.Stderr = stderr

	transport := &mcp.CommandTransport{Command: child}
	client := mcp.NewClient(implementation, nil)
	genaimcp.Attach(client,
		genaimcp.WithTracerProvider(tel.Traces),
		genaimcp.WithMeterProvider(tel.Metrics),
		genaimcp.WithTransport(transport),
	)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("MCP server: %w", err)
	}
	server = &unitsServer{session, child.Process}
	return server, sync.OnceFunc(func() { _ = session.Close() }), nil // one that died has ended too
}

// tools are what the server offers, for the model.
func (s *unitsServer) tools(ctx context.Context) (tools []*tool, err error) {
	for t, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("MCP server: %w", err)
		}
		parameters, err := asMap(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("MCP server: the schema of %s: %w", t.Name, err)
		}
		tools = append(tools, &tool{
			name: t.Name, description: t.Description, kind: "extension", parameters: parameters,
			run: func(ctx context.Context, arguments json.RawMessage) (string, error) {
				return s.call(ctx, t.Name, arguments)
			},
		})
	}
	return tools, nil
}

// call calls a tool of the server. What the tool itself calls an error is a [toolError].
func (s *unitsServer) call(ctx context.Context, name string, arguments json.RawMessage) (string, error) {
	if !json.Valid(arguments) { // it could not be sent
		return "", &argumentError{errors.New("they are no JSON")}
	}
	result, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all.WriteString(t.Text)
		}
	}
	if result.IsError {
		return "", &toolError{all.String()}
	}
	return all.String(), nil
}

// asMap is a JSON schema as a client library takes it.
func asMap(schema any) (m map[string]any, err error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, &m)
}
