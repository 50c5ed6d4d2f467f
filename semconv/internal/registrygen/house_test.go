package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The words that people already write, with the unit of their values and the
// official key that was said to mean the same: each must be found.
func TestEveryWordInUseIsCovered(t *testing.T) {
	text, err := os.ReadFile("testdata/house.json")
	require.NoError(t, err)
	var words []struct{ Kind, Name, Official, Unit string }
	require.NoError(t, json.Unmarshal(text, &words))

	files := loadRegistry(t)
	all, settled, headers := flatten(files), map[string]bool{}, map[string]bool{}
	for _, f := range files {
		for _, s := range f.Settled {
			settled[s.Kind+" "+s.Name] = true
		}
		for _, h := range f.Headers {
			headers[h.Name] = true
		}
	}
	attributes, spans, metrics, events := map[string]flatAttribute{}, map[string]bool{}, map[string]flatMetric{}, map[string]bool{}
	for _, a := range all.attributes {
		attributes[a.Key] = a
	}
	for _, s := range all.spans {
		spans[s.Type] = true
	}
	for _, m := range all.metrics {
		metrics[m.Name] = m
	}
	for _, e := range all.events {
		events[e.Name] = true
	}
	for _, w := range words {
		if settled[w.Kind+" "+w.Name] {
			continue
		}
		unit := ""
		switch w.Kind {
		case "span":
			require.True(t, spans[w.Name], "span %s", w.Name)
		case "event":
			require.True(t, events[w.Name], "event %s", w.Name)
		case "header":
			require.True(t, headers[w.Name], "header %s", w.Name)
		case "metric":
			require.Contains(t, metrics, w.Name)
			unit = metrics[w.Name].Unit
		default: // an attribute, or a field that becomes one
			require.Contains(t, attributes, w.Name, "%s %s", w.Kind, w.Name)
			a := attributes[w.Name]
			unit = a.Unit
			if w.Official != "" && w.Kind == "attribute" {
				require.Contains(t, officials(attributes, a), w.Official, w.Name)
			}
		}
		if w.Unit != "" {
			require.Equal(t, w.Unit, unit, w.Name)
		}
	}
}

// officials are the official keys that are reached from a.
func officials(attributes map[string]flatAttribute, a flatAttribute) []string {
	keys := []string{a.Key}
	for _, next := range []string{a.aliasOf, a.Official} {
		if next != "" {
			keys = append(keys, officials(attributes, attributes[next])...)
		}
	}
	return keys
}

func TestEveryNameOfAConflictIsInTheRegistry(t *testing.T) {
	files := loadRegistry(t)
	known := map[string]bool{}
	all := flatten(files)
	for _, a := range all.attributes {
		known[a.Key] = true
	}
	for _, s := range all.spans {
		known[s.Type] = true
	}
	for _, m := range all.metrics {
		known[m.Name] = true
	}
	for _, e := range all.events {
		known[e.Name] = true
	}
	for _, f := range files {
		for _, h := range f.Headers {
			known[h.Name] = true
		}
		for _, s := range f.Settled {
			known[s.Name] = true
		}
	}
	for _, f := range files {
		for _, c := range f.Conflicts {
			require.NotEmpty(t, c.As, c.Fact)
			for _, name := range c.Names {
				require.True(t, known[name], "%s: %s", c.Fact, name)
			}
		}
	}
}
