package guide

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const module = "github.com/genaitrace/otelgenai"

// A checker looks for what the parts of one line name.
type checker struct {
	dir  string // below the root
	env  []string
	errs []error
}

func (c *checker) faultf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// check returns what is wrong with a command, as far as reading tells.
func check(line string) []error {
	c := &checker{}
	for part := range strings.SplitSeq(line, " && ") {
		part, _, _ = strings.Cut(part, " | ") // what follows is of others
		words := split(part)
		for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
			c.env, words = append(c.env, words[0]), words[1:]
		}
		c.command(words)
	}
	return c.errs
}

// split divides a line into words as a shell does, quotes taken away.
func split(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		words = append(words, strings.NewReplacer(`'`, "", `"`, "").Replace(word))
	}
	return words
}

func (c *checker) command(words []string) {
	switch {
	case len(words) < 2:
	case words[0] == "cd" && words[1] != "otelgenai" && words[1] != "hello":
		c.dir = words[1]
		c.exists(".")
	case words[0] == "bash":
		c.script(words[1], words[2:])
	case words[0] == "go" && words[1] == "get":
		if c.exists(strings.TrimPrefix(words[len(words)-1], module) + "/"); !getsOurs(strings.Join(words, " ")) {
			c.faultf("go get of something else")
		}
	case words[0] == "go" && words[1] == "test":
		c.goTest(words[2:])
	case words[0] == "go" && words[1] == "run":
		c.goRun(words[2:])
	}
	if i := slices.Index(words, "--"); i >= 0 && i+1 < len(words) {
		c.command(words[i+1:])
	}
}

func (c *checker) exists(path string) {
	if _, err := os.Stat(filepath.Join(root, c.dir, path)); err != nil {
		c.errs = append(c.errs, err)
	}
}

// script checks a script and, of the gate, its steps.
func (c *checker) script(path string, args []string) {
	text, err := os.ReadFile(filepath.Join(root, c.dir, path))
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	for _, step := range args {
		isStep := strings.Contains(string(text), "\nstep_"+step+"() ")
		isPart := strings.Contains(string(text), "\n"+step+")\n")
		if path == ".ci/run" && !strings.Contains(step, "…") && !isStep && !isPart {
			c.faultf("%s has no step %s", path, step)
		}
	}
}

// goRun checks that a program of this repository exists and has the flags.
func (c *checker) goRun(args []string) {
	if len(args) == 0 || !strings.HasPrefix(args[0], "./") && !strings.HasPrefix(args[0], module) {
		c.faultf("go run of something else")
		return
	}
	if args[0] == "./service" || args[0] == "./client" { // of docs/getting-started.md
		return
	}
	path, _, _ := strings.Cut(args[0], "@")
	p := c.open(filepath.Join(".", strings.TrimPrefix(path, module)), false)
	if p.name != "main" {
		c.faultf("%s is no program", args[0])
	}
	if strings.Contains(path, "cmd/genaitrace") { // reads its flags elsewhere, and is run
		return
	}
	for _, arg := range args[1:] {
		if name, ok := strings.CutPrefix(arg, "-"); ok && p.flags[name] == "" {
			c.faultf("%s has no flag %s", args[0], arg)
		}
	}
}

// known are flags of go test, and whether a value follows.
var known = map[string]bool{
	"run": true, "bench": true, "fuzz": true, "fuzztime": true, "count": true, "benchtime": true, "timeout": true, "tags": true,
	"v": false, "race": false, "benchmem": false, "short": false,
}

// goTest checks that packages exist, that flags of their own are theirs, and that each
// choice of a pattern names a test of the right kind.
func (c *checker) goTest(args []string) {
	if slices.Equal(args, []string{"work"}) {
		return
	}
	c.inWorkspace()
	var p pkg
	for i, arg := range args {
		if i > 0 && known[strings.TrimPrefix(args[i-1], "-")] {
			continue // a value, such as that of -bench .
		}
		if arg == "./..." {
			return // whatever there is, with standard flags
		}
		if arg == "." || strings.HasPrefix(arg, "./") {
			p = c.open(arg, true)
		}
	}
	if p.name == "" {
		c.faultf("no package with tests")
		return
	}
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			continue
		}
		name, value, hasValue := strings.Cut(name, "=")
		takes, isKnown := known[name]
		if !isKnown {
			if p.flags[name] == "" {
				c.faultf("neither go test nor the package has a flag -%s", name)
			}
			takes = p.flags[name] != "Bool"
		}
		if takes && !hasValue && i+1 < len(args) {
			i++
			value = args[i]
		}
		c.pattern(p, name, value)
	}
}

