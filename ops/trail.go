package ops

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// An AuditFilter says whose deeds, or to what. Of Subject and Job at most one; with neither, the feed is read from After on.
type AuditFilter struct {
	Subject string      // "group/<id>", "duty/promote", "retention", ...: as far back as stories are kept
	Job     holdfast.ID // or a job: as far back as it is kept
	Actor   string      // only this person's, whatever the case of the letters
	After   int64       // in the feed
	Limit   int         // at most so many; 200 when zero
}

// A Trail is what people did: who, what, why, when and in which request.
type Trail struct {
	Events []holdfast.Event `json:"events"`         // of a subject or a job and of the feed alike: the oldest first
	Next   int64            `json:"next,omitempty"` // in the feed: read on after this
	Head   int64            `json:"head,omitempty"` // in the feed: the newest there is; at Next the trail is at its end
	Missed int64            `json:"missed,omitempty"`
}

// Trail tells what people did. What the workers do by themselves is not in it. The feed reaches back as far as it is kept, which is less
// far than stories are: what was done to one thing longer ago is found by its subject.
func (s *Service) Trail(ctx context.Context, f AuditFilter) (Trail, error) {
	if f.Limit <= 0 || f.Limit > mostListed {
		f.Limit = mostListed
	}
	switch {
	case f.Subject != "" && !f.Job.IsZero():
		return Trail{}, invalid("both a subject and a job: give one")
	case f.Subject != "":
		events, err := s.store.Events(ctx, f.Subject, mostListed)
		slices.Reverse(events)
		return f.pick(events), err
	case !f.Job.IsZero():
		history, err := s.store.History(ctx, f.Job)
		return f.pick(history.Events), err
	}
	return s.walkFeed(ctx, f)
}

// pick takes the last of what people did.
func (f AuditFilter) pick(events []holdfast.Event) Trail {
	mine := slices.DeleteFunc(slices.Clone(events), func(e holdfast.Event) bool { return !f.wants(e) })
	return Trail{Events: mine[max(0, len(mine)-f.Limit):]}
}

func (f AuditFilter) wants(e holdfast.Event) bool {
	if e.Subject == trailSubject && f.Actor == "" {
		return true
	}
	return e.Actor != "" && !breaker.IsSystem(e.Actor) && (f.Actor == "" || strings.EqualFold(f.Actor, e.Actor))
}

// trailSubject is the audit log itself: that lines of it were forgotten is told beside what people did.
const trailSubject = "audit"

// mostWalked bounds one look into the feed: it may hold millions of events of jobs between two deeds.
const mostWalked = 20_000

// walkFeed reads on in the feed until there is enough, until it ends, or until it has looked at plenty.
func (s *Service) walkFeed(ctx context.Context, f AuditFilter) (Trail, error) {
	trail := Trail{Events: []holdfast.Event{}, Next: f.After}
	for looked := 0; looked < mostWalked; looked += mostTold {
		page, err := s.store.Feed(ctx, trail.Next, mostTold)
		if err != nil {
			return Trail{}, err
		}
		trail.Head, trail.Missed = page.Head, trail.Missed+page.Missed
		for _, e := range page.Events {
			trail.Next = e.Seq
			if f.wants(e) {
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
