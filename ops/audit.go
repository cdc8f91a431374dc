package ops

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// An AuditFilter selects entries of the audit log. At most one of Subject and Job is set; with neither, the feed is read
// after After.
type AuditFilter struct {
	Subject string      // "group/<id>", "duty/promote", "retention", ...: as far back as stories are kept
	Job     holdfast.ID // or a job: as far back as it is kept
	Actor   string      // only actions of this actor, ignoring case
	After   int64       // number in the feed
	Limit   int         // page size; 200 when zero
}

// An AuditLog is a page of the audit log: what people did, when, why and in which request.
type AuditLog struct {
	Events []store.Event `json:"events"`         // the oldest first
	Next   int64         `json:"next,omitempty"` // in the feed: continue after this number
	Head   int64         `json:"head,omitempty"` // in the feed: the newest event; if it equals Next, there are no more
	Missed int64         `json:"missed,omitempty"`
}

// AuditLog returns entries of the audit log: actions of people, and not what workers do by themselves. The feed is kept for a
// shorter time than stories: to find older actions, ask by subject.
func (s *Service) AuditLog(ctx context.Context, f AuditFilter) (AuditLog, error) {
	if f.Limit <= 0 || f.Limit > maxPage {
		f.Limit = maxPage
	}
	switch {
	case f.Subject != "" && !f.Job.IsZero():
		return AuditLog{}, invalid("both a subject and a job: give one")
	case f.Subject != "":
		events, err := s.store.Events(ctx, f.Subject, maxPage)
		slices.Reverse(events)
		return f.last(events), err
	case !f.Job.IsZero():
		history, err := s.store.History(ctx, f.Job)
		return f.last(history.Events), err
	}
	return s.readFeed(ctx, f)
}

// last returns the last matching events.
func (f AuditFilter) last(events []store.Event) AuditLog {
	mine := slices.DeleteFunc(slices.Clone(events), func(e store.Event) bool { return !f.matches(e) })
	return AuditLog{Events: mine[max(0, len(mine)-f.Limit):]}
}

func (f AuditFilter) matches(e store.Event) bool {
	if e.Subject == auditSubject && f.Actor == "" {
		return true
	}
	return e.Actor != "" && !breaker.IsSystem(e.Actor) && (f.Actor == "" || strings.EqualFold(f.Actor, e.Actor))
}

// auditSubject is the audit log itself: the deletion of old entries is listed together with actions of people.
const auditSubject = "audit"

// maxFeedEvents limits how much of the feed one call reads, because there may be millions of job events between two actions.
const maxFeedEvents = 20_000

// readFeed reads the feed until the page is full, the feed ends, or maxFeedEvents were read.
func (s *Service) readFeed(ctx context.Context, f AuditFilter) (AuditLog, error) {
	trail := AuditLog{Events: []store.Event{}, Next: f.After}
	for looked := 0; looked < maxFeedEvents; looked += feedPage {
		page, err := s.store.Feed(ctx, trail.Next, feedPage)
		if err != nil {
			return AuditLog{}, err
		}
		trail.Head, trail.Missed = page.Head, trail.Missed+page.Missed
		for _, e := range page.Events {
			trail.Next = e.Seq
			if f.matches(e) {
				trail.Events = append(trail.Events, e)
			}
			if len(trail.Events) == f.Limit {
				return trail, nil
			}
		}
		trail.Next = page.Next
		if len(page.Events) == 0 {
			break
		}
	}
	return trail, nil
}
