package spec

import (
	"bytes"
	_ "embed" // for schema.json
)

//go:generate go run ./internal/specgen

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of contract files. It lets an
// editor complete keys and mark mistakes; [Decode] is what decides. It is a little
// stricter: a key without a value is not an error to Decode.
func Schema() []byte { return bytes.Clone(schema) }
