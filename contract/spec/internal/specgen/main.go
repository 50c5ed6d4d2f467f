package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/genaitrace/otelgenai/contract/spec"
)

func main() {
	dir := flag.String("spec", ".", "folder of package spec; schema.json is written there")
	document := flag.String("doc", "../../docs/contract.md", "document that holds the reference")
	flag.Parse()

	if err := run(*dir, *document); err != nil {
		fmt.Fprintln(os.Stderr, "specgen:", err)
		os.Exit(1)
	}
}

func run(dir, document string) error {
	schema, text, err := render(dir, document)
	if err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/schema.json", schema, 0o644); err != nil {
		return err
	}
	return os.WriteFile(document, text, 0o644)
}

// render returns the schema, and the document with its reference renewed.
func render(dir, document string) (schema, text []byte, err error) {
	types, err := Model(reflect.TypeFor[spec.Contract](), dir)
	if err != nil {
		return nil, nil, err
	}
	if schema, err = RenderSchema(types); err != nil {
		return nil, nil, err
	}
	old, err := os.ReadFile(document) //nolint:gosec // whoever generates names the document
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if text, err = PutReference(old, types); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", document, err)
	}
	return schema, text, nil
}
