package contract_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/internal/specimen"
	"github.com/genaitrace/otelgenai/semconv"
)

// The older words are warned of, which is what they are recorded for.
func TestTheProfilesAcceptWhatThisModuleRecordsInEveryVocabulary(t *testing.T) {
	for _, words := range []semconv.Vocabulary{semconv.Standard, semconv.Both, semconv.House, semconv.Legacy} {
		for _, name := range contract.Builtins() {
			t.Run(words.String()+" "+name, func(t *testing.T) {
				c, err := contract.Builtin(name)
				require.NoError(t, err)
				for _, f := range c.Check(specimen.RecordIn(t, words, specimen.Profiles[name])).Findings {
					if words != semconv.Legacy || f.Rule != "attribute.deprecated" {
						assert.Fail(t, "the profile does not accept it", f.Text())
					}
				}
			})
		}
	}
}

// An engine need not be behind gRPC. Where it is, it stands below that span.
func TestTheEngineProfileAcceptsAnEngineThatServesHTTP(t *testing.T) {
	c, err := contract.Builtin("engine")
	require.NoError(t, err)
	got := specimen.Record(t, specimen.EngineOverHTTP)
	for _, f := range c.Check(got).Findings {
		assert.Fail(t, "the profile does not accept it", f.Text())
	}
	for _, s := range got.Spans {
		s.Attributes = slices.DeleteFunc(s.Attributes, func(kv attribute.KeyValue) bool {
			return kv == semconv.GenAISpanRole(semconv.GenAISpanRoleGateway)
		})
	}
	assert.Contains(t, rulesOf(c.Check(got)), "span.parent", "below a span that serves nothing")
}

// Who calls a gateway may be recorded with it.
func TestTheGatewayProfileAcceptsARecordedCaller(t *testing.T) {
	c, err := contract.Builtin("gateway")
	require.NoError(t, err)
	for _, f := range c.Check(specimen.Record(t, specimen.CalledGateway)).Findings {
		assert.Fail(t, "the profile does not accept it", f.Text())
	}
}

// Who asks for an event a token gets it, and the contract holds.
func TestTheEngineProfileAcceptsAnEventATokenWhereSomebodyAskedForIt(t *testing.T) {
	c, err := contract.Builtin("engine")
	require.NoError(t, err)
	assert.Empty(t, c.Check(specimen.Record(t, specimen.EveryToken)).Findings)

	got := specimen.Record(t, specimen.EveryToken)
	for _, s := range got.Spans {
		s.Attributes = slices.DeleteFunc(s.Attributes, func(kv attribute.KeyValue) bool { return kv.Key == semconv.GenAITokenEventLimitKey })
	}
	assert.Equal(t, []string{"event.limit"}, rulesOf(c.Check(got)), "nobody asked")
}
