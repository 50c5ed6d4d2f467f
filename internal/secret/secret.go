// Package secret finds what must not be written down: e-mail addresses, keys of
// services, bearer tokens, numbers of payment cards, private keys. The contract
// forbids it in telemetry and the redactors take it out of content, by the same
// tables, so that what is redacted passes the contract.
//
//	secret.Email.Each(text, func(start, end int) bool { … })
//
// A search looks for one rare byte or word first, so that usual text costs little,
// and goes over a text a few times at most, whatever the text is.
package secret

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind is one sort of secret.
type Kind struct {
	Name  string // in contracts and in what stands in for a secret
	Label string // for people, with its article

	each func(s string, yield func(start, end int) bool)
}

// The kinds.
var (
	Email      = Kind{"email", "an e-mail address", emails}
	APIKey     = Kind{"api-key", "an API key", apiKeys}
	Bearer     = Kind{"bearer", "a bearer token", bearers}
	Card       = Kind{"card", "the number of a payment card", cards}
	PrivateKey = Kind{"private-key", "a private key", privateKeys}
	// Random is what looks like a secret of no known service. Telemetry has much of
	// that kind, such as packed timelines, so no contract forbids it.
	Random = Kind{"random", "a long random string", randoms}
)

// Known are the kinds that telemetry never has by right.
func Known() []Kind { return []Kind{Email, APIKey, Bearer, Card, PrivateKey} }

// All are all kinds.
func All() []Kind { return append(Known(), Random) }

// Each calls yield with where each secret of the kind starts and ends, in no certain
// order, until it returns false.
func (k Kind) Each(s string, yield func(start, end int) bool) { k.each(s, yield) }

// Find returns where a secret of the kind starts, −1 where there is none.
func (k Kind) Find(s string) int {
	found := -1
	k.each(s, func(start, _ int) bool {
		found = start
		return false
	})
	return found
}

// emails finds local@domain.tld. The model names, packages and image digests that
// have an @ too are followed by a version.
func emails(s string, yield func(int, int) bool) {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '@')
		if i < 0 {
			return
		}
		at := from + i
		start := at
		for start > from && isLocal(s[start-1]) {
			start--
		}
		domain := domainOf(s[at+1:])
		if start < at && s[start:at] != "git" && domain != "" && !yield(start, at+1+len(domain)) {
			return
		}
		from = at + 1
	}
}

// domainOf returns the name of the public Internet that s starts with. Text in
// scripts without spaces goes on right after it.
func domainOf(s string) string {
	end, label, early := 0, 0, 0
	for end < len(s) {
		c := s[end]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[end:])
			if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
				return firstDomain(s[:end], s[:early])
			}
			if early == 0 && label > 0 && end-label >= 2 {
				early = end
			}
			end += size
			continue
		case c == '.':
			label = end + 1
		case !isAlphanumeric(c) && c != '-':
			return firstDomain(s[:end], s[:early])
		}
		end++
	}
	return firstDomain(s[:end], s[:early])
}

func firstDomain(candidates ...string) string {
	for _, s := range candidates {
		if s = strings.TrimRight(s, ".-"); isDomain(s) {
			return s
		}
	}
	return ""
}

// randoms finds long runs of what secrets are made of, whose characters change
// their class as often as chance has it. UUIDs are names, and none.
func randoms(s string, yield func(int, int) bool) {
	for i := 0; i < len(s); i++ {
		if !isSecretByte(s[i]) {
			continue
		}
		run := i + 1
		for run < len(s) && isSecretByte(s[run]) {
			run++
		}
		end := run
		for end < len(s) && s[end] == '=' { // that base64 is filled up with
			end++
		}
		if run-i >= 2*minRandom && isRandom(s[i:run]) && !yield(i, end) {
			return
		}
		i = run
	}
}

func isSecretByte(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("+/_-", c) >= 0 }

// isRandom compares how often neighbours are of different classes with what
// letters and digits drawn by chance have: 0.62 where both cases are there, 0.47
// for hex, 0.40 for one case; words have less.
func isRandom(s string) bool {
	var counts [4]int // lower, upper, digit, other
	changes, before := 0, 3
	for i := range len(s) {
		class := 3
		switch c := s[i]; {
		case isLower(c):
			class = 0
		case isUpper(c):
			class = 1
		case isDigit(c):
			class = 2
		}
		counts[class]++
		if class != before && class != 3 && before != 3 {
			changes++
		}
		before = class
	}
	share := float64(changes) / float64(len(s))
	if counts[0] > 2 && counts[1] > 2 {
		return counts[2] >= 2 && share >= 0.42
	}
	return counts[2] >= 4 && counts[0]+counts[1] >= 4 && share >= 0.25 && !isUUID(s)
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') {
			return false
		}
	}
	return true
}
