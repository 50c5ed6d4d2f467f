package contract

import "github.com/genaitrace/otelgenai/internal/secret"

// detector finds something in a text and returns where it starts, −1 where there
// is none.
type detector struct {
	name string
	find func(string) int
}

func (d detector) label() string {
	if label, ok := labels[d.name]; ok {
		return label
	}
	return d.name
}

// detectors and labels are those of the secrets that are known; the redactors of
// content work by the same tables.
var detectors, labels = func() (map[string]func(string) int, map[string]string) {
	find, label := map[string]func(string) int{}, map[string]string{}
	for _, kind := range secret.Known() {
		find[kind.Name], label[kind.Name] = kind.Find, kind.Label
	}
	return find, label
}()
