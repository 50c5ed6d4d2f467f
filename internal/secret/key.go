package secret

import "strings"

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

// apiKeys finds a prefix, at the start of a word, before something that nobody
// says: names are of short words.
func apiKeys(s string, yield func(int, int) bool) {
	if len(s) < 20 {
		return
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
			from = at + 1
			if scan.end-start >= k.length && (scan.random >= at || k.spread && scan.mixed(start)) && begins(s, at) {
				if !yield(at, scan.end) {
					return
				}
				from = scan.end
			}
		}
	}
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
