package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	genaimcp "github.com/genaitrace/otelgenai/adapters/mcp"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
)

// unitsCommand makes the program the MCP server that it starts itself.
const unitsCommand = "mcp-units"

var implementation = &mcp.Implementation{Name: "units", Version: "v1"}

// serveUnits is the child process: an MCP server over stdio that converts units of time,
// until its standard input ends. Its spans belong to the traces of who calls it.
func serveUnits(ctx context.Context, stderr io.Writer) error {
	tel, err := telemetry.NewChild(ctx, "otelgenai-units")
	if err != nil {
		return err
	}
	defer tel.Close(stderr)
	server := mcp.NewServer(implementation, nil)
	genaimcp.Attach(server,
		genaimcp.WithTracerProvider(tel.Traces),
		genaimcp.WithMeterProvider(tel.Metrics),
		genaimcp.WithTransport(&mcp.StdioTransport{}),
	)
	mcp.AddTool(server, &mcp.Tool{Name: "convert_time", Description: "Converts a time to another unit."}, convertTime)
	err = server.Run(ctx, &mcp.StdioTransport{})
	if errors.Is(err, context.Canceled) {
		return nil // told to end
	}
	return err
}

type conversion struct {
	Value float64 `json:"value" jsonschema:"how many of the unit in from"`
	From  string  `json:"from"  jsonschema:"ms, s, min or h"`
	To    string  `json:"to"    jsonschema:"ms, s, min or h"`
}

// unitsOfTime are in milliseconds.
var unitsOfTime = map[string]int64{"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}

func convertTime(_ context.Context, _ *mcp.CallToolRequest, in conversion) (*mcp.CallToolResult, any, error) {
	for _, unit := range []string{in.From, in.To} {
		if unitsOfTime[unit] == 0 {
			known := []string{"ms", "s", "min", "h"}
			return nil, nil, fmt.Errorf("there is no unit %q, want one of %v", unit, known)
		}
	}
	value := new(big.Rat).SetFloat64(in.Value)
	value.Mul(value, big.NewRat(unitsOfTime[in.From], unitsOfTime[in.To]))
	text, _ := new(big.Float).SetRat(value).MarshalText() // what is finite can be written
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
}
