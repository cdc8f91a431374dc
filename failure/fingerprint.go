package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// fingerprint returns the identity of an error group. It is equal for failures with the same code whose errors have the
// same types and the same text apart from values that differ between jobs, and, for a panic, the same place.
func fingerprint(code string, err error, text, stack string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n%s", code, strings.Join(typesOf(err), " "), normalised.get(text), strings.Join(stackFunctions(stack), " "))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// typesOf lists the types in an error chain, outermost first, without those that only wrap.
func typesOf(err error) (types []string) {
	walk(err, func(e error) bool {
		name := fmt.Sprintf("%T", e)
		if _, isMark := e.(*mark); !isMark && !strings.HasPrefix(name, "*fmt.") && !strings.HasPrefix(name, "*errors.") {
			types = append(types, name)
		}
		return len(types) < 16
	})
	return types
}

// A blank replaces a part of a text that differs between jobs.
type blank struct {
	needs      string // a text without any of these characters cannot match; saves running slow expressions
	expression *regexp.Regexp
	with       string
}

const (
	digits       = "0123456789"
	alphanumeric = digits + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

	notPath = "\\s/\\\\:\"'`<>|,;()\\[\\]{}"
)

// blanks are applied in this order: a pattern comes before the patterns of its parts.
var blanks = []blank{
	{`"`, regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`), "<text>"},
	{"`", regexp.MustCompile("`[^`\n]*`"), "<text>"},
	{"'", regexp.MustCompile(`(^|[\s(\[=:,])'[^'\n]*'`), "$1<text>"},
	{"‘“«", regexp.MustCompile(`‘[^’\n]*’|“[^”\n]*”|«[^»\n]*»`), "<text>"},
	{"/", regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*[^\s"'<>.,:;!?)\]}]`), "<url>"},
	{"@", regexp.MustCompile(`[\w.%+-]+@[\w-]+(?:\.[\w-]+)+`), "<email>"},
	{digits, regexp.MustCompile(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d))*)?`), "<time>"},
	{digits, regexp.MustCompile(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? \d{1,2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d(?: (?:GMT|UTC|[+-]\d{4}))?`), "<time>"},
	{digits, regexp.MustCompile(`\b\d{4}/\d\d/\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?`), "<time>"},
	{"-", regexp.MustCompile(`(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b`), "<id>"},
	{"/", regexp.MustCompile("(^|[^\\w/])(?:~|…|\\.{1,2})?(?:/[^" + notPath + "]+)+/?(?::\\d+)*"), "$1<path>"},
	{"/", regexp.MustCompile(`\b[\w-]+(?:/[\w.@+-]+)+\.[a-z0-9]{1,5}\b`), "<path>"},
	{`\`, regexp.MustCompile(`(?:\b[A-Za-z]:|\\|…)(?:\\[^` + notPath + `]+)+`), "<path>"},
	{".", regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?\b`), "<addr>"},
	{":", regexp.MustCompile(`(?i)\[?\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}\b\]?(?::\d+\b)?|\[::1?\](?::\d+)?`), "<addr>"},
	{"x", regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "<id>"},
	{digits, regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\b`), "<duration>"},
}

var number = regexp.MustCompile(`[+-]?\d+(?:[.,]\d+)*`)

var normalised = memo{of: normalise}

// normalise replaces the parts of a text that differ between jobs, so that equal causes have equal texts.
func normalise(text string) string {
	text = cut(text, maxDetail)
	for _, b := range blanks {
		if strings.ContainsAny(text, b.needs) {
			text = b.expression.ReplaceAllString(text, b.with)
		}
	}
	text = blankIDs(text)
	if strings.ContainsAny(text, digits) {
		text = number.ReplaceAllString(text, "<n>")
	}
	return strings.Join(strings.Fields(text), " ")
}

// blankIDs replaces words that look like ids.
func blankIDs(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		rest := strings.TrimLeft(text, alphanumeric)
		if word := text[:len(text)-len(rest)]; idLike(word) {
			b.WriteString("<id>")
		} else {
			b.WriteString(word)
		}
		next := strings.IndexAny(rest, alphanumeric)
		if next < 0 {
			next = len(rest)
		}
		b.WriteString(rest[:next])
		text = rest[next:]
	}
	return b.String()
}

// idLike reports whether a word mixes letters and digits, as most ids do, or is long and hexadecimal.
func idLike(word string) bool {
	if len(word) < 8 {
		return false
	}
	mixed := strings.ContainsAny(word, digits) && strings.Trim(word, digits) != ""
	return mixed || len(word) >= 16 && strings.Trim(word, digits+"abcdefABCDEF") == ""
}

// stackFunctions returns the names of the first three functions on a panic's stack, below the panic itself and outside the runtime.
// Line numbers and addresses are left out, so that an unrelated change of the file does not start another error group.
func stackFunctions(stack string) (names []string) {
	_, below, panicked := strings.Cut(stack, "\npanic(")
	if panicked {
		stack = below
	}
	for i, line := range strings.Split(stack, "\n") {
		open := strings.LastIndexByte(line, '(')
		skip := i == 0 && panicked || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "created by ") ||
			strings.HasPrefix(line, "runtime.") || strings.HasPrefix(line, "runtime/debug.")
		if skip || open <= 0 {
			continue
		}
		if names = append(names, line[:open]); len(names) == 3 {
			break
		}
	}
	return names
}
