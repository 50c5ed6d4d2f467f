// Command dashgen writes the Grafana dashboard and the Prometheus rules of
// docs/dashboards from the names of the registry: a metric or a label that the
// registry does not have fails the run.
//
//	go run ./internal/dashgen
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../docs/dashboards

func main() {
	dir := "docs/dashboards"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir); err != nil {
		fmt.Fprintln(os.Stderr, "dashgen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, content := range files {
		err := os.WriteFile(filepath.Join(dir, name), content, 0o600) //nolint:gosec // the user names the folder
		if err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files by name.
func generate() (map[string][]byte, error) {
	q := &queries{}
	dashboard, err := dashboardJSON(q)
	if err != nil {
		return nil, err
	}
	rules, err := rulesYAML(recordingRules(q), alerts(q))
	if err != nil {
		return nil, err
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	return map[string][]byte{"grafana.json": dashboard, "rules.yaml": rules}, nil
}
