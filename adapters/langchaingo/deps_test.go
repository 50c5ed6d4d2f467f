package genailangchain_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program that wraps a model alone gets no client, no chain and no store of LangChainGo.
func TestOfLangChainGoLittleIsImported(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	var got []string
	for path := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(path), "github.com/tmc/langchaingo/"); ok {
			got = append(got, rest)
		}
	}
	assert.ElementsMatch(t, []string{"llms", "callbacks", "schema"}, got)
}
