package subscription

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
)

const (
	maxEntries = 100  // of each list
	maxTarget  = 2048 // bytes
	maxOption  = 4096
)

// What events may be about, and what may befall a job or a group. Of everything else the names are its own affair.
var (
	abouts = []string{
		"job", "group", "breaker", "budget", "hold", "redrive", "error", "share", "policy", "duty", "schedule", "retention", "subscription", "feed",
	}
	ofJobs = append([]string{
		"manual_retry", "cancel", "discard", "redrive", "breach", "resend", "forgotten",
	}, inFeed...)
	ofGroups = []string{"ready", "partial", "failed", "cancelled", "expired", "reopened", "manual_retry", "cancel", "seal", "sealed"}
)

// problems gathers what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)})
}

// text admits what is safe in a log, a mail header and a terminal.
func (p *problems) text(what, text string, limit int) {
	if len(text) > limit || !holdfast.PlainText(text) {
		p.add("%s of %d bytes: use at most %d bytes of UTF-8 without control characters", what, len(text), limit)
	}
	if looksSecret(text) {
		p.add("%s holds what looks like a secret: keep the secret where the notifier finds it, and name it in Secrets", what)
	}
}

// looksSecret knows the shape of a signing key. The text itself is never repeated.
func looksSecret(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "whsec_") || strings.Contains(lower, "whsk_")
}

// Prepare fills in the id and refuses a subscription that makes no sense, naming every problem at once. Whether its target can work only its
// sink knows. Whoever keeps subscriptions calls it first.
func (s *Subscription) Prepare() error {
	if s.ID.IsZero() {
		s.ID = holdfast.NewID()
	}
	var p problems
	p.text("the name", s.Name, holdfast.MaxKey)
	p.text("the target", s.Target, maxTarget)
	p.text("the actor", s.Actor, holdfast.MaxKey)
	p.text("the reason it is disabled", s.Disabled, 1000)
	if probe := (holdfast.Draft{Kind: "delivery." + s.Sink}); s.Sink == "" || probe.Prepare() != nil {
		p.add("sink %.60q: name the way to tell, such as webhook, mail or stream", s.Sink)
	}
	for _, pattern := range s.Events {
		p.pattern(pattern)
	}
	p.entries("kind", s.Kinds)
	p.entries("owner", s.Owners)
	p.entries("code", s.Codes)
	if most := max(len(s.Events), len(s.Kinds), len(s.Owners), len(s.Codes), len(s.Groups)); most > maxEntries {
		p.add("%d entries in a list: the limit is %d; a * at the end stands for any rest", most, maxEntries)
	}
	if slices.ContainsFunc(s.Groups, holdfast.ID.IsZero) {
		p.add("a group without an id: leave it out")
	}
	s.prepareSecrets(&p)
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		p.text(fmt.Sprintf("option %.60q", key), key, 64)
		p.text(fmt.Sprintf("the value of option %.60q", key), s.Options[key], maxOption)
	}
	if s.Cursor < FromHead {
		p.add("a cursor of %d: give the number of the last event it knows, or %d to begin with the next", s.Cursor, FromHead)
	}
	return errors.Join(p...)
}

func (p *problems) entries(what string, entries []string) {
	for _, entry := range entries {
		p.text("a "+what, entry, holdfast.MaxKey)
		if entry == "" || strings.Contains(strings.TrimSuffix(entry, "*"), "*") {
			p.add("%s %.60q: give a name; a * may stand at its end, for any rest", what, entry)
		}
	}
}

// pattern refuses a type of event that nothing has, so that a slip of the pen does not stay silent for ever.
func (p *problems) pattern(pattern string) {
	p.text("an event", pattern, holdfast.MaxKey)
	if looksSecret(pattern) {
		return
	}
	if strings.Contains(strings.TrimSuffix(pattern, "*"), "*") || pattern == "" {
		p.add("event %.60q: give a type such as job.failed or group.partial; a * may stand at its end, for any rest", pattern)
		return
	}
	if pattern == "*" {
		return
	}
	about, name, _ := strings.Cut(full(pattern), ".")
	known := map[string][]string{"job": ofJobs, "group": ofGroups}[about]
	switch {
	case !slices.Contains(abouts, about):
		p.add("event %.60q: events are about %s", pattern, strings.Join(abouts, ", "))
	case name == "":
		p.add("event %.60q: say what of it, or %s.* for all", pattern, about)
	case known != nil && !slices.ContainsFunc(known, func(each string) bool { return covers(name, each) }):
		p.add("event %.60q: a %s has %s; for anything else say what it is about, as in breaker.*", pattern, about, strings.Join(known, ", "))
	}
}

func (s *Subscription) prepareSecrets(p *problems) {
	if len(s.Secrets) > 10 {
		p.add("%d secrets: the limit is 10; leave out those that no receiver goes by any more", len(s.Secrets))
	}
	for i, name := range s.Secrets {
		switch {
		case looksSecret(name):
			p.add("secret %d looks like a secret: name the secret, do not give it", i+1)
		case !nameOfSecret(name):
			p.add("secret %d: name the secret, do not give it; use 1 to 64 letters, digits and _ - .", i+1)
		}
	}
}

func nameOfSecret(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.'
	})
}
