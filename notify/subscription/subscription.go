// Package subscription defines subscriptions: which events are delivered, how and where. It is pure: package notify reads the feed and delivers, package ops
// stores subscriptions.
package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Namespace is the namespace of the records of subscriptions; the name of a record is the subscription's id.
const Namespace = "subscription"

// Queue is the queue of delivery jobs. Their events are not delivered to any subscription, because each delivery would cause another.
const Queue = "holdfast"

// FromHead is the cursor of a subscription that starts with the next event.
const FromHead int64 = -1

// A Subscription selects events and delivers them to one target. Empty lists match everything; a "*" at the end of an entry in Events, Kinds, Owners and Codes
// matches any rest.
type Subscription struct {
	ID     holdfast.ID `json:"id"`             // set by Prepare when zero
	Name   string      `json:"name,omitempty"` // name for people
	Sink   string      `json:"sink"`           // how events are delivered: webhook, mail, stream, or another sink that the process has
	Target string      `json:"target"`         // where events are delivered: an address that the sink understands; it is shown to people and must not contain a secret

	// Events are types as Type returns them: job.failed, group.partial, breaker.open, schedule.*. A word without a dot is an event of jobs: failed means
	// job.failed. A single * is everything.
	Events []string      `json:"events,omitempty"`
	Kinds  []string      `json:"kinds,omitempty"`  // only events of jobs of these kinds
	Owners []string      `json:"owners,omitempty"` // only events of these owners
	Codes  []string      `json:"codes,omitempty"`  // only events with these failure codes
	Groups []holdfast.ID `json:"groups,omitempty"` // only events of these groups and their members

	Secrets []string          `json:"secrets,omitempty"` // names of the signing secrets, newest first; never the secrets themselves
	Options map[string]string `json:"options,omitempty"` // options of the sink

	Disabled string `json:"disabled,omitempty"` // why the subscription is disabled; empty if it is enabled
	Cursor   int64  `json:"cursor"`             // number of the last event that was considered; FromHead for none yet
	Missed   int64  `json:"missed,omitempty"`   // number of events that retention deleted before they were delivered
	// Sending is the delivery in progress, for a sink that delivers one at a time.
	Sending holdfast.ID `json:"sending,omitzero"`

	CreatedAt time.Time `json:"created_at,omitzero"` // when the subscription was created
	Actor     string    `json:"actor,omitempty"`     // who created it
}

// Owner is the owner of a subscription's delivery jobs, and the subject of its own events.
func Owner(id holdfast.ID) string { return Namespace + "/" + id.String() }

// Type is the public type of an event: job.failed, group.partial, breaker.open, duty.paused. The first word is the subject; spaces in a name become underscores.
func Type(e store.Event) string {
	subject := "feed" // for an event whose subject was deleted
	switch {
	case !e.Job.IsZero():
		subject = "job"
	case e.Subject != "":
		subject, _, _ = strings.Cut(e.Subject, "/")
	}
	return subject + "." + underscored(e.Name)
}

func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }

// Matches reports whether an event is delivered to the subscription.
func (s *Subscription) Matches(e store.Event) bool {
	if e.Queue == Queue {
		return false
	}
	return matchesAny(s.Events, func(pattern string) bool { return matchesPattern(withSubject(pattern), Type(e)) }) &&
		matchesAny(s.Kinds, func(pattern string) bool { return e.Kind != "" && matchesPattern(pattern, e.Kind) }) &&
		matchesAny(s.Owners, func(pattern string) bool { return e.Owner != "" && matchesPattern(pattern, e.Owner) }) &&
		matchesAny(s.Codes, func(pattern string) bool { return e.Code != "" && matchesPattern(pattern, e.Code) }) &&
		matchesAny(s.Groups, func(group holdfast.ID) bool { return e.Group == group || e.Subject == "group/"+group.String() })
}

// matchesAny reports whether an entry matches. An empty list matches everything.
func matchesAny[T any](entries []T, fits func(T) bool) bool {
	return len(entries) == 0 || slices.ContainsFunc(entries, fits)
}

// matchesPattern compares a text with a pattern that may end in a star.
func matchesPattern(pattern, text string) bool {
	if rest, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(text, rest)
	}
	return pattern == text
}

// withSubject completes a pattern with its subject: a single word is an event of jobs.
func withSubject(pattern string) string {
	if pattern != "*" && !strings.Contains(pattern, ".") {
		pattern = "job." + pattern
	}
	return underscored(pattern)
}

// listenedEvents are the events of jobs that are only written to the feed while a listener wants them.
var listenedEvents = []string{
	store.EventQueued, store.EventProcessing, store.EventReclaimed, store.EventRetry, store.EventReleased,
	store.EventComplete, store.EventFailed, store.EventExpired, store.EventCancelled,
}

// Listener returns which events the store must write to the feed for this subscription. A disabled subscription still listens, so that it can be enabled without a
// gap.
func (s *Subscription) Listener() store.Listener {
	l := store.Listener{Name: Owner(s.ID)}
	for _, name := range listenedEvents {
		if matchesAny(s.Events, func(pattern string) bool { return matchesPattern(withSubject(pattern), "job."+name) }) {
			l.Events = append(l.Events, name)
		}
	}
	if !slices.Contains(l.Events, store.EventFailed) && matchesAny(s.Events, func(pattern string) bool { return matchesPattern(withSubject(pattern), "job."+store.EventBenign) }) {
		l.Events = append(l.Events, store.EventFailed) // a benign failure is written as failed; readers of the feed distinguish them
	}
	if len(l.Events) == len(listenedEvents) {
		l.Events = []string{"*"}
	}
	return l
}
