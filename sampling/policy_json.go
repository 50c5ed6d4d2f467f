package sampling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// rules are the kinds of policies by their key in JSON.
var rules = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, r := range []rule{
		errorsRule{}, slowRule{}, slowByRule{}, matchRule{}, customRule{}, baselineRule{},
		quantileRule{}, targetRateRule{}, adaptiveRule{}, limitRule{},
		anyRule{}, allRule{}, notRule{}, firstRule{}, keyPathRule{}, layersRule{},
	} {
		m[r.name()] = reflect.TypeOf(r)
	}
	return m
}()

// MarshalJSON writes p as an object with one key, which names the kind of policy:
//
//	{"any": [{"errors": {}}, {"slow": {"over": "3s"}}, {"baseline": {"ratio": 0.05}}]}
func (p Policy) MarshalJSON() ([]byte, error) {
	if p.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(map[string]rule{p.rule.name(): p.rule})
}

// UnmarshalJSON reads what [Policy.MarshalJSON] writes. A key that is not known is
// an error. What the values mean is checked by [Policy.Validate] and [NewTail].
func (p *Policy) UnmarshalJSON(data []byte) error {
	*p = Policy{}
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("sampling: a policy is an object such as {\"baseline\": {\"ratio\": 0.05}}: %w", err)
	}
	if len(object) != 1 {
		return fmt.Errorf("sampling: a policy has one key, its kind; this one has %d", len(object))
	}
	for name, content := range object {
		kind, ok := rules[name]
		if !ok {
			return fmt.Errorf("sampling: no policy is called %q; there are %s", name, strings.Join(sortedKeys(rules), ", "))
		}
		r := reflect.New(kind)
		if err := unmarshalStrict(content, r.Interface()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.rule = r.Elem().Interface().(rule)
	}
	return nil
}

var errNull = errors.New("null is no content: leave the policy out, or give {}")

func unmarshalStrict(data []byte, v any) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return errNull
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
