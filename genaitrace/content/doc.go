// Package content decides what of prompts, answers and tool calls may be written
// down, and makes it safe and small.
//
//	s := content.Sanitizer{Redactors: []content.Redactor{content.Pattern("case", regexp.MustCompile(`CASE-\d+`))}}
//	value, err := s.Messages(content.Redacted, messages)
//	record.AddAttributes(attribute.KeyValue{Key: genaiconv.InputMessagesKey, Value: value.Structured()})
//
// package genaitrace does this for the content that its handles are given; use the
// package itself for telemetry of your own.
//
// # Levels
//
//	Off       nothing is written; the default
//	Hash      the structure, with a keyed hash in the place of every text
//	Redacted  texts, without what the redactors find
//	Full      texts as they are
//
// # Redactors
//
// The built-in ones find e-mail addresses, keys of well-known services, bearer
// tokens, JSON web tokens, private keys, numbers of payment cards by their check
// digit, and long random strings. They share their tables with the rules of package
// contract, so that what they let pass has nothing that builtin:email, api-key,
// bearer, card and private-key forbid. They look at every string of a value, names
// of fields and numbers included, and see through JSON in a string and the escapes
// \u0040 and %40. They decode nothing else: a secret in base64 or split over two
// messages stays, unless it looks random. Names, addresses and what
// nobody could list stay too, so Redacted makes leaks rare and does not rule
// them out.
//
// A redactor that returns an error or panics costs the value, never the call.
//
// # Size
//
// A value is at most as long, as JSON, as its limit says. What is too long is cut
// inside its strings, so the JSON stays whole; of many messages the newest stay.
// The work is bounded by the limit, not by what was given, but for values that only
// encoding/json can read, and for hashes.
//
// # Hashes
//
// A hash is HMAC-SHA-256 under a key of at least 16 bytes, of which the first 16
// hex digits are written. Without a key there is no hash: prompts can be guessed,
// and a plain digest of a guess is as easily made by a reader of the telemetry as
// by us. With a key, only who has it can try guesses; so keep it away from where
// telemetry is read, and change it when it leaks. 64 bits are too few to tell apart
// more than some hundred million texts, and enough to see that two are equal.
package content
