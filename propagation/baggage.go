package propagation

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
)

// The limits of W3C Baggage, which hold for all header fields together.
const (
	maxBaggageMembers = 64
	maxBaggageLen     = 8192
)

// readBaggage returns the baggage of carrier, members that cannot be read aside.
// It reports false where there is more than a carrier may hold, of which nothing
// is read.
func readBaggage(carrier propagation.TextMapCarrier) (bag baggage.Baggage, ok bool) {
	one, several := fieldsOf(carrier, baggageKey)
	size := len(one)
	for _, field := range several {
		size += len(field) + 1
	}
	if size > maxBaggageLen+min(1, len(several)) {
		return baggage.Baggage{}, false
	}
	if several != nil {
		one = strings.Join(several, ",")
	}
	if one == "" {
		return baggage.Baggage{}, true
	}
	bag, _ = baggage.Parse(one)
	return bag, true
}

// formatBaggage returns the members of bag that fit into size bytes, and how many
// do not. The order, in which they are also taken, is that of first and then of
// the keys, so that the same baggage is always the same header.
func formatBaggage(bag baggage.Baggage, tag string, first []string, size int) (list string, shed int) {
	members := bag.Members()
	rank := func(m baggage.Member) int {
		if i := slices.Index(first, m.Key()); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortFunc(members, func(a, b baggage.Member) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Key(), b.Key()))
	})
	size = min(size, maxBaggageLen)
	var b strings.Builder
	count := 0
	add := func(member string) {
		if member == "" || count == maxBaggageMembers || b.Len()+len(member)+min(count, 1) > size {
			shed++
			return
		}
		if count++; count > 1 {
			b.WriteByte(',')
		}
		b.WriteString(member)
	}
	if tag != "" {
		add(tenantKey + "=" + tag)
	}
	for _, m := range members {
		if m.Key() != tenantKey { // which is not the application's to write
			// "" if the key cannot be written. A tab stands around properties alone, where
			// a space is as good, and not every transport takes it.
			add(strings.ReplaceAll(m.String(), "\t", " "))
		}
	}
	return b.String(), shed
}
