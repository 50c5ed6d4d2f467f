package contract

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// detector finds something in a text and returns where it starts, −1 where there
// is none. The built-in ones look for one rare byte or word first, so that usual
// text costs little, and none goes over a text more than a few times.
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

var (
	detectors = map[string]func(string) int{
		"email":       findEmail,
		"api-key":     findAPIKey,
		"bearer":      findBearer,
		"card":        findCard,
		"private-key": findPrivateKey,
	}
	labels = map[string]string{
		"email": "an e-mail address", "api-key": "an API key", "bearer": "a bearer token",
		"card": "the number of a payment card", "private-key": "a private key",
	}
)

// findEmail finds local@domain.tld. The model names, packages and image digests that
// have an @ too are followed by a version.
func findEmail(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '@')
		if i < 0 {
			return -1
		}
		at := from + i
		start := at
		for start > from && isLocal(s[start-1]) {
			start--
		}
		end := at + 1
		for end < len(s) && (isWord(s[end]) || s[end] == '-' || s[end] == '.') {
			end++
		}
		if start < at && s[start:at] != "git" && isDomain(strings.TrimRight(s[at+1:end], ".-")) {
			return start
		}
		from = at + 1
	}
}

// isDomain reports whether s is a name of the public Internet.
func isDomain(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	if dot <= 0 || s[0] == '-' || s[0] == '.' || strings.Contains(s, "..") {
		return false
	}
	tld := s[dot+1:]
	if len(tld) < 2 || len(tld) > 24 {
		return false
	}
	for i := range len(tld) {
		if isDigit(tld[i]) || !isWord(tld[i]) {
			return false
		}
	}
	switch strings.ToLower(tld) {
	case "local", "internal", "localdomain", "lan", "png", "jpg", "jpeg", "svg", "webp": // hosts at home, and logo@2x.png
		return false
	}
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	return !isNumber(strings.TrimPrefix(first, "v")) || !isNumber(second) // 1.2.3-beta.rc is a version, 163.com a domain
}

func isNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func isLocal(c byte) bool {
	return isWord(c) || strings.IndexByte("._%+-", c) >= 0
}

// isWord accepts letters of every script.
func isWord(c byte) bool { return isAlphanumeric(c) || c >= 0x80 }

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool { return isLower(c|0x20) || isDigit(c) }

// keyPrefixes start the secrets of well-known services; what follows is at least so
// long. Those that are spread have - and _ anywhere, and are short.
var keyPrefixes = [...]struct {
	prefix string
	length int
	spread bool
}{
	{"sk-", 20, false},         // OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse
	{"sk_live_", 24, false},    // Stripe
	{"rk_live_", 24, false},    // Stripe
	{"AKIA", 16, false},        // AWS
	{"ASIA", 16, false},        // AWS, temporary
	{"AIza", 35, true},         // Google
	{"ya29.", 30, true},        // Google, access token
	{"ghp_", 36, false},        // GitHub, personal
	{"gho_", 36, false},        // GitHub, OAuth
	{"ghu_", 36, false},        // GitHub, user to server
	{"ghs_", 36, false},        // GitHub, server to server
	{"github_pat_", 40, false}, // GitHub, fine-grained
	{"glpat-", 20, true},       // GitLab
	{"xoxb-", 20, false},       // Slack, bot
	{"xoxp-", 20, false},       // Slack, user
	{"hf_", 30, false},         // Hugging Face
	{"gsk_", 40, false},        // Groq
	{"nvapi-", 40, true},       // NVIDIA
	{"r8_", 37, false},         // Replicate
	{"pplx-", 40, false},       // Perplexity
	{"xai-", 40, false},        // xAI
	{"csk-", 40, false},        // Cerebras
	{"pcsk_", 40, false},       // Pinecone
	{"lsv2_", 32, false},       // LangSmith
	{"npm_", 36, false},        // npm
	{"dapi", 32, false},        // Databricks
}

// findAPIKey finds a prefix, at the start of a word, before something that nobody
// says: names are of short words.
func findAPIKey(s string) int {
	if len(s) < 20 {
		return -1
	}
	for _, k := range keyPrefixes {
		var scan secretScan
		for from := 0; ; {
			i := strings.Index(s[from:], k.prefix)
			if i < 0 {
				break
			}
			at := from + i
			start := at + len(k.prefix)
			if start >= scan.end {
				scan = scanSecret(s, start)
			}
			if scan.end-start >= k.length && (scan.random >= at || k.spread && scan.mixed(start)) && (at == 0 || !isAlphanumeric(s[at-1])) {
				return at
			}
			from = at + 1
		}
	}
	return -1
}

// minRandom is the shortest run of letters and digits that is taken for random.
const minRandom = 16

// secretScan is what was seen of something that may be a secret: where it ends, where
// the last run of letters and digits in it starts that mixes them or their case, and
// the last of each kind of character; −1 for none.
type secretScan struct{ end, random, lower, upper, digit int }

