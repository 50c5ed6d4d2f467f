package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// official is what the text of the conventions says that was seen last, and
// what is known to differ in the pinned release. A change of the release is a
// change of testdata/official.json.
type official struct {
	Attributes []struct {
		Key, Type, Stability, Replacement string
		Members                           []string
		Content, Deprecated               bool
	}
	Metrics []struct {
		Name, Instrument, Type, Unit, Stability string
		Buckets                                 []float64
		Attributes                              map[string]string
	}
	Events []struct {
		Name, Level string
		Severity    int
		Attributes  map[string]string
	}
	Spans []struct {
		Type, Kind, Refines         string
		Names, Operations, Sampling []string
		Attributes                  map[string]string
	}
	Entities []struct {
		Type                  string
		Identity, Description []string
	}
	Changes struct { // old name → new name
		Spans, Attributes, Metrics, Events map[string]string
	} `json:"at_v0_1_0"`
}

func readOfficial(t *testing.T) official {
	t.Helper()
	text, err := os.ReadFile("testdata/official.json")
	require.NoError(t, err)
	var release official
	require.NoError(t, json.Unmarshal(text, &release))
	return release
}

func TestOfficialAttributesAreThoseOfTheRelease(t *testing.T) {
	release, ours := readOfficial(t), map[string]Attribute{}
	for _, f := range loadRegistry(t) {
		for _, a := range f.Attributes {
			if f.origin() != "house" {
				ours[a.Key] = a
			}
		}
	}
	for _, fact := range release.Attributes {
		require.Contains(t, ours, fact.Key)
		a := ours[fact.Key]
		var members []string
		for _, m := range a.Members {
			members = append(members, m.Value)
		}
		replacement, deprecated := release.Changes.Attributes[fact.Key]
		if fact.Deprecated {
			replacement, deprecated = fact.Replacement, true
		}
		require.Equal(t, []any{fact.Type, fact.Stability, fact.Members, deprecated, replacement},
			[]any{a.Type, a.Stability, members, a.Deprecated != "", a.Replacement}, fact.Key)
		require.True(t, a.Content || !fact.Content, "%s may hold text of a user", fact.Key)
		delete(ours, fact.Key)
	}
	for key := range ours {
		require.True(t, strings.HasPrefix(key, "http."), "%s is not in the release", key)
	}
}

func TestOfficialMetricsAreThoseOfTheRelease(t *testing.T) {
	release, ours := readOfficial(t), map[string]Metric{}
	for _, f := range loadRegistry(t) {
		for _, m := range f.Metrics {
			if f.origin() == "genai" {
				ours[m.Name] = m
			}
		}
	}
	for _, fact := range release.Metrics {
		require.Contains(t, ours, fact.Name)
		m := ours[fact.Name]
		require.Equal(t, []any{fact.Instrument, fact.Type, fact.Unit, fact.Stability},
			[]any{m.Instrument, m.Type, m.Unit, m.Stability}, fact.Name)
		require.Equal(t, release.Changes.Metrics[fact.Name], m.Replacement, fact.Name)
		if !slices.Contains(m.Unseen, "buckets") {
			require.Equal(t, fact.Buckets, m.Buckets, fact.Name)
		}
		if !slices.Contains(m.Unseen, "attributes") {
			require.Equal(t, fact.Attributes, unrefined(m.Attributes, "openai."), fact.Name)
		}
		delete(ours, fact.Name)
	}
	for name, m := range ours {
		require.NotEmpty(t, m.Deprecated, "%s is not in the release", name)
	}
}

func TestOfficialSpansAreThoseOfTheRelease(t *testing.T) {
	release, ours := readOfficial(t), map[string]Span{}
	for _, f := range loadRegistry(t) {
		for _, s := range f.Spans {
			if f.origin() == "genai" {
				ours[s.Type] = s
			}
		}
	}
	all := maps.Clone(ours)
	for _, fact := range release.Spans {
		name := fact.Type
		if renamed, ok := release.Changes.Spans[name]; ok {
			require.Equal(t, renamed, ours[name].Replacement)
			require.NotEmpty(t, ours[name].Deprecated)
			delete(ours, name)
			if name == "gen_ai.invoke_workflow.internal" {
				require.Contains(t, all[renamed].Operations, fact.Operations[0])
				continue // merged into another, rather than renamed
			}
			name = renamed
		}
		require.Contains(t, ours, name)
		s := ours[name]
		require.Equal(t, fact.Attributes, unrefined(s.Attributes, "azure."), name)
		if fact.Refines != "" {
			base := fact.Refines
			if renamed, ok := release.Changes.Spans[base]; ok {
				base = renamed
			}
			require.Equal(t, base, s.Refines, name)
			delete(ours, name)
			continue
		}
		var sampling []string
		for _, r := range s.Attributes {
			if r.Sampling {
				sampling = append(sampling, r.Key)
			}
		}
		require.ElementsMatch(t, fact.Sampling, sampling, name)
		switch name {
		case "gen_ai.retrieval": // another kind in the release, and a name without the data source
			require.Equal(t, []any{"internal", append(slices.Clone(fact.Names), "{gen_ai.operation.name}")}, []any{s.Kind, s.Names})
		case "gen_ai.invoke_agent.internal": // one span for agents and workflows
			require.Equal(t, fact.Kind, s.Kind)
			require.Subset(t, s.Operations, fact.Operations)
		default:
			require.Equal(t, []any{fact.Kind, fact.Names}, []any{s.Kind, s.Names[:len(fact.Names)]}, name)
			require.ElementsMatch(t, fact.Operations, s.Operations, name)
		}
		delete(ours, name)
	}
	for name, s := range ours {
		require.NotEmpty(t, s.Deprecated, "%s is not in the release", name)
	}
}

func TestOfficialEventsAndEntitiesAreThoseOfTheRelease(t *testing.T) {
	release, ours := readOfficial(t), map[string]flatEvent{}
	for _, e := range flatten(loadRegistry(t)).events {
		ours[e.Name] = e
	}
	for _, fact := range release.Events {
		require.Contains(t, ours, fact.Name)
		e := ours[fact.Name]
		require.Equal(t, []any{fact.Level, fact.Severity}, []any{e.Level, e.Severity}, fact.Name)
		require.Equal(t, release.Changes.Events[fact.Name], e.Replacement, fact.Name)
		if !slices.Contains(e.Unseen, "attributes") {
			require.Equal(t, fact.Attributes, unrefined(e.Attributes, "-"), fact.Name)
		}
	}
	require.Len(t, release.Entities, len(fileOf(t, "genaiconv").Entities))
	for i, fact := range release.Entities {
		e := fileOf(t, "genaiconv").Entities[i]
		require.Equal(t, []any{fact.Type, fact.Identity, fact.Description}, []any{e.Type, e.Identity, e.Description})
	}
}

// unrefined maps keys to levels. It leaves out the keys with a prefix: they
// come from refinements for one provider, where the facts give no level.
func unrefined(refs []Ref, prefix string) map[string]string {
	levels := map[string]string{}
	for _, r := range refs {
		if !strings.HasPrefix(r.Key, prefix) {
			levels[r.Key] = r.Level
		}
	}
	return levels
}

func fileOf(t *testing.T, pkg string) *File {
	t.Helper()
	for _, f := range loadRegistry(t) {
		if f.Package == pkg {
			return f
		}
	}
	t.Fatalf("no file of the registry makes package %s", pkg)
	return nil
}