// kinds are the prefixes of what the flags with a pattern choose from.
var kinds = map[string]string{"run": "Test|Example|Fuzz", "bench": "Benchmark", "fuzz": "Fuzz"}

func (c *checker) pattern(p pkg, flag, value string) {
	if kinds[flag] == "" || value == "^$" {
		return
	}
	ofKind := regexp.MustCompile("^(" + kinds[flag] + ")")
	for choice := range strings.SplitSeq(value, "|") {
		top, _, _ := strings.Cut(choice, "/") // what follows is of subtests
		re, err := regexp.Compile(top)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		if !slices.ContainsFunc(p.funcs, func(f string) bool { return ofKind.MatchString(f) && re.MatchString(f) }) {
			c.faultf("-%s %s finds nothing in %s", flag, choice, p.path)
		}
	}
}

// inWorkspace holds that the go command finds the module that it is called in.
func (c *checker) inWorkspace() {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	if _, err := os.Stat(filepath.Join(root, c.dir, "go.mod")); err != nil || slices.Contains(c.env, "GOWORK=off") {
		return
	}
	if c.dir != "" && !strings.Contains(string(work), "\t./"+c.dir+"\n") {
		c.faultf("%s is not in go.work: wants GOWORK=off", c.dir)
	}
}

// pkg is what is read of a package.
type pkg struct {
	path, name string
	funcs      []string          // of its tests
	flags      map[string]string // its flags, by the kind of value
}

// open reads the package in a folder, or its tests.
func (c *checker) open(path string, tests bool) pkg {
	p := pkg{path: path, flags: make(map[string]string)}
	files, err := filepath.Glob(filepath.Join(root, c.dir, path, "*.go"))
	if err != nil || len(files) == 0 {
		c.errs = append(c.errs, errors.Join(err, fmt.Errorf("%s is no package", path)))
		return p
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") != tests {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		p.name = parsed.Name.Name
		ast.Inspect(parsed, p.inspect)
	}
	return p
}

// inspect notes functions, and calls such as flag.Bool("name", …) and flags.IntVar(&v, "name", …).
func (p *pkg) inspect(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv == nil {
			p.funcs = append(p.funcs, n.Name.Name)
		}
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			break
		}
		of, ok := called.X.(*ast.Ident)
		if !ok || of.Name != "flag" && of.Name != "flags" {
			break
		}
		for _, arg := range n.Args[:min(2, len(n.Args))] {
			if name, ok := arg.(*ast.BasicLit); ok && name.Kind == token.STRING {
				p.flags[strings.Trim(name.Value, `"`)] = strings.TrimSuffix(called.Sel.Name, "Var")
				break
			}
		}
	}
	return true
}

// testsOnly tells a command of go test and nothing else, but for the folder it is run in.
func testsOnly(line string) bool {
	return regexp.MustCompile(`^(cd \S+ && )?([A-Z_]+=\S+ )*go test `).MatchString(line)
}

// gateOnly tells a command of the gate.
func gateOnly(line string) bool {
	return regexp.MustCompile(`^([A-Z_]+=\S+ )*bash \.ci/run( |$)`).MatchString(line)
}

// getsOurs tells a command that gets a module of this repository.
func getsOurs(line string) bool {
	return regexp.MustCompile(`^go get (-tool )?` + regexp.QuoteMeta(module) + `(/\S+)?$`).MatchString(line)
}

// TestCheckFindsWhatIsGone holds that a command fails when what it names was renamed.
func TestCheckFindsWhatIsGone(t *testing.T) {
	for line, want := range map[string]string{
		"go test -bench Tok3n ./genaitrace":                                    "-bench Tok3n finds nothing",
		"go test -bench 'Tail/|Gone' ./sampling":                               "-bench Gone finds nothing",
		"go test -run BenchmarkFraming ./middleware/wire":                      "-run BenchmarkFraming finds nothing",
		"go test -run 2000 -v ./examples/gone":                                 "is no package",
		"go test -race -run TestMemory ./sampling -soak 1m -larger":            "has a flag -larger",
		"cd integration && go test ./...":                                      "is not in go.work",
		"cd gone && go test ./...":                                             "no such file",
		"bash .ci/run format gone":                                             "has no step gone",
		"go get " + module + "/adapters/gone":                                  "no such file",
		"bash .ci/gone":                                                        "no such file",
		"go run ./examples/chat -m 4":                                          "has no flag -m",
		"go run ./contract":                                                    "is no program",
		"go run ./cmd/genaitrace serve --contract x -- go run ./examples/gone": "is no package",
	} {
		err := errors.Join(check(line)...)
		assert.ErrorContains(t, err, want, line)
	}
}
