package secret

import "strings"

// cards finds the number of a payment card: as long as its network has it, in one
// piece or in the usual groups, with the right check digit. Numbers that are part of
// something longer, such as an identifier, are none.
func cards(s string, yield func(int, int) bool) {
	if len(s) < 13 {
		return
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '2' || s[i] > '6' || !begins(s, i) || i > 0 && strings.IndexByte(".-_", s[i-1]) >= 0 {
			continue
		}
		end, ok := scanCard(s, i)
		if ok && !yield(i, end) {
			return
		}
		if !ok && i > 0 && s[i-1] == '%' && end > i+2 {
			end = i + 2 // the escape of what stands before a card
		} else if space := strings.IndexByte(s[i:end], ' '); !ok && space > 0 {
			end = i + space // a year, a date or a count may stand before a card
		}
		i = max(i, end-1)
	}
}

// scanCard goes over digits and what stands between groups of them. It returns where
// they end, and whether they are a card; other numbers may follow that.
func scanCard(s string, start int) (end int, ok bool) {
	var number [19]byte
	n, groups := 0, groupSizes{}
	card := func() bool { return n <= len(number) && groups.usual() && isCard(number[:n]) }
	for end = start; end < len(s); end++ {
		if c := s[end]; isDigit(c) {
			if n < len(number) {
				number[n] = c - '0'
			}
			n++
			groups.add()
			continue
		}
		if s[end] == ' ' && card() {
			return end, true
		}
		if s[end] != ' ' && s[end] != '-' || end+1 >= len(s) || !isDigit(s[end+1]) || !groups.next() {
			break
		}
	}
	return end, card() && !continues(s, end)
}

// continues reports whether the word that ends before end goes on.
func continues(s string, end int) bool {
	switch {
	case end >= len(s):
		return false
	case s[end] == '.' || s[end] == '-' || s[end] == '_':
		return end+1 < len(s) && isAlphanumeric(s[end+1])
	default:
		return isAlphanumeric(s[end])
	}
}

// groupSizes are the sizes of groups of digits.
type groupSizes struct {
	sizes [6]int
	n     int // those that are complete
}

func (g *groupSizes) add() { g.sizes[g.n]++ }

func (g *groupSizes) next() bool {
	g.n++
	return g.n < len(g.sizes)
}

// usual reports whether cards are printed so.
func (g *groupSizes) usual() bool {
	if g.n >= len(g.sizes) {
		return false
	}
	switch sizes := g.sizes; g.n {
	case 0:
		return true
	case 2:
		return sizes[0] == 4 && sizes[1] == 6 && (sizes[2] == 5 || sizes[2] == 4)
	case 3, 4:
		return sizes[0] == 4 && sizes[1] == 4 && sizes[2] == 4 && sizes[3] == 4 && sizes[4] <= 3
	default:
		return false
	}
}

// isCard reports whether a network has such numbers, and whether the last digit is
// that of Luhn.
func isCard(digits []byte) bool {
	if len(digits) < 13 {
		return false
	}
	prefix := func(n int) (p int) {
		for _, d := range digits[:n] {
			p = 10*p + int(d)
		}
		return p
	}
	in := func(p, from, to int) bool { return p >= from && p <= to }
	one, two, three, four, n := prefix(1), prefix(2), prefix(3), prefix(4), len(digits)
	switch {
	case one == 4: // Visa
		if n != 16 && n != 19 {
			return false
		}
	case in(two, 51, 55), in(four, 2221, 2720): // Mastercard
		if n != 16 {
			return false
		}
	case two == 34, two == 37: // American Express
		if n != 15 {
			return false
		}
	case two == 36, two == 38, in(three, 300, 305): // Diners Club
		if n != 14 {
			return false
		}
	case four == 6011, two == 62, two == 65, in(three, 644, 649), in(four, 3528, 3589): // Discover, UnionPay, JCB
		if n < 16 {
			return false
		}
	default:
		return false
	}
	sum := 0
	for i, d := range digits {
		d := int(d)
		if (n-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
