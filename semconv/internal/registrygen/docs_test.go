package main

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// Weaver resolves each ref against the ids of the whole registry, and wants
// each group once.
func TestTheWeaverExportResolves(t *testing.T) {
	groups, ids, refs := map[string]bool{}, map[string]bool{}, map[string]string{}
	for name, text := range renderedDocs(t) {
		if path.Dir(name) != "registry" || path.Base(name) == "manifest.yaml" {
			continue
		}
		var file struct {
			Groups []struct {
				ID         string           `yaml:"id"`
				Type       string           `yaml:"type"`
				Brief      string           `yaml:"brief"`
				Stability  string           `yaml:"stability"`
				Attributes []map[string]any `yaml:"attributes"`
			} `yaml:"groups"`
		}
		require.NoError(t, yaml.Unmarshal(text, &file), name)
		for _, g := range file.Groups {
			require.False(t, groups[g.ID], g.ID)
			groups[g.ID] = true
			require.NotEmpty(t, g.Brief, g.ID)
			require.True(t, g.Stability != "" || g.Type == "attribute_group", g.ID)
			for _, a := range g.Attributes {
				if id, ok := a["id"].(string); ok {
					require.False(t, ids[id], id)
					ids[id] = true
					continue
				}
				refs[a["ref"].(string)] = g.ID
			}
		}
	}
	for ref, group := range refs {
		require.True(t, ids[ref], "%s of %s", ref, group)
	}
}

func TestTheJSONHasEveryEntry(t *testing.T) {
	var table struct{ Attributes, Spans, Metrics, Events, Headers, Settled, Conflicts []json.RawMessage }
	require.NoError(t, json.Unmarshal(renderedDocs(t)["vocabulary.json"], &table))
	all := flatten(loadRegistry(t))

	require.Len(t, table.Attributes, len(all.attributes))
	require.Len(t, table.Spans, len(all.spans))
	require.Len(t, table.Metrics, len(all.metrics))
	require.Len(t, table.Events, len(all.events))
	require.NotEmpty(t, table.Headers)
	require.NotEmpty(t, table.Settled)
	require.NotEmpty(t, table.Conflicts)
}

func TestThePageNamesEveryEntryAndItsTablesAreWhole(t *testing.T) {
	documents := renderedDocs(t)
	page := string(documents["vocabulary.md"])
	all := flatten(loadRegistry(t))
	for _, a := range all.attributes {
		require.True(t, strings.Contains(page, code(a.Key)), a.Key)
	}
	for _, s := range all.spans {
		require.True(t, strings.Contains(page, code(s.Type)), s.Type)
	}
	for _, m := range all.metrics {
		require.True(t, strings.Contains(page, code(m.Name)), m.Name)
	}
	for _, e := range all.events {
		require.True(t, strings.Contains(page, code(e.Name)), e.Name)
	}
	columns := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		require.True(t, columns == 0 || n == columns, line)
		columns = n
	}
	for name := range documents {
		require.True(t, path.Ext(name) != "", name)
	}
}
