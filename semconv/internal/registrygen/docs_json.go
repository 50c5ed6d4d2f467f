package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// vocabularyJSON is the flattened registry, one entry a line, so that a change
// of one is a change of one line.
func vocabularyJSON(files []*File) ([]byte, error) {
	all := flatten(files)
	var attributes, spans, metrics, events, entities, headers, settled, conflicts []any
	for _, a := range all.attributes {
		attributes = append(attributes, jsonAttribute{
			Key: a.Key, Type: a.Type, Unit: a.Unit, Brief: a.Brief, Note: a.Note, Origin: a.origin, Stability: a.Stability,
			Examples: a.Examples, Members: jsonMembers(a.Members), Official: a.Official, AliasOf: a.aliasOf,
			Deprecated: a.Deprecated, Replacement: a.Replacement, Factor: a.factor, Content: a.Content, Sampling: a.Sampling,
		})
	}
	for _, s := range all.spans {
		spans = append(spans, jsonSpan{
			Type: s.Type, Kind: s.Kind, InProcess: s.InProcess, Names: s.Names, Operations: s.Operations, Role: s.Role,
			Entities: s.Entities, Refines: s.Refines, Brief: s.Brief, Stability: s.Stability, Unseen: s.Unseen,
			AliasOf: s.aliasOf, Deprecated: s.Deprecated, Replacement: s.Replacement, Attributes: jsonRefs(s.Attributes),
		})
	}
	for _, m := range all.metrics {
		metrics = append(metrics, jsonMetric{
			Name: m.Name, Instrument: m.Instrument, Type: m.Type, Unit: m.Unit, Brief: m.Brief, Stability: m.Stability,
			Buckets: m.Buckets, Streaming: m.Streaming, Unseen: m.Unseen, AliasOf: m.aliasOf, Factor: m.factor,
			Deprecated: m.Deprecated, Replacement: m.Replacement, Attributes: jsonRefs(m.Attributes),
		})
	}
	for _, e := range all.events {
		events = append(events, jsonEvent{
			Name: e.Name, Log: e.Log, Level: e.Level, Severity: e.Severity, Brief: e.Brief, Stability: e.Stability,
			Unseen: e.Unseen, AliasOf: e.aliasOf, Deprecated: e.Deprecated, Replacement: e.Replacement, Attributes: jsonRefs(e.Attributes),
		})
	}
	for _, f := range files {
		for _, e := range f.Entities {
			entities = append(entities, jsonEntity(e))
		}
		for _, h := range f.Headers {
			headers = append(headers, jsonHeader{h.Name, h.Of, h.Brief})
		}
		for _, s := range f.Settled {
			settled = append(settled, jsonSettled(s))
		}
		for _, c := range f.Conflicts {
			conflicts = append(conflicts, jsonConflict(c))
		}
	}
	var b bytes.Buffer
	b.WriteString("{")
	for i, list := range []struct {
		name    string
		entries []any
	}{
		{"attributes", attributes}, {"spans", spans}, {"metrics", metrics}, {"events", events},
		{"entities", entities}, {"headers", headers}, {"settled", settled}, {"conflicts", conflicts},
	} {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %q: [", list.name)
		for i, entry := range list.entries {
			var line bytes.Buffer
			encoder := json.NewEncoder(&line)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(entry); err != nil {
				return nil, err
			}
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n    ")
			b.Write(bytes.TrimSpace(line.Bytes()))
		}
		b.WriteString("\n  ]")
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

type jsonAttribute struct {
	Key         string       `json:"key"`
	Type        string       `json:"type"`
	Unit        string       `json:"unit,omitempty"`
	Brief       string       `json:"brief"`
	Note        string       `json:"note,omitempty"`
	Origin      string       `json:"origin"`
	Stability   string       `json:"stability,omitempty"`
	Examples    []any        `json:"examples,omitempty"`
	Members     []jsonMember `json:"members,omitempty"`
	Official    string       `json:"official,omitempty"`
	AliasOf     string       `json:"alias_of,omitempty"`
	Deprecated  string       `json:"deprecated,omitempty"`
	Replacement string       `json:"replacement,omitempty"`
	Factor      float64      `json:"factor,omitempty"`
	Content     bool         `json:"content,omitempty"`
	Sampling    bool         `json:"sampling,omitempty"`
}

type jsonMember struct {
	Value      string `json:"value"`
	Brief      string `json:"brief"`
	Deprecated string `json:"deprecated,omitempty"`
	Now        string `json:"now,omitempty"`
}

type jsonRef struct {
	Key      string `json:"key"`
	Level    string `json:"level"`
	If       string `json:"if,omitempty"`
	When     string `json:"when,omitempty"`
	Sampling bool   `json:"sampling,omitempty"`
}

type jsonSpan struct {
	Type        string    `json:"type"`
	Kind        string    `json:"kind,omitempty"`
	InProcess   bool      `json:"in_process,omitempty"`
	Names       []string  `json:"names,omitempty"`
	Operations  []string  `json:"operations,omitempty"`
	Role        string    `json:"role,omitempty"`
	Entities    []string  `json:"entities,omitempty"`
	Refines     string    `json:"refines,omitempty"`
	Brief       string    `json:"brief"`
	Stability   string    `json:"stability,omitempty"`
	Unseen      []string  `json:"unseen,omitempty"`
	AliasOf     string    `json:"alias_of,omitempty"`
	Deprecated  string    `json:"deprecated,omitempty"`
	Replacement string    `json:"replacement,omitempty"`
	Attributes  []jsonRef `json:"attributes,omitempty"`
}

type jsonMetric struct {
	Name        string    `json:"name"`
	Instrument  string    `json:"instrument"`
	Type        string    `json:"type"`
	Unit        string    `json:"unit"`
	Brief       string    `json:"brief"`
	Stability   string    `json:"stability,omitempty"`
	Buckets     []float64 `json:"buckets,omitempty"`
	Streaming   bool      `json:"streaming,omitempty"`
	Unseen      []string  `json:"unseen,omitempty"`
	AliasOf     string    `json:"alias_of,omitempty"`
	Factor      float64   `json:"factor,omitempty"`
	Deprecated  string    `json:"deprecated,omitempty"`
	Replacement string    `json:"replacement,omitempty"`
	Attributes  []jsonRef `json:"attributes,omitempty"`
}

type jsonEvent struct {
	Name        string    `json:"name"`
	Log         bool      `json:"log,omitempty"`
	Level       string    `json:"level,omitempty"`
	Severity    int       `json:"severity,omitempty"`
	Brief       string    `json:"brief"`
	Stability   string    `json:"stability,omitempty"`
	Unseen      []string  `json:"unseen,omitempty"`
	AliasOf     string    `json:"alias_of,omitempty"`
	Deprecated  string    `json:"deprecated,omitempty"`
	Replacement string    `json:"replacement,omitempty"`
	Attributes  []jsonRef `json:"attributes,omitempty"`
}

type jsonEntity struct {
	Type        string   `json:"type"`
	Brief       string   `json:"brief"`
	Stability   string   `json:"stability,omitempty"`
	Identity    []string `json:"identity"`
	Description []string `json:"description,omitempty"`
}

type jsonHeader struct {
	Name  string `json:"name"`
	Of    string `json:"of"`
	Brief string `json:"brief"`
}

type jsonSettled struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	As   string `json:"as"`
}

type jsonConflict struct {
	Fact  string   `json:"fact"`
	Names []string `json:"names"`
	As    string   `json:"as"`
}

func jsonMembers(members []Member) []jsonMember {
	var out []jsonMember
	for _, m := range members {
		out = append(out, jsonMember{m.Value, m.Brief, m.Deprecated, m.Now})
	}
	return out
}

func jsonRefs(refs []Ref) []jsonRef {
	var out []jsonRef
	for _, r := range refs {
		out = append(out, jsonRef(r))
	}
	return out
}