// mixed reports whether there is every kind of character from start on.
func (s *secretScan) mixed(start int) bool {
	return s.lower >= start && s.upper >= start && s.digit >= start
}

// scanSecret scans what a key may be made of, from start on.
func scanSecret(s string, start int) secretScan {
	scan := secretScan{end: start, random: -1, lower: -1, upper: -1, digit: -1}
	run := start
	for ; scan.end < len(s); scan.end++ {
		switch c := s[scan.end]; {
		case isLower(c):
			scan.lower = scan.end
		case isUpper(c):
			scan.upper = scan.end
		case isDigit(c):
			scan.digit = scan.end
		case c == '-' || c == '_':
			run = scan.end + 1
			continue
		default:
			return scan
		}
		lower, upper, digit := scan.lower >= run, scan.upper >= run, scan.digit >= run
		if scan.end-run >= minRandom-1 && (lower || upper) && (digit || lower && upper) {
			scan.random = run
		}
	}
	return scan
}

// findBearer finds a token after the word Bearer or Basic, as Authorization headers
// have it, and a JSON web token without that word.
func findBearer(s string) int {
	if at := findWord(s, "earer ", isToken); at >= 0 {
		return at
	}
	if at := findWord(s, "EARER ", isToken); at >= 0 {
		return at
	}
	if at := findWord(s, "asic ", isBasic); at >= 0 {
		return at
	}
	return findJWT(s)
}

// findWord finds a word, given without its first letter, before something that is
// accepted.
func findWord(s, rest string, accept func(string) bool) int {
	for from := 0; ; {
		i := strings.Index(s[from:], rest)
		if i < 0 {
			return -1
		}
		at := from + i - 1
		from += i + len(rest)
		if at >= 0 && s[at]|0x20 == 'b' && (at == 0 || !isAlphanumeric(s[at-1])) && accept(s[from:]) {
			return at
		}
	}
}

// isToken reports whether s starts with what no words are: a long run that mixes
// letters, their case and digits, or such a thing in groups.
func isToken(s string) bool {
	n, digit, letter := 0, false, false
	for ; n < len(s) && (isAlphanumeric(s[n]) || strings.IndexByte("-._~+/=", s[n]) >= 0); n++ {
		digit = digit || isDigit(s[n])
		letter = letter || !isDigit(s[n]) && isAlphanumeric(s[n])
	}
	return scanSecret(s, 0).random >= 0 || n >= 2*minRandom && digit && letter
}

// isBasic reports whether s starts with a name and a password in base64.
func isBasic(s string) bool {
	n := 0
	for n < len(s) && (isAlphanumeric(s[n]) || strings.IndexByte("+/=", s[n]) >= 0) {
		n++
	}
	plain, err := base64.StdEncoding.DecodeString(s[:n])
	return err == nil && len(plain) >= 6 && bytes.IndexByte(plain, ':') > 0
}

// findJWT finds header.payload.signature, of which the first two are JSON in
// base64.
func findJWT(s string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], "eyJ")
		if i < 0 {
			return -1
		}
		at := from + i
		end := at
		for end < len(s) && (isAlphanumeric(s[end]) || strings.IndexByte("-_.", s[end]) >= 0) {
			end++
		}
		parts := strings.Split(s[at:end], ".")
		if len(parts) >= 3 && len(parts[0]) >= minRandom && strings.HasPrefix(parts[1], "eyJ") && (at == 0 || !isAlphanumeric(s[at-1])) {
			return at
		}
		from = max(at+1, end)
	}
}

// findCard finds the number of a payment card: as long as its network has it, in one
// piece or in the usual groups, with the right check digit. Numbers that are part of
// something longer, such as an identifier, are none.
func findCard(s string) int {
	if len(s) < 13 {
		return -1
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '2' || s[i] > '6' || i > 0 && (isWord(s[i-1]) || strings.IndexByte(".-_", s[i-1]) >= 0) {
			continue
		}
		end, ok := scanCard(s, i)
		if ok {
			return i
		}
		i = max(i, end-1)
	}
	return -1
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
		return end+1 < len(s) && isWord(s[end+1])
	default:
		return isWord(s[end])
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

// findPrivateKey finds the first line of a private key in PEM.
func findPrivateKey(s string) int {
	const begin, end = "-----BEGIN ", "-----"
	for from := 0; ; {
		i := strings.Index(s[from:], begin)
		if i < 0 {
			return -1
		}
		at := from + i
		from = at + len(begin)
		label, _, ok := strings.Cut(s[from:min(len(s), from+64)], end)
		if ok && (strings.HasSuffix(label, "PRIVATE KEY") || strings.HasSuffix(label, "PRIVATE KEY BLOCK")) {
			return at
		}
	}
}
