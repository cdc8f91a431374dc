package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// A Line is a setting as people may see it.
type Line struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Shown is everything as people may see it: what is secret is left out.
func (v Values) Shown() []Line {
	lines := make([]Line, len(Settings))
	for i, s := range Settings {
		value := v.Of(s.Name)
		text := value.Text
		switch {
		case text == "":
		case s.Shown:
			text = Redacted(text)
		case s.Secret:
			text = "(set)"
		}
		lines[i] = Line{s.Name, text, value.From}
	}
	return lines
}

// unreadable stands for an address of which no part can be told from a password.
const unreadable = "(an address that cannot be read)"

// Redacted is an address without what is secret in it. Where that cannot be told apart, as in a connection string of keywords or in a URL that
// is not well formed, nothing of the address is left.
func Redacted(address string) string {
	if !strings.Contains(address, "://") {
		if mayBeSecret.MatchString(address) {
			return unreadable
		}
		return address
	}
	parts := []string{address}
	if strings.Count(address, "://") > 1 { // NATS takes several
		parts = strings.Split(address, ",")
	}
	for i, part := range parts {
		parts[i] = redactedURL(part)
	}
	return strings.Join(parts, ",")
}

// mayBeSecret finds keywords with values (host=db password=x), a scheme without its slashes (postgres:user:password@host) and a user with a password.
// A single letter before a colon is a drive on Windows.
var mayBeSecret = regexp.MustCompile(`(?i)(^|\s)[a-z_]+\s*=|^\w{2,}:.*@|^postgres(ql)?:|pass(word|wd)?\s*=`)

func redactedURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return unreadable
	}
	switch _, has := u.User.Password(); {
	case has:
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	case u.User != nil && !strings.HasPrefix(u.Scheme, "postgres"):
		u.User = url.User("xxxxx") // NATS takes a token in the place of a user
	}
	if q := u.Query(); len(q) > 0 {
		for name := range q {
			if secretOption.MatchString(name) {
				q.Set(name, "xxxxx")
			}
		}
		u.RawQuery = q.Encode()
	}
	return u.String()
}

var secretOption = regexp.MustCompile(`(?i)pass|secret|token`)

// Reference is docs/configuration.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(preface)
	chapter := ""
	for _, s := range Settings {
		if s.Chapter != chapter {
			chapter = s.Chapter
			fmt.Fprintf(&b, "\n## %s\n\n| Flag | Environment | Form | Default | What it is |\n|---|---|---|---|---|\n", chapter)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.flagText(), s.envText(), s.formText(), code(s.Default), strings.ReplaceAll(s.About, "|", "\\|"))
	}
	b.WriteString(epilogue)
	return b.String()
}

func (s Setting) flagText() string {
	if !s.HasFlag() {
		return ""
	}
	return code("--" + s.Name)
}

func (s Setting) envText() string {
	names := []string{code(s.Env())}
	if s.Secret {
		names = append(names, code(s.Env()+fileSuffix))
	}
	for _, a := range s.Also {
		name := code(a.Env)
		if a.Unit > 0 {
			name += fmt.Sprintf(" (a number of %s)", map[string]string{"1s": "seconds", "1ms": "milliseconds"}[a.Unit.String()])
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func (s Setting) formText() string {
	if len(s.Choices) > 0 {
		return strings.Join(s.Choices, ", ")
	}
	return string(s.Form)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

const preface = `# Configuration

This page is made from the table in ` + "`config/setting.go`" + ` by ` + "`go test ./config -update`" + `; change it there.

A flag goes before the environment, and the environment before the default. ` + "`holdfast config`" + ` prints what holds and where it was said,
without secrets. A name that begins with ` + "`HOLDFAST_`" + ` and that nobody knows is refused, with the nearest name that is known. A
variable that is set to nothing counts as not set.

Durations are written ` + "`1m30s`, `500ms`, `36h`" + `; lists with commas; shares ` + "`50%` or `0.5`" + `. What is secret has no flag, because every user of
a machine sees the flags of its processes; with ` + "`_FILE`" + ` behind its name a variable names a file that holds it.
`

const epilogue = `
## Secrets that jobs and subscriptions name

| Environment | What it is |
|---|---|
| ` + "`HOLDFAST_SECRET_<NAME>`, `HOLDFAST_SECRET_<NAME>_FILE`" + ` | A secret that a subscription or a job of kind http names; what is kept is only the name. |

## Traces

Traces are sent when ` + "`OTEL_EXPORTER_OTLP_ENDPOINT`" + ` is set; the other ` + "`OTEL_*`" + ` variables of OpenTelemetry are followed too.

## Names that belong to applications

` + "`GATEWAY_URL`, `UPLOADS_DIR` and `RESULTS_DIR`" + ` are an application's own: Holdfast does not read them.
`
