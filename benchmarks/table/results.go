package main

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// A key names a benchmark of a column.
type key struct{ record, chunks, column string }

// results are those of one round.
type results struct {
	by      map[key]*benchfmt.Result
	machine string
}

func newResults() *results { return &results{by: make(map[key]*benchfmt.Result)} }

func (r *results) read(from io.Reader) error {
	reader := benchfmt.NewReader(from, "benchmarks")
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return rec
		case *benchfmt.Result:
			r.by[keyOf(rec.Name)] = rec.Clone()
			r.machine = fmt.Sprintf("%s/%s, %s", rec.GetConfig("goos"), rec.GetConfig("goarch"), rec.GetConfig("cpu"))
		}
	}
	return reader.Err()
}

// keyOf reads what a sub-benchmark is of from its name.
func keyOf(name benchfmt.Name) key {
	var k key
	_, parts := name.Parts()
	for _, p := range parts {
		what, value, _ := strings.Cut(strings.TrimPrefix(string(p), "/"), "=")
		switch what {
		case "record":
			k.record = value
		case "chunks":
			k.chunks = value
		case "column":
			k.column = value
		}
	}
	return k
}

// value is one measurement; false where that was not made.
func (r *results) value(k key, unit string) (float64, bool) {
	result, ok := r.by[k]
	if !ok {
		return 0, false
	}
	return result.Value(unit)
}
