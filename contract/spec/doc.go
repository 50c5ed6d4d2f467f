// Package spec is the contract file as Go values: what docs/contract.md describes
// and schema.json lets an editor check. It only decodes; package contract gives
// the words their meaning.
//
//	file, err := spec.Decode("observability.yaml", data)
//	// observability.yaml:12:5: unknown key "requird", did you mean "required"?
package spec
