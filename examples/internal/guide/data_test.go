package guide

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/sampling"
)

// TestEveryPieceOfDataIsRead holds the blocks of YAML and JSON against what reads them: a
// contract or a part of one, Prometheus rules, a workflow, a Collector, a policy. What is no data must
// say so, by the language of its block, and hide no command.
func TestEveryPieceOfDataIsRead(t *testing.T) {
	readers := map[string]int{"contract": 0, "rules": 0, "workflow": 0, "collector": 0, "policy": 0}
	for _, p := range pieces(t) {
		switch p.language {
		case "go", "sh", "bash", "shell", "console":
		case "yaml":
			kind, err := readYAML(p.text)
			readers[kind]++
			assert.NoError(t, err, "%s shows a %s that is none:\n%s", p.page, kind, p.text)
		case "json":
			readers["policy"]++
			var policy sampling.Policy
			err := json.Unmarshal([]byte(p.text), &policy)
			if err == nil {
				err = policy.Validate()
			}
			assert.NoError(t, err, "%s shows a policy that is none:\n%s", p.page, p.text)
		case "", "text":
			for line := range strings.Lines(p.text) {
				assert.NotRegexp(t, programs, line, "%s shows a command: call the block sh", p.page)
			}
		default:
			assert.Fail(t, "nobody checks it", "%s has a block of %s", p.page, p.language)
		}
	}
	for kind, n := range readers {
		assert.Positive(t, n, kind)
	}
}

// TestKeysOfTheContractInSentences holds what a page shows of a contract in the middle of a
// sentence.
func TestKeysOfTheContractInSentences(t *testing.T) {
	found := regexp.MustCompile("(?s)`((?:severity|accept|limits): [^`]+)`").FindAllStringSubmatch(withoutBlocks(read(t, "docs/contract.md")), -1)
	require.NotEmpty(t, found)
	for _, f := range found {
		_, err := readYAML(f[1])
		assert.NoError(t, err, f[1])
	}
}

// head makes a contract of a part of one; the parts of the pages speak of these profiles.
const head = "contract: genai.observability/v1\nname: part\nextends: [builtin:gateway, builtin:engine, builtin:agent]\n"

// readYAML reads text as what its first key says that it is.
func readYAML(text string) (kind string, err error) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), ":")
	switch {
	case first == "contract":
		_, err = contract.Parse("page.yaml", []byte(text))
		return "contract", err
	case first == "groups":
		var rules struct {
			Groups []struct {
				Name  string
				Rules []struct {
					Record, Alert, Expr, For string
					Labels, Annotations      map[string]string
				}
			}
		}
		return "rules", yaml.NewDecoder(bytes.NewReader([]byte(text)), yaml.Strict()).Decode(&rules)
	case strings.Contains(text, "\n  pipelines:\n"):
		var collector map[string]any // which integration gives to one
		return "collector", yaml.Unmarshal([]byte(text), &collector)
	case strings.Contains(text, "\njobs:\n"):
		var workflow map[string]any
		return "workflow", yaml.Unmarshal([]byte(text), &workflow)
	default:
		_, err = contract.Parse("part.yaml", []byte(head+text))
		return "contract", err
	}
}
