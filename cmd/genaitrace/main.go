// Command genaitrace checks what a generative AI service records against a
// contract: in CI, around a test run, or on captures in files.
//
//	genaitrace serve --contract observability.yaml -- go test ./...
//	genaitrace check --contract observability.yaml capture.jsonl
package main

import (
	"context"
	"os"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
