// Package contract holds telemetry against an observability contract: a file that
// says which spans, attributes, events, metrics and log records a GenAI service
// shows, in which tree and at which times, and what it never records.
//
//	c, err := contract.Load("observability.yaml")
//	if err != nil {
//		return err // names the file, the line, the column and what was probably meant
//	}
//	report := c.Check(got) // a capture.Capture, from memory or from OTLP
//	if err := report.WriteText(os.Stderr); err != nil {
//		return err
//	}
//	if report.Failed(false) {
//		os.Exit(1)
//	}
//
// The file is described by package spec and in docs/contract.md. It may extend the
// built-in profiles, which [Builtins] lists, and say only what is different. Names,
// types, units and enumerations come from package semconv: the spellings of a fact
// in the official conventions, in those of this module and in older ones count as
// one, with units converted. Tests use package contracttest, which records, checks
// and shows the spans of a failure.
//
// A [Checker] takes telemetry piece by piece, in any order. What it holds is bounded
// where it is made with [WithQuiet], metrics apart.
//
// This package records nothing, sends nothing and judges nothing that the contract
// does not say. It never changes a capture, and what it finds does not depend on the
// order of the spans. It repeats no text that looks like personal data or a secret.
package contract
