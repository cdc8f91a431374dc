// Package subscription says who wants to be told of what, and where. It is pure: package notify reads the feed and carries out what
// subscriptions ask for, package ops keeps them.
package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Room is where subscriptions are kept as records; the name of a record is the subscription's id.
const Room = "subscription"

// Queue is where deliveries wait. What befalls them is told to no subscription: that would never end.
const Queue = "holdfast"

// FromHead is the cursor of a subscription that begins with whatever happens next.
const FromHead int64 = -1

// A Subscription wants to be told of some events, at one place. Empty lists do not narrow; a "*" at the end of a word in Events, Kinds,
// Owners and Codes stands for any rest.
type Subscription struct {
	ID     holdfast.ID `json:"id"` // made by Prepare when zero
	Name   string      `json:"name,omitempty"`
	Sink   string      `json:"sink"`   // how it is told: webhook, mail, stream, or what else the process was given
	Target string      `json:"target"` // where: an address the sink understands. It is shown to people: no secrets

	// Events are types as Type makes them: job.failed, group.partial, breaker.opened, schedule.*. A word without a dot is a job's:
	// failed stands for job.failed. A lone * is everything.
	Events []string      `json:"events,omitempty"`
	Kinds  []string      `json:"kinds,omitempty"`
	Owners []string      `json:"owners,omitempty"`
	Codes  []string      `json:"codes,omitempty"`
	Groups []holdfast.ID `json:"groups,omitempty"` // their members, and the groups themselves

	Secrets []string          `json:"secrets,omitempty"` // their names, newest first; never the secrets
	Options map[string]string `json:"options,omitempty"` // of the sink

	Disabled string `json:"disabled,omitempty"` // why it is told nothing; empty: it is
	Cursor   int64  `json:"cursor"`             // the last event it was asked about; FromHead: none yet
	Missed   int64  `json:"missed,omitempty"`   // events that retention had deleted before it got to them
	// Sending is the delivery under way, of a sink that wants one at a time.
	Sending holdfast.ID `json:"sending,omitzero"`

	CreatedAt time.Time `json:"created_at,omitzero"`
	Actor     string    `json:"actor,omitempty"` // who made it
}

// Owner is whose jobs the deliveries of a subscription are, and the subject of what befalls it.
func Owner(id holdfast.ID) string { return Room + "/" + id.String() }

// Type is what an event is called outside: job.failed, group.partial, breaker.opened, duty.paused. The first word says what it is
// about, and blanks in a name become underscores.
func Type(e holdfast.Event) string {
	about := "feed" // the feed's own word on something it no longer knows
	switch {
	case !e.Job.IsZero():
		about = "job"
	case e.Subject != "":
		about, _, _ = strings.Cut(e.Subject, "/")
	}
	return about + "." + word(e.Name)
}

func word(name string) string { return strings.ReplaceAll(name, " ", "_") }

// Matches reports whether the subscription wants to be told of an event.
func (s *Subscription) Matches(e holdfast.Event) bool {
	if e.Queue == Queue {
		return false
	}
	return among(s.Events, func(pattern string) bool { return covers(full(pattern), Type(e)) }) &&
		among(s.Kinds, func(pattern string) bool { return e.Kind != "" && covers(pattern, e.Kind) }) &&
		among(s.Owners, func(pattern string) bool { return e.Owner != "" && covers(pattern, e.Owner) }) &&
		among(s.Codes, func(pattern string) bool { return e.Code != "" && covers(pattern, e.Code) }) &&
		among(s.Groups, func(group holdfast.ID) bool { return e.Group == group || e.Subject == "group/"+group.String() })
}

// among reports whether some entry fits. No entries fit everything.
func among[T any](entries []T, fits func(T) bool) bool {
	return len(entries) == 0 || slices.ContainsFunc(entries, fits)
}

// covers compares a text with a pattern that may end in a star.
func covers(pattern, text string) bool {
	if rest, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(text, rest)
	}
	return pattern == text
}

// full writes a pattern with the word it begins with: a lone word is a job's.
func full(pattern string) string {
	if pattern != "*" && !strings.Contains(pattern, ".") {
		pattern = "job." + pattern
	}
	return word(pattern)
}

// inFeed are the events of jobs that are only written while somebody listens for them.
var inFeed = []string{
	holdfast.EventQueued, holdfast.EventProcessing, holdfast.EventReclaimed, holdfast.EventRetry, holdfast.EventReturned,
	holdfast.EventComplete, holdfast.EventFailed, holdfast.EventExpired, holdfast.EventCancelled,
}

// Listener says what must be written to the feed for this subscription. A disabled one goes on listening, so that it can be enabled
// without a gap.
func (s *Subscription) Listener() holdfast.Listener {
	l := holdfast.Listener{Name: Owner(s.ID)}
	for _, name := range inFeed {
		if among(s.Events, func(pattern string) bool { return covers(full(pattern), "job."+name) }) {
			l.Events = append(l.Events, name)
		}
	}
	if !slices.Contains(l.Events, holdfast.EventFailed) && among(s.Events, func(pattern string) bool { return covers(full(pattern), "job."+holdfast.EventBenign) }) {
		l.Events = append(l.Events, holdfast.EventFailed) // the feed tells a benign end from a failed one when it is read
	}
	if len(l.Events) == len(inFeed) {
		l.Events = []string{"*"}
	}
	return l
}
