// Command specgen turns the Go types of the contract file into the JSON Schema
// that editors read, contract/spec/schema.json, and into the reference of the
// format in docs/contract.md, between its two marks.
//
//	go generate ./contract/spec
//
// The types are the single source. Keys, their order and whether they are required
// come from the types; what they mean from the doc comments, and from these too:
//
//   - A closed set of words. "Via is the transport: http, grpc or messaging." A
//     list of single words, behind a colon or the word is, up to the full stop.
//     A type of its own, such as Policy, has its constants instead.
//   - The default. "trace (default)" or "Default 2ms."
//   - That a number may stand for text: every text may be written as a number,
//     because bounds and terms are.
//
// A type that decodes itself has a short form that reflection does not show; it is
// in the table of forms, and one that is not there is an error.
package main
