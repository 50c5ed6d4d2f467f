package contract_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/internal/specimen"
	"github.com/genaitrace/otelgenai/contract/mutate"
)

// minScore is the share of faults that the built-in profiles have to catch, all
// together.
const minScore = 0.95

// The denominator is every operator on every role, attribute, event and metric
// that a profile names. What survives is printed with -v.
func TestTheBuiltInProfilesCatchFaults(t *testing.T) {
	caught, total := 0, 0
	for _, name := range contract.Builtins() {
		c, err := contract.Builtin(name)
		require.NoError(t, err)
		if len(c.Spec().Spans) == 0 {
			continue // base names no role
		}
		serve, ok := specimen.Profiles[name]
		require.True(t, ok, "no service is known that the profile %s accepts", name)
		result, err := mutate.Run(c, specimen.Record(t, serve))
		if !assert.NoError(t, err, name) {
			continue
		}
		if testing.Verbose() {
			require.NoError(t, result.WriteText(os.Stdout))
		}
		for _, m := range result.Mutants {
			total++
			if m.Caught {
				caught++
			}
		}
	}
	score := float64(caught) / float64(total)
	t.Logf("the built-in profiles catch %d of %d faults: %.1f %%", caught, total, 100*score)
	assert.GreaterOrEqual(t, score, minScore)
}
