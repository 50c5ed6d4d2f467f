package contract

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	l := loader{read: os.ReadFile}
	return l.contract(name)
}

// Parse reads a contract from memory. Its name appears in errors. It may extend
// built-in profiles only.
func Parse(name string, data []byte) (*Contract, error) {
	l := loader{read: func(file string) ([]byte, error) {
		if file == name {
			return data, nil
		}
		return nil, errors.New("a contract that is read from memory extends built-in profiles only")
	}}
	return l.contract(name)
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
		message := fmt.Sprintf("there is no built-in profile %q", name)
		if near := spec.Nearest(name, Builtins()); near != "" {
			message += fmt.Sprintf(", did you mean %q?", near)
		}
		return nil, fmt.Errorf("%s There are %s", message, strings.Join(Builtins(), ", "))
	}
	return data, nil
}

// loader reads a file and what it extends into one contract.
type loader struct {
	read func(file string) ([]byte, error)
	open []string        // what is being read, for cycles
	done map[string]bool // what is merged already
	into spec.Contract
}

func (l *loader) contract(name string) (*Contract, error) {
	l.done = map[string]bool{}
	if err := l.add(name); err != nil {
		return nil, err
	}
	return compile(&l.into)
}

// add merges a file, after what it extends.
func (l *loader) add(name string) error {
	if l.done[name] {
		return nil
	}
	if len(l.done)+len(l.open) >= maxExtends {
		return fmt.Errorf("%s: more than %d files make one contract", name, maxExtends)
	}
	data, err := l.source(name)
	if err != nil {
		return err
	}
	file, err := spec.Decode(name, data)
	if err != nil {
		return err
	}
	l.open = append(l.open, name)
	for _, base := range file.Contract.Extends {
		if !strings.HasPrefix(base, builtinPrefix) && !filepath.IsAbs(base) {
			base = filepath.Join(filepath.Dir(name), base)
		}
		for _, above := range l.open {
			if above == base {
				return &spec.Error{Position: file.At("extends"), Message: fmt.Sprintf("%s extends itself, through %s", base, strings.Join(l.open, " → "))}
			}
		}
		if err := l.add(base); err != nil {
			var own *spec.Error
			if errors.As(err, &own) {
				return err // it names its file
			}
			return &spec.Error{Position: file.At("extends"), Message: err.Error()}
		}
	}
	l.open = l.open[:len(l.open)-1]
	l.done[name] = true
	merge(&l.into, &file.Contract)
	return nil
}

func (l *loader) source(name string) ([]byte, error) {
	if profile, ok := strings.CutPrefix(name, builtinPrefix); ok {
		return BuiltinSource(profile)
	}
	return l.read(name)
}
