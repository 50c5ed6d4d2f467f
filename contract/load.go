package contract

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/genaitrace/otelgenai/contract/spec"
)

//go:embed profiles/*.yaml
var profiles embed.FS

// builtinPrefix marks a built-in profile among the files that a contract extends.
const builtinPrefix = "builtin:"

// maxExtends bounds how many files make one contract.
const maxExtends = 32

// Load reads a contract file and what it extends. A name such as builtin:chat
// stands for a built-in profile. An error names the file, the line and the column.
func Load(name string) (*Contract, error) {
	l := loader{read: readFile}
	if !strings.HasPrefix(name, builtinPrefix) {
		name = filepath.Clean(name)
	}
	data, err := l.source(name)
	if err != nil {
		return nil, err
	}
	return l.contract(name, data)
}

// readFile reads no more of a file than a contract can have, and the byte after it,
// so that a capture that was given by mistake is not read whole.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // whoever calls Load names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, spec.MaxSize+1))
}

// Parse reads a contract from memory. Its name appears in errors. It may extend
// built-in profiles only.
func Parse(name string, data []byte) (*Contract, error) {
	l := loader{read: func(string) ([]byte, error) {
		return nil, errors.New("a contract that is read from memory extends built-in profiles only")
	}}
	return l.contract(name, data)
}

// Builtin returns a built-in profile by its name, such as chat.
func Builtin(name string) (*Contract, error) { return Load(builtinPrefix + name) }

// Builtins returns the names of the built-in profiles.
func Builtins() []string {
	files, _ := fs.Glob(profiles, "profiles/*.yaml") // the pattern is right
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// BuiltinSource returns the file of a built-in profile.
func BuiltinSource(name string) ([]byte, error) {
	data, err := profiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		message := fmt.Sprintf("there is no built-in profile %q among %s", name, strings.Join(Builtins(), ", "))
		if near := spec.Nearest(name, Builtins()); near != "" {
			message += fmt.Sprintf(": did you mean %q?", near)
		}
		return nil, errors.New(message)
	}
	return data, nil
}

// loader reads a file and what it extends into one contract.
type loader struct {
	read  func(file string) ([]byte, error)
	open  []string        // what is being read, for cycles
	done  map[string]bool // what is merged already
	into  spec.Contract
	files []*spec.File // as merged
}

func (l *loader) contract(name string, data []byte) (*Contract, error) {
	l.done = map[string]bool{}
	if err := l.add(name, data); err != nil {
		return nil, err
	}
	return compile(&l.into, l.files)
}

// add merges a file, after what it extends.
func (l *loader) add(name string, data []byte) error {
	file, err := spec.Decode(name, data)
	if err != nil {
		return err
	}
	if err := repeated(&file.Contract); err != nil {
		return err
	}
	l.open = append(l.open, name)
	for i, base := range file.Contract.Extends {
		at := file.At("extends", strconv.Itoa(i))
		if err := l.extend(name, base, at); err != nil {
			return err
		}
	}
	l.open = l.open[:len(l.open)-1]
	l.done[name] = true
	l.files = append(l.files, file)
	merge(&l.into, file)
	return nil
}

// extend merges what a file extends, at the place where it says so.
func (l *loader) extend(name, base string, at spec.Position) error {
	fail := func(format string, args ...any) error {
		return &spec.Error{Position: at, Message: fmt.Sprintf(format, args...)}
	}
	if !strings.HasPrefix(base, builtinPrefix) && !filepath.IsAbs(base) {
		base = filepath.Join(filepath.Dir(name), base)
	}
	switch {
	case slices.Contains(l.open, base):
		return fail("%s extends itself: %s → %s", base, strings.Join(l.open, " → "), base)
	case l.done[base]:
		return nil
	case len(l.done)+len(l.open) >= maxExtends:
		return fail("more than %d files make one contract", maxExtends)
	}
	data, err := l.source(base)
	if err != nil {
		if profile := filepath.Base(base); errors.Is(err, fs.ErrNotExist) && slices.Contains(Builtins(), profile) {
			return fail("%v; did you mean %q?", err, builtinPrefix+profile)
		}
		return fail("%v", err)
	}
	return l.add(base, data)
}

func (l *loader) source(name string) ([]byte, error) {
	if profile, ok := strings.CutPrefix(name, builtinPrefix); ok {
		return BuiltinSource(profile)
	}
	return l.read(name)
}

// repeated finds two rules of one file that are the same: the first would be lost.
func repeated(c *spec.Contract) error {
	seen := map[string]bool{}
	for _, section := range []struct {
		name  string
		rules any
	}{
		{"timing", c.Timing}, {"slo", c.SLO}, {"propagation", c.Propagation}, {"agree", c.Agree},
		{"accept", c.Accept}, {"topology.outlive.allow", c.Topology.Outlive.Allow},
	} {
		list := reflect.ValueOf(section.rules)
		id := identity(list.Type().Elem())
		for i := range list.Len() {
			key := section.name + "\n" + id(list.Index(i))
			if seen[key] {
				at := list.Index(i).FieldByName("Position").Interface().(spec.Position)
				what := strings.ReplaceAll(strings.TrimRight(id(list.Index(i)), "\n"), "\n", ", ")
				return &spec.Error{Position: at, Message: fmt.Sprintf("%s: %s is there twice", section.name, what)}
			}
			seen[key] = true
		}
	}
	return nil
}
