package failure

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxText   = 64 << 10 // bytes of an error's text that rules see
	maxRaw    = 16 << 10 // bytes of a text that are examined, before it is scrubbed
	maxDetail = 4 << 10  // bytes of a text that are kept
	hidden    = "***"
)

// Scrub makes a technical text safe to store and show. The result contains no credentials, only the last part of file
// paths, valid UTF-8 without control characters other than line breaks and tabs, and at most 4 KiB. Text that looks like a
// secret is hidden even if it is none.
func Scrub(text string) string { return scrubbed.get(text) }

var scrubbed = memo{of: scrub}

func scrub(text string) string {
	if len(text) > maxRaw {
		// The last word may be part of a secret, which no pattern would recognise.
		text = text[:maxRaw]
		text = text[:strings.LastIndexAny(text, " \t\r\n")+1]
	}
	text = clean(text)
	text = apply(pathScrubbers, hideCredentials(text))
	return cut(text, maxDetail)
}

// hideCredentials hides what looks like a credential, and nothing else.
func hideCredentials(text string) string { return apply(scrubbers, text) }

func apply(all []scrubber, text string) string {
	small := strings.ToLower(text)
	for _, s := range all {
		if s.applies(small) {
			text = s.apply(text)
		}
	}
	return text
}

// clean escapes characters that could harm a terminal, a database or a page.
func clean(text string) string {
	plain := func(r rune) bool { return r == '\n' || r == '\t' || r != utf8.RuneError && unicode.IsPrint(r) }
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD") {
		switch {
		case plain(r) || r == utf8.RuneError:
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// cut shortens a text to a number of bytes, between two characters, and ends it with an ellipsis.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := max(limit-len("…"), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// A scrubber hides one kind of secret. Regular expressions are slow and most texts contain no secret, so it runs only on
// texts that contain one of its words, compared in lower case.
type scrubber struct {
	words []string
	apply func(string) string
}

func (s scrubber) applies(small string) bool {
	for _, word := range s.words {
		if strings.Contains(small, word) {
			return true
		}
	}
	return false
}

const (
	secretWord   = `[\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|credential|signature|(?:api|access|private|account|signing|encryption)[_-]?key)s?[\w.-]*`
	passwordWord = `(?i)passw|passphrase|pwd`
)

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	header     = regexp.MustCompile(`(?i)((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*[:=]\s*\[?["']?)[^\n"']+`)
	scheme     = regexp.MustCompile(`(?i)\b(bearer|basic|digest|negotiate)\s+([A-Za-z0-9._~+/=-]{6,})`)
	authority  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s"'<>/?#]*:[^\s"'<>]*|[^\s"'<>/]*)@`)
	dsn        = regexp.MustCompile(`[\w.%+-]+:[^\s"']+@([\w-]*\()`)
	userAt     = regexp.MustCompile(`[\w.%+-]+:[^\s"'@/]+@`)
	assignment = regexp.MustCompile(`(?i)(` + secretWord + `)(["']?\s*(?:=>?|:=?)\s*)("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s&,;"'})\]]+)`)
	query      = regexp.MustCompile(`(?i)([?&;](?:key|code|sig|auth|session|sid|session_?id|jwt|assertion)=)[^&\s"'#]+`)
	shapes     = regexp.MustCompile(`\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}|gh[a-z]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|AIza[\w-]{30,}|(?:sk|pk|rk|whsec|whsk)[-_][\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)`)
	unixPath   = regexp.MustCompile(`(^|[\s"'` + "`" + `=(\[{<,;:|>])(?:file://)?(?:~|\.{1,2})?(?:/[^\s/\\:"'` + "`" + `<>|,;()\[\]{}]+)+/([^\s/\\:"'` + "`" + `<>|,;()\[\]{}]*)`)
	dosPath    = regexp.MustCompile(`(?:\b[A-Za-z]:|\\)(?:\\[^\s\\/:"'<>|,;()]+)+\\([^\s\\/:"'<>|,;()]*)`)
)

var scrubbers = []scrubber{
	{[]string{"-----begin"}, replace(privateKey, hidden)},
	{[]string{"authorization", "cookie"}, replace(header, "${1}${2}"+hidden)},
	{[]string{"bearer", "basic", "digest", "negotiate"}, hideScheme},
	{[]string{"://"}, replace(authority, "${1}"+hidden+"@")},
	{[]string{"@"}, replace(dsn, hidden+"@${1}")},
	{[]string{"@"}, replace(userAt, hidden+"@")},
	{[]string{"passw", "passphrase", "pwd", "secret", "token", "credential", "signature", "key"}, hideAssignment},
	{[]string{"?", "&", ";"}, replace(query, "${1}"+hidden)},
	{[]string{"akia", "asia", "gh", "glpat-", "xox", "aiza", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "whs", "eyj"}, replace(shapes, hidden)},
}

var pathScrubbers = []scrubber{
	{[]string{"/"}, replace(unixPath, "${1}…/${2}")},
	{[]string{`\`}, replace(dosPath, `…\${1}`)},
}

func replace(expression *regexp.Regexp, with string) func(string) string {
	return func(text string) string { return expression.ReplaceAllString(text, with) }
}

// hideScheme hides what follows "Bearer" and similar words, unless it is an ordinary word: "basic authentication failed".
func hideScheme(text string) string {
	return scheme.ReplaceAllStringFunc(text, func(found string) string {
		parts := scheme.FindStringSubmatch(found)
		if !looksRandom(parts[2]) {
			return found
		}
		return parts[1] + " " + hidden
	})
}

// hideAssignment hides the value of a name that looks like a secret. After a bare colon the value must look random too, because
// "unexpected token: end of file" is an ordinary sentence; the value of a password is always hidden.
func hideAssignment(text string) string {
	return assignment.ReplaceAllStringFunc(text, func(found string) string {
		parts := assignment.FindStringSubmatch(found)
		name, between, value := parts[1], parts[2], parts[3]
		sentence := strings.TrimSpace(between) == ":" && value[0] != '"' && value[0] != '\''
		if sentence && !looksRandom(value) && !passwordName.MatchString(name) {
			return found
		}
		return name + between + hidden
	})
}

var passwordName = regexp.MustCompile(passwordWord)

// looksRandom reports whether a word looks random and not like a word of a language.
func looksRandom(word string) bool {
	return len(word) >= 24 || len(word) >= 6 && strings.ContainsAny(word, "0123456789=+/_")
}

// SecretName reports whether a name is that of a secret whatever its value: password, api_key, Authorization.
func SecretName(name string) bool { return secretNames.MatchString(name) }

var secretNames = regexp.MustCompile(`(?i)^(?:` + secretWord + `|.*authorization|(?:set-)?cookie)$`)
