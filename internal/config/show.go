package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// A Line is a setting as it is printed.
type Line struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Shown returns all settings for printing, without secrets.
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

// unreadable replaces an address in which a password cannot be located.
const unreadable = "(an address that cannot be read)"

// Redacted returns an address without its secrets. If these cannot be located, as in a connection string of keywords or in a malformed URL, nothing of the address is
// returned.
func Redacted(address string) string {
	if !strings.Contains(address, "://") {
		if mayBeSecret.MatchString(address) {
			return unreadable
		}
		return address
	}
	parts := []string{address}
	if strings.Count(address, "://") > 1 { // NATS accepts several URLs
		parts = strings.Split(address, ",")
	}
	for i, part := range parts {
		parts[i] = redactedURL(part)
	}
	return strings.Join(parts, ",")
}

// mayBeSecret matches keywords with values (host=db password=x), a scheme without slashes (postgres:user:password@host), a user with a password, also after two
// slashes (postgres//user:password@host), and an API key. A single letter before a colon and a path is a Windows drive.
var mayBeSecret = regexp.MustCompile(`(?i)(^|\s)[a-z_]+\s*=|^\w{2,}:.*@|^\w:[^/\\]*@|//[^/\\:@]+:.*@|^postgres(ql)?:|pass(word|wd)?\s*=|^hf_`)

func redactedURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return unreadable
	}
	switch _, has := u.User.Password(); {
	case has:
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	case u.User != nil && !strings.HasPrefix(u.Scheme, "postgres"):
		u.User = url.User("xxxxx") // NATS accepts a token in place of the user name
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

// Reference returns the content of docs/configuration.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(preface)
	chapter := ""
	for _, s := range Settings {
		if s.Chapter != chapter {
			chapter = s.Chapter
			fmt.Fprintf(&b, "\n## %s\n\n| Flag | Environment | Form | Default | Description |\n|---|---|---|---|---|\n", chapter)
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

This page is generated from the table in ` + "`internal/config/setting.go`" + ` by ` + "`go test ./internal/config -update`" + `. Edit the table, not this page.

A flag takes precedence over the environment, and the environment over the default. ` + "`holdfast config`" + ` prints the effective settings and where each comes from,
without secrets. An unknown variable that begins with ` + "`HOLDFAST_`" + ` is an error, which suggests the most similar name. An empty variable counts as not set.

Durations are written as ` + "`1m30s`, `500ms`, `36h`" + `; lists are separated by commas; shares are written as ` + "`50%` or `0.5`" + `. Secrets have no flag, because every user
of a machine can see the flags of its processes. For a secret, the variable with ` + "`_FILE`" + ` appended names a file that contains it.
`

const epilogue = `
## Secrets of jobs and subscriptions

| Environment | Description |
|---|---|
| ` + "`HOLDFAST_SECRET_<NAME>`, `HOLDFAST_SECRET_<NAME>_FILE`" + ` | A secret that a subscription or a job of kind http refers to by name. The store contains only the name. |

## Traces and metrics

Traces and metrics are sent over OTLP/HTTP if ` + "`OTEL_EXPORTER_OTLP_ENDPOINT`" + ` is set, or for only one of them ` + "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`" + ` or
` + "`OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`. `OTEL_TRACES_EXPORTER=none` and `OTEL_METRICS_EXPORTER=none`" + ` switch one of them off. The other ` + "`OTEL_*`" + ` variables of OpenTelemetry apply too.

## Variables of applications

` + "`GATEWAY_URL`, `UPLOADS_DIR` and `RESULTS_DIR`" + ` belong to applications. Holdfast does not read them.
`
