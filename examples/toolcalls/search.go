package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

type search struct {
	Query string `json:"query"           jsonschema:"text to look for, as it stands in the file"`
	Under string `json:"under,omitempty" jsonschema:"directory to look in; all of the repository where it is left out"`
}

const (
	maxMatches  = 5
	maxFile     = 1 << 20 // bytes; longer ones are not read
	maxSearched = 50_000  // files
	maxLine     = 160     // bytes of a line that are shown
)

var errEnough = errors.New("enough")

// searchFiles finds lines of text files. Whatever the model asks for, nothing outside of
// root is read: root does not follow names or links that lead out of it.
func searchFiles(ctx context.Context, root *os.Root, in search) (string, error) {
	if in.Query == "" {
		return "", &argumentError{errors.New("query is empty")}
	}
	dir := path.Clean(in.Under)
	if in.Under == "" {
		dir = "."
	}
	var found []string
	files := root.FS()
	searched := 0
	err := fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == dir:
			return err
		case err != nil: // what cannot be read is not found
			return nil //nolint:nilerr // the walk goes on
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && name != ".":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		if searched++; searched > maxSearched {
			return errEnough
		}
		found = append(found, linesWith(files, name, in.Query, maxMatches-len(found))...)
		if len(found) >= maxMatches {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return "", err
	case len(found) == 0:
		return "", &toolError{"no file has that text"}
	}
	return strings.Join(found, "\n"), nil
}

// linesWith returns the first lines of a text file that hold query, with their places.
func linesWith(files fs.FS, name, query string, limit int) (found []string) {
	if !isText(name) {
		return nil
	}
	file, err := files.Open(name)
	if err != nil {
		return nil // what cannot be read is not found
	}
	defer func() { _ = file.Close() }() // it is only read
	if info, err := file.Stat(); err != nil || info.Size() > maxFile {
		return nil
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxFile)
	for number := 1; lines.Scan() && len(found) < limit; number++ {
		if bytes.Contains(lines.Bytes(), []byte(query)) {
			line := strings.TrimSpace(lines.Text())
			found = append(found, fmt.Sprintf("%s:%d\t%s", name, number, line[:min(len(line), maxLine)]))
		}
	}
	return found
}

func isText(name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".mod", ".yaml", ".proto", ".txt", ".sh":
		return true
	}
	return false
}
