package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	registry := flag.String("registry", "registry", "folder of the YAML files")
	out := flag.String("out", ".", "folder of the generated package semconv")
	flag.Parse()

	if err := run(*registry, *out); err != nil {
		fmt.Fprintln(os.Stderr, "registrygen:", err)
		os.Exit(1)
	}
}

// run renders the registry and writes the result only when all of it is good.
func run(registry, out string) error {
	files, err := Load(os.DirFS(registry))
	if err != nil {
		return err
	}
	rendered, err := Render(files)
	if err != nil {
		return err
	}
	for name, content := range rendered {
		path := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
