package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// funcs returns the template functions.
func (l *templates) funcs() template.FuncMap {
	return template.FuncMap{
		"link":       func(path string, pairs ...any) (string, error) { return link(l.prefix+path, pairs...) },
		"asset":      func(name string) string { return l.prefix + "/asset/" + l.version + "/" + name },
		"icon":       icon,
		"num":        num,
		"capped":     capped,
		"depthCount": depthCount,
		"plural":     plural,
		"percent":    formatPercent,
		"duration":   formatDuration,
		"when":       func(c clock, at time.Time) template.HTML { return c.when(at, time.Now()) },
		"exact":      clock.exact,
		"timed":      func(c clock, of any) timed { return timed{c, of} },
		"short":      short,
		"truncate":   truncate,
		"json":       pretty,
		"title":      title,
		"list":       func(items ...any) []any { return items },
		"dict":       dict,
		"spark":      spark,
		"parts":      parts,
		"join":       strings.Join,
		"add":        func(a, b int) int { return a + b },
		"sub":        func(a, b int) int { return a - b },
	}
}

// timed is the data of a sub-template that shows times. A sub-template needs the clock in its data, because its $ is not the page.
type timed struct {
	Clock clock
	Of    any
}

// link returns a URL with a query of name-value pairs. Pairs with the value "", 0 or false are left out.
func link(path string, pairs ...any) (string, error) {
	if len(pairs)%2 != 0 {
		return "", fmt.Errorf("link %s: names and values come in pairs", path)
	}
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" && value != "0" && value != "false" {
			query.Add(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

// dict returns a map of name-value pairs, for sub-templates with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: names and values come in pairs")
	}
	made := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		made[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return made, nil
}

// icon returns an icon of the sprite. It is hidden from screen readers: the template puts visible or visually hidden text beside it.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="icon" aria-hidden="true"><use href="#` + template.HTMLEscapeString(name) + `"></use></svg>`)
}

// num formats a number with thousands separators.
func num(n any) string {
	text := fmt.Sprint(n)
	whole, rest, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}

// depthCount formats one count of a queue's depth, with a plus if the store stopped counting there.
func depthCount(d store.Depth, number string, jobs int) string {
	if slices.Contains(d.AtLeast, number) {
		return num(jobs) + "+"
	}
	return num(jobs)
}

// capped formats a count, with a plus at ops.MaxCounted, where counting stops.
func capped(n int) string {
	if n >= ops.MaxCounted {
		return num(ops.MaxCounted) + "+"
	}
	return num(n)
}

// plural formats a count with its noun: plural 2 "job" is "2 jobs".
func plural(n int, noun string) string {
	text := capped(n) + " " + noun
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey"):
		text = strings.TrimSuffix(text, "y") + "ies"
	default:
		text += "s"
	}
	return text
}

// formatPercent formats a fraction in percent.
func formatPercent(part float64) string {
	percent := part * 100
	if percent > 0 && percent < 1 || percent > 99 && percent < 100 {
		return strconv.FormatFloat(percent, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(percent, 'f', 0, 64) + " %"
}

// formatDuration formats a duration in at most two units. A negative duration, which different clocks can cause, is shown as 0 s.
func formatDuration(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < day:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, day, "d", time.Hour, "h")
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 && d/big < 10 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// when returns a time element, relative or absolute as the visitor prefers. Its tooltip has the other form and UTC.
func (c clock) when(at, now time.Time) template.HTML {
	if at.IsZero() {
		return `<span class="faint">never</span>`
	}
	text, other := ago(at, now), c.exact(at)
	if c.absolute {
		text, other = other, text
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s · %s UTC">%s</time>`,
		at.UTC().Format(time.RFC3339Nano), other, at.UTC().Format("2006-01-02 15:04:05"), text))
}

// exact formats a time in the visitor's zone.
func (c clock) exact(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	at = at.In(c.zone)
	return at.Format("2006-01-02 15:04:05 ") + zoneName(at)
}

func zoneName(at time.Time) string {
	name, _ := at.Zone()
	if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		return "UTC" + name
	}
	return name
}

// ago formats a time relative to now, in the past or in the future. times.js has the same function.
func ago(at, now time.Time) string {
	switch d := now.Sub(at).Round(time.Second); {
	case d == 0:
		return "now"
	case d > 0:
		return coarse(d) + " ago"
	default:
		return "in " + coarse(-d)
	}
}

// coarse formats a duration in one unit.
func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// short returns the end of an id, where ids differ.
func short(id any) string {
	text := fmt.Sprint(id)
	if len(text) > 12 {
		return "…" + text[len(text)-8:]
	}
	return text
}

// pretty indents JSON and changes nothing else: numbers and keys stay as they were written. Control characters and characters that change the direction of text
// are escaped; the result is the same JSON, also when it comes back from a form.
func pretty(text json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	if !bytes.ContainsFunc(out.Bytes(), isUnsafeRune) {
		return out.String()
	}
	var shown strings.Builder
	for _, r := range out.String() {
		if isUnsafeRune(r) {
			fmt.Fprintf(&shown, `\u%04x`, r)
		} else {
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

// title returns a text with a capital letter.
func title(word any) string {
	text := fmt.Sprint(word)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
