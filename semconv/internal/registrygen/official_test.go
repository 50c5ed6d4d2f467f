package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// official is what the pinned release of the conventions says. A change of the
// release is a change of testdata/official.json.
type official struct {
	Attributes []struct {
		Key       string
		Type      string
		Stability string
		Members   []string
	}
	Metrics []struct {
		Name       string
		Instrument string
		Type       string
		Unit       string
		Stability  string
		Buckets    []float64
		Attributes []string
	}
}

func TestOfficialNamesAreThoseOfTheRelease(t *testing.T) {
	text, err := os.ReadFile("testdata/official.json")
	require.NoError(t, err)
	var release official
	require.NoError(t, json.Unmarshal(text, &release))
	file := fileOf(t, "genaiconv")

	facts := map[string]any{}
	for _, a := range release.Attributes {
		facts[a.Key] = []any{a.Type, a.Stability, a.Members}
	}
	for _, a := range file.Attributes {
		if a.Deprecated != "" {
			continue // left the text, and stays for those who use it
		}
		var members []string
		for _, m := range a.Members {
			if m.Deprecated == "" {
				members = append(members, m.Value)
			}
		}
		require.Contains(t, facts, a.Key, "%s is not in the release", a.Key)
		require.Equal(t, facts[a.Key], []any{a.Type, a.Stability, members}, a.Key)
	}

	clear(facts)
	attributes := map[string][]string{}
	for _, m := range release.Metrics {
		facts[m.Name] = []any{m.Instrument, m.Type, m.Unit, m.Stability, m.Buckets}
		attributes[m.Name] = m.Attributes
	}
	for _, m := range file.Metrics {
		if m.Deprecated != "" {
			continue
		}
		require.Contains(t, facts, m.Name, "%s is not in the release", m.Name)
		require.Equal(t, facts[m.Name], []any{m.Instrument, m.Type, m.Unit, m.Stability, m.Buckets}, m.Name)
		require.ElementsMatch(t, attributes[m.Name], m.Attributes, m.Name)
	}
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
