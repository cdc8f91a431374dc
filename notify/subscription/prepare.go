package subscription

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

const (
	maxEntries = 100  // maximum length of each list
	maxTarget  = 2048 // bytes
	maxOption  = 4096
)

// problems collects what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)})
}

// text refuses a text that is not safe in a log, a mail header or a terminal.
func (p *problems) text(what, text string, limit int) {
	if len(text) > limit || !check.PlainText(text) {
		p.add("%s has %d bytes or control characters: use at most %d bytes of UTF-8 without control characters", what, len(text), limit)
	}
	if looksSecret(text) {
		p.add("%s looks like it contains a secret: configure the secret for the notifier, and give its name in Secrets", what)
	}
}

// looksSecret recognises the form of a signing key. Messages never repeat the text.
func looksSecret(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "whsec_") || strings.Contains(lower, "whsk_")
}

// Prepare sets the id if it is zero, and refuses a subscription that is not valid; the error names every problem. It must be called before a subscription is
// stored. Only the sink can check the target.
func (s *Subscription) Prepare() error {
	if s.ID.IsZero() {
		s.ID = holdfast.NewID()
	}
	var p problems
	p.text("the name", s.Name, check.MaxKey)
	p.text("the target", s.Target, maxTarget)
	p.text("the actor", s.Actor, check.MaxKey)
	p.text("the reason for disabling", s.Disabled, 1000)
	if probe := (holdfast.Draft{Kind: "delivery." + s.Sink}); s.Sink == "" || probe.Prepare() != nil {
		p.add("the sink %.60q is not valid: give the name of one, such as webhook, mail or stream", s.Sink)
	}
	for _, pattern := range s.Events {
		p.pattern(pattern)
	}
	p.entries("kind", s.Kinds)
	p.entries("owner", s.Owners)
	p.entries("code", s.Codes)
	if most := max(len(s.Events), len(s.Kinds), len(s.Owners), len(s.Codes), len(s.Groups)); most > maxEntries {
		p.add("a list has %d entries, the maximum is %d: use a * at the end of an entry, which matches any rest", most, maxEntries)
	}
	if slices.ContainsFunc(s.Groups, holdfast.ID.IsZero) {
		p.add("a group has no id: leave it out")
	}
	s.prepareSecrets(&p)
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		p.text(fmt.Sprintf("option %.60q", key), key, 64)
		p.text(fmt.Sprintf("the value of option %.60q", key), s.Options[key], maxOption)
	}
	if s.Cursor < FromHead {
		p.add("the cursor is %d: give the number of the last event that was delivered, or %d to start with the next", s.Cursor, FromHead)
	}
	return errors.Join(p...)
}

func (p *problems) entries(what string, entries []string) {
	for _, entry := range entries {
		p.text("a "+what, entry, check.MaxKey)
		if entry == "" || strings.Contains(strings.TrimSuffix(entry, "*"), "*") {
			p.add("%s %.60q is not valid: give a name; a * at its end matches any rest", what, entry)
		}
	}
}

// pattern refuses an event type that does not exist, so that a misspelled subscription does not stay silent.
func (p *problems) pattern(pattern string) {
	p.text("an event", pattern, check.MaxKey)
	if looksSecret(pattern) {
		return
	}
	if strings.Contains(strings.TrimSuffix(pattern, "*"), "*") || pattern == "" {
		p.add("event %.60q is not valid: give a type such as job.failed or group.partial; a * at its end matches any rest", pattern)
		return
	}
	if pattern == "*" {
		return
	}
	subject, name, _ := strings.Cut(withSubject(pattern), ".")
	known := eventNames[subject]
	switch {
	case known == nil:
		p.add("event %.60q does not exist: the subjects of events are %s", pattern, strings.Join(slices.Sorted(maps.Keys(eventNames)), ", "))
	case name == "":
		p.add("event %.60q is incomplete: give a type, or %s.* for all", pattern, subject)
	case !slices.ContainsFunc(known, func(each string) bool { return matchesPattern(name, each) || matchesPattern(each, name) }):
		p.add("event %.60q does not exist: the events of the subject %s are %s; for other subjects give the subject first, as in breaker.*", pattern, subject, strings.Join(known, ", "))
	}
}

func (s *Subscription) prepareSecrets(p *problems) {
	if len(s.Secrets) > 10 {
		p.add("there are %d secrets, the maximum is 10: remove those that no receiver uses any more", len(s.Secrets))
	}
	for i, name := range s.Secrets {
		switch {
		case looksSecret(name):
			p.add("secret %d looks like the secret itself: give its name instead", i+1)
		case !validSecretName(name):
			p.add("the name of secret %d is not valid: give a name, not the secret itself; use 1 to 64 letters, digits and _ - .", i+1)
		}
	}
}

func validSecretName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.'
	})
}
