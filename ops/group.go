package ops

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// A Gathering is all about one group: how its members stand, which of them need somebody, and what was said of it.
type Gathering struct {
	Group  holdfast.Group   `json:"group"`
	Failed []holdfast.Job   `json:"failed"` // members that are dead letters, the newest first, at most twenty
	Live   []holdfast.Job   `json:"live"`   // members in workers' hands, the newest first, at most twenty
	Inside []holdfast.Group `json:"inside"` // groups that are its members, the newest first, at most a page
	Story  []holdfast.Event `json:"story"`  // the newest first
}

// Group tells all about one group.
func (s *Service) Group(ctx context.Context, id holdfast.ID) (g Gathering, err error) {
	if g.Group, err = s.store.Group(ctx, id); err != nil {
		return Gathering{}, err
	}
	if g.Failed, _, err = s.store.Jobs(ctx, holdfast.Filter{Group: id, DeadLetters: true, Limit: samples}); err != nil {
		return Gathering{}, err
	}
	if g.Live, _, err = s.store.Jobs(ctx, holdfast.Filter{Group: id, State: holdfast.Processing, Limit: samples}); err != nil {
		return Gathering{}, err
	}
	if g.Inside, _, err = s.store.Groups(ctx, holdfast.GroupFilter{Parent: id, Limit: mostListed}); err != nil {
		return Gathering{}, err
	}
	g.Story, err = s.store.Events(ctx, groupSubject(id), 50)
	return g, err
}

// Groups lists what matches, newest first, without counting members. The cursor leads to the next page and is empty on the last.
func (s *Service) Groups(ctx context.Context, f holdfast.GroupFilter) (groups []holdfast.Group, cursor string, err error) {
	return s.store.Groups(ctx, f)
}

// RetryGroup sends round what failed in a group and all that was cancelled because of it, also in groups inside it, and answers
// how many. The group is processing again, and is settled again. One without such members is ErrConflict.
func (s *Service) RetryGroup(ctx context.Context, i holdfast.Intervention) (int, error) {
	return s.store.RetryGroup(ctx, i)
}

// CancelGroup seals a group and has its members cancelled, also in groups inside it: what is queued soon, what is being processed
// as soon as its worker has let go. A settled group is ErrConflict.
func (s *Service) CancelGroup(ctx context.Context, i holdfast.Intervention) error {
	return s.store.CancelGroup(ctx, i)
}

// SealGroup says for a program that cannot say it any more that a group has all its members. Sealing it again is no error and
// is not told twice.
func (s *Service) SealGroup(ctx context.Context, i holdfast.Intervention) error {
	by := By{Actor: i.Actor, Reason: i.Reason, Request: i.Request}
	if err := by.check(); err != nil {
		return err
	}
	g, err := s.store.Group(ctx, i.Group)
	if err != nil {
		return err
	}
	if i.Owner != "" && i.Owner != g.Owner {
		return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no group %s: check the id", i.Group)}
	}
	if !g.SealedAt.IsZero() {
		return nil
	}
	if err := s.store.Seal(ctx, i.Group); err != nil {
		return err
	}
	return s.store.Keep(ctx, holdfast.Change{Events: []holdfast.Event{by.says(groupSubject(i.Group), "sealed")}})
}

func groupSubject(id holdfast.ID) string { return "group/" + id.String() }
