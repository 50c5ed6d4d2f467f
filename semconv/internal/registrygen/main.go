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
	docs := flag.String("docs", "../docs", "folder of the generated documents")
	flag.Parse()

	if err := run(*registry, *out, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "registrygen:", err)
		os.Exit(1)
	}
}

// run renders the registry and writes the result only when all of it is good.
func run(registry, out, docs string) error {
	files, err := Load(os.DirFS(registry))
	if err != nil {
		return err
	}
	code, err := Render(files)
	if err != nil {
		return err
	}
	documents, err := RenderDocs(files)
	if err != nil {
		return err
	}
	if err := write(out, code); err != nil {
		return err
	}
	return write(docs, documents)
}

func write(folder string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
