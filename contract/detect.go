package contract

import "strings"

// detector finds something in a text and returns where it starts, −1 where there
// is none. The built-in ones look for one rare byte first, so that usual text
// costs little.
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

// findEmail finds local@domain.tld, where the last label is of letters. A user
// part of a URL before a host without a dot is none.
func findEmail(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '@')
		if i < 0 {
			return -1
		}
		at := from + i
		start := at
		for start > 0 && isLocal(s[start-1]) {
			start--
		}
		end := at + 1
		for end < len(s) && (isAlphanumeric(s[end]) || s[end] == '-' || s[end] == '.') {
			end++
		}
		if start < at && isDomain(strings.TrimRight(s[at+1:end], ".-")) {
			return start
		}
		from = at + 1
	}
}

func isDomain(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	if dot <= 0 || strings.Contains(s, "..") || s[0] == '-' {
		return false
	}
	tld := s[dot+1:]
	if len(tld) < 2 || len(tld) > 24 {
		return false
	}
	for i := range len(tld) {
		if !isLetter(tld[i]) {
			return false
		}
	}
	return true
}

func isLocal(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("._%+-", c) >= 0
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool { return isLetter(c) || isDigit(c) }

// keyPrefixes start the secrets of well-known services; what follows is at least so
// long.
var keyPrefixes = []struct {
	prefix string
	length int
}{
	{"sk-", 20},         // OpenAI, Anthropic and many that follow them
	{"AKIA", 16},        // AWS
	{"ASIA", 16},        // AWS, temporary
	{"AIza", 35},        // Google
	{"ghp_", 36},        // GitHub
	{"gho_", 36},        // GitHub
	{"github_pat_", 40}, // GitHub
	{"glpat-", 20},      // GitLab
	{"xoxb-", 20},       // Slack
	{"xoxp-", 20},       // Slack
	{"hf_", 30},         // Hugging Face
	{"gsk_", 40},        // Groq
	{"nvapi-", 40},      // NVIDIA
	{"r8_", 37},         // Replicate
	{"pplx-", 40},       // Perplexity
	{"xai-", 40},        // xAI
}

func findAPIKey(s string) int {
	if len(s) < 20 {
		return -1
	}
	for _, k := range keyPrefixes {
		for from := 0; ; {
			i := strings.Index(s[from:], k.prefix)
			if i < 0 {
				break
			}
			at := from + i
			end := at + len(k.prefix)
			digits := 0
			for end < len(s) && (isAlphanumeric(s[end]) || s[end] == '-' || s[end] == '_') {
				if isDigit(s[end]) {
					digits++
				}
				end++
			}
			// A word such as risk-… or one without any digit is no key.
			if end-at-len(k.prefix) >= k.length && digits > 0 && (at == 0 || !isAlphanumeric(s[at-1])) {
				return at
			}
			from = at + 1
		}
	}
	return -1
}

// findBearer finds a token after the word Bearer or Basic, as Authorization headers
// have it.
func findBearer(s string) int {
	for _, word := range [...]string{"earer ", "EARER ", "asic "} {
		i := strings.Index(s, word)
		if i < 1 {
			continue
		}
		token := s[i+len(word):]
		n, mixed := 0, false
		for n < len(token) && (isAlphanumeric(token[n]) || strings.IndexByte("-._~+/=", token[n]) >= 0) {
			mixed = mixed || !isLetter(token[n]) || n > 0 && token[n] < 'a' && token[n-1] >= 'a'
			n++
		}
		if n >= 16 && mixed {
			return i - 1
		}
	}
	return -1
}

// findCard finds 13 to 19 digits, perhaps in groups, that have the prefix of a
// card network and the right check digit. Numbers that are part of a longer word,
// such as an identifier in hex, are none.
func findCard(s string) int {
	if len(s) < 13 {
		return -1
	}
	for i := 0; i < len(s); {
		if s[i] < '2' || s[i] > '6' || i > 0 && (isAlphanumeric(s[i-1]) || s[i-1] == '.' || s[i-1] == '-') {
			i++
			continue
		}
		var digits [20]byte
		n, end := 0, i
		for end < len(s) && n < len(digits) {
			c := s[end]
			if isDigit(c) {
				digits[n] = c - '0'
				n++
			} else if c != ' ' && c != '-' || end+1 >= len(s) || !isDigit(s[end+1]) {
				break
			}
			end++
		}
		if n >= 13 && n <= 19 && (end >= len(s) || !isAlphanumeric(s[end])) && isCard(digits[:n]) {
			return i
		}
		i = max(end, i+1)
	}
	return -1
}

func isCard(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		d := int(d)
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

func findPrivateKey(s string) int {
	i := strings.Index(s, "-----BEGIN ")
	if i < 0 || !strings.Contains(s[i:], "PRIVATE KEY-----") {
		return -1
	}
	return i
}
