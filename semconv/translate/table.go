package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// table is a vocabulary ready for use.
type table struct {
	file

	theirs  map[string][]*row // by their key
	ours    map[string][]*row // by our key, the written one first, without those that are only read
	define  map[string]*row   // keys of Standard with type and unit
	metric  map[string][]*metricRow
	written map[string]*metricRow // by our metric
}

func parse(data []byte) (*table, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("translate: the vocabulary has %d bytes, more than %d", len(data), maxFile)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	t := &table{}
	if err := dec.Decode(&t.file); err != nil {
		return nil, fmt.Errorf("translate: the vocabulary is not valid (line %d): %w", line(data, dec, err), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("translate: the vocabulary goes on after its end (line %d)", line(data, dec, err))
	}
	if err := t.build(); err != nil {
		return nil, fmt.Errorf("translate: vocabulary %q: %w", t.Name, err)
	}
	return t, nil
}

// line tells where in the file an error lies.
func line(data []byte, dec *json.Decoder, err error) int {
	offset := dec.InputOffset()
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.As(err, &typ) {
		offset = typ.Offset
	}
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

const standard = "standard"

// build checks the rows and indexes them.
func (t *table) build() error {
	if t.Name == "" || strings.ContainsAny(t.Name, " {}*") {
		return errors.New("name must be a word")
	}
	base := &table{}
	var err error
	switch {
	case t.Name == standard:
		if t.Extends != "" {
			return errors.New("the standard vocabulary extends nothing")
		}
		t.define = make(map[string]*row)
	case t.Extends != "":
		if base, err = load(t.Extends); err != nil {
			return err
		}
		t.define = base.define
	default:
		var std *table
		if std, err = load(standard); err != nil {
			return err
		}
		t.define = std.define
	}
	for _, n := range t.Namespaces {
		if len(n) < 2 || !strings.HasSuffix(n, ".") && !strings.HasSuffix(n, ":") {
			return fmt.Errorf("namespace %q must end with a dot or a colon", n)
		}
	}
	return errors.Join(t.buildAttributes(base), t.buildMessages(base), t.buildSpans(base), t.buildEvents(base), t.buildMetrics(base))
}

func (t *table) buildAttributes(base *table) error {
	t.theirs, t.ours = make(map[string][]*row), make(map[string][]*row)
	for i := range t.Attributes {
		r := &t.Attributes[i]
		if err := t.checkRow(r); err != nil {
			return fmt.Errorf("attributes[%d] (%s): %w", i, r.Theirs, err)
		}
		t.theirs[r.Theirs] = append(t.theirs[r.Theirs], r)
	}
	for i := range base.Attributes {
		if r := &base.Attributes[i]; t.theirs[r.Theirs] == nil {
			t.Attributes = append(t.Attributes, *r)
		}
	}
	// Appending may have moved the rows.
	clear(t.theirs)
	for i := range t.Attributes {
		r := &t.Attributes[i]
		t.theirs[r.Theirs] = append(t.theirs[r.Theirs], r)
		if r.Ours != "" && !r.ReadOnly {
			t.ours[r.Ours] = append(t.ours[r.Ours], r)
		}
	}
	return nil
}

func (t *table) checkRow(r *row) error {
	if r.Theirs == "" {
		r.Theirs = r.Ours
	}
	switch {
	case r.Theirs == "":
		return errors.New("theirs and ours are both absent")
	case strings.HasSuffix(r.Theirs, ".*"):
		if r.Ours != "" || r.When != nil || !t.owns(r.Theirs) {
			return errors.New("a row for all keys below a prefix has neither ours nor when, and lies in a namespace")
		}
		return nil
	}
	for _, before := range t.theirs[r.Theirs] {
		if before.When == nil {
			return errors.New("an earlier row without a condition always applies")
		}
	}
	if err := r.When.check(); err != nil {
		return err
	}
	if r.Ours == "" {
		return nil
	}
	if t.Name == standard {
		if r.Ours != r.Theirs || r.Type == "" {
			return errors.New("a standard key is itself and has a type")
		}
		t.define[r.Ours] = r
	}
	def := t.define[r.Ours]
	if def == nil {
		return fmt.Errorf("ours %q is not a key of the standard vocabulary", r.Ours)
	}
	if r.Type == "" {
		r.Type = def.Type
	}
	if !slices.Contains([]string{"string", "boolean", "int", "double", "string[]", "int[]", "any"}, r.Type) {
		return fmt.Errorf("type %q is unknown", r.Type)
	}
	if r.Unit == "" {
		r.Unit = def.Unit
	}
	if _, ok := ratio(r.Unit, def.Unit); !ok {
		return fmt.Errorf("unit %q cannot be converted to %q, the unit of %s", r.Unit, def.Unit, r.Ours)
	}
	text := []string{"string", "string[]"}
	if r.Values != nil && (!slices.Contains(text, r.Type) || !slices.Contains(text, def.Type)) {
		return errors.New("values are for strings")
	}
	return r.Values.invert()
}

func (c condition) check() error {
	if c != nil && len(c) == 0 {
		return errors.New("when has no attribute")
	}
	for key, values := range c {
		if key == "" || len(values) == 0 {
			return fmt.Errorf("when %q has no values", key)
		}
	}
	return nil
}

// invert completes Write with the inverse of Read.
func (v *values) invert() error {
	if v == nil {
		return nil
	}
	inverse := make(map[string]string, len(v.Read)+len(v.Write))
	for theirs, ours := range v.Read {
		if _, given := v.Write[ours]; given {
			continue
		}
		if other, twice := inverse[ours]; twice {
			return fmt.Errorf("values %q and %q both mean %q: write must say which one is written", min(theirs, other), max(theirs, other), ours)
		}
		inverse[ours] = theirs
	}
	for ours, theirs := range v.Write {
		inverse[ours] = theirs
	}
	v.Write = inverse
	return nil
}

func (t *table) buildSpans(base *table) error {
	seen := make(map[string]bool)
	for i := range t.Spans {
		r := &t.Spans[i]
		if r.Theirs == "" {
			r.Theirs = r.Ours
		}
		if r.Ours == "" || seen[r.Theirs] {
			return fmt.Errorf("spans[%d] (%s): ours is absent, or theirs has a row already", i, r.Theirs)
		}
		for _, name := range []string{r.Theirs, r.Ours} {
			for _, part := range parseName(name) {
				if part.key && t.define[part.text] == nil {
					return fmt.Errorf("spans[%d] (%s): %q is not a key of the standard vocabulary", i, r.Theirs, part.text)
				}
			}
		}
		seen[r.Theirs] = true
	}
	for _, r := range base.Spans {
		if !seen[r.Theirs] {
			t.Spans = append(t.Spans, r)
		}
	}
	return nil
}

// messageFields says of each field of a flattened message whether it repeats.
var messageFields = map[string]bool{
	"role": false, "name": false, "content": false, "finish_reason": false, "response.id": false,
	"part.type": true, "part.text": true, "call.id": true, "call.name": true, "call.arguments": true,
}

func (t *table) buildMessages(base *table) error {
	seen := make(map[string]bool)
	for i := range t.Messages {
		r := &t.Messages[i]
		if err := t.checkMessages(r); err != nil {
			return fmt.Errorf("messages[%d] (%s): %w", i, r.Theirs, err)
		}
		seen[r.Theirs] = true
	}
	for _, r := range base.Messages {
		if !seen[r.Theirs] {
			t.Messages = append(t.Messages, r)
		}
	}
	return nil
}

func (t *table) checkMessages(r *messageRow) error {
	r.prefix, r.names = r.Theirs+".", make(map[string]string)
	if def := t.define[r.Ours]; def == nil || def.Type != "any" {
		return fmt.Errorf("ours %q is not a structured key of the standard vocabulary", r.Ours)
	}
	if r.Theirs == "" || !t.owns(r.prefix) {
		return errors.New("theirs is not the beginning of keys in a namespace")
	}
	if r.Fields["role"] == "" {
		return errors.New("fields has no role")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		end := r.Fields[name]
		stars := 0
		for p := range strings.SplitSeq(end, ".") {
			if _, number := index(p); number || p == "" {
				return fmt.Errorf("%s %q has a part that is a number or empty", name, end)
			}
			if p == "*" {
				stars++
			}
		}
		repeats, known := messageFields[name]
		switch other, twice := r.names[end]; {
		case !known:
			return fmt.Errorf("there is no field %q", name)
		case twice:
			return fmt.Errorf("%s and %s are both %q", other, name, end)
		case repeats && stars != 1, !repeats && stars != 0:
			return fmt.Errorf("%s %q must have a part * for the number if it repeats, and else none", name, end)
		}
		r.names[end] = name
	}
	return nil
}

func (t *table) buildEvents(base *table) error {
	own := make(map[string]bool)
	for i := range t.Events {
		r := &t.Events[i]
		if r.Theirs == "" {
			r.Theirs = r.Ours
		}
		if r.Theirs == "" {
			return fmt.Errorf("events[%d]: theirs and ours are both absent", i)
		}
		if err := r.When.check(); err != nil {
			return fmt.Errorf("events[%d] (%s): %w", i, r.Theirs, err)
		}
		own[r.Theirs] = true
	}
	for _, r := range base.Events {
		if !own[r.Theirs] {
			t.Events = append(t.Events, r)
		}
	}
	known := t.Events
	if t.Name != standard {
		std, err := load(standard)
		if err != nil {
			return err
		}
		known = std.Events
	}
	for i, r := range t.Events {
		if r.Ours != "" && !slices.ContainsFunc(known, func(s eventRow) bool { return s.Theirs == r.Ours }) {
			return fmt.Errorf("events[%d] (%s): ours %q is not an event of the standard vocabulary", i, r.Theirs, r.Ours)
		}
	}
	return nil
}

func (t *table) buildMetrics(base *table) error {
	own := make(map[string]bool)
	for i := range t.Metrics {
		r := &t.Metrics[i]
		if r.Theirs == "" {
			r.Theirs = r.Ours
		}
		if err := r.check(t.Name == standard); err != nil {
			return fmt.Errorf("metrics[%d] (%s): %w", i, r.Theirs, err)
		}
		own[r.Theirs] = true
	}
	for _, r := range base.Metrics {
		if !own[r.Theirs] {
			t.Metrics = append(t.Metrics, r)
		}
	}
	units := t.Metrics
	if t.Name != standard {
		std, err := load(standard)
		if err != nil {
			return err
		}
		units = std.Metrics
	}
	t.metric, t.written = make(map[string][]*metricRow), make(map[string]*metricRow)
	for i := range t.Metrics {
		r := &t.Metrics[i]
		if r.Ours != "" {
			at := slices.IndexFunc(units, func(s metricRow) bool { return s.Ours == r.Ours })
			if at < 0 {
				return fmt.Errorf("metrics[%d] (%s): ours %q is not a metric of the standard vocabulary", i, r.Theirs, r.Ours)
			}
			if r.Unit == "" {
				r.Unit = units[at].Unit
			}
			if _, ok := ratio(r.Unit, units[at].Unit); !ok {
				return fmt.Errorf("metrics[%d] (%s): unit %q cannot be converted to %q", i, r.Theirs, r.Unit, units[at].Unit)
			}
		}
		t.metric[r.Theirs] = append(t.metric[r.Theirs], r)
		if r.Derive == "" && r.Ours != "" && t.written[r.Ours] == nil {
			t.written[r.Ours] = r
		}
	}
	return nil
}

func (r *metricRow) check(std bool) error {
	switch {
	case r.Theirs == "":
		return errors.New("theirs and ours are both absent")
	case std && (r.Ours != r.Theirs || r.Unit == ""):
		return errors.New("a standard metric is itself and has a unit")
	case r.Derive != "" && r.Derive != "sum":
		return fmt.Errorf("derive %q is not \"sum\"", r.Derive)
	case r.Derive == "" && r.OursOnly != nil:
		return errors.New("ours_only needs derive")
	}
	return r.When.check()
}

// owns reports whether the key lies in a namespace of the vocabulary.
func (t *table) owns(key string) bool {
	for _, n := range t.Namespaces {
		if strings.HasPrefix(key, n) {
			return true
		}
	}
	return false
}
