package ops

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A GroupDetail is the full description of a group, with the members that need attention.
type GroupDetail struct {
	Group  holdfast.Group   `json:"group"`
	Failed []holdfast.Job   `json:"failed"` // members that are dead letters, the newest first, at most twenty
	Live   []holdfast.Job   `json:"live"`   // members that are running, the newest first, at most twenty
	Inside []holdfast.Group `json:"inside"` // nested groups, the newest first, at most a page
	Story  []store.Event    `json:"story"`  // events of the group, the newest first
}

// Group returns one group.
func (s *Service) Group(ctx context.Context, id holdfast.ID) (g GroupDetail, err error) {
	if g.Group, err = s.store.Group(ctx, id); err != nil {
		return GroupDetail{}, err
	}
	if g.Failed, _, err = s.store.Jobs(ctx, store.Filter{Group: id, DeadLetters: true, Limit: maxSamples}); err != nil {
		return GroupDetail{}, err
	}
	if g.Live, _, err = s.store.Jobs(ctx, store.Filter{Group: id, State: holdfast.Processing, Limit: maxSamples}); err != nil {
		return GroupDetail{}, err
	}
	if g.Inside, _, err = s.store.Groups(ctx, store.GroupFilter{Parent: id, Limit: maxPage}); err != nil {
		return GroupDetail{}, err
	}
	g.Story, err = s.store.Events(ctx, groupSubject(id), 50)
	return g, err
}

// Groups returns the groups that match, newest first, without member counts. The cursor is for the next page and empty on
// the last.
func (s *Service) Groups(ctx context.Context, f store.GroupFilter) (groups []holdfast.Group, cursor string, err error) {
	return s.store.Groups(ctx, f)
}

// RetryGroup retries the failed members of a group and those that were cancelled because of them, also in nested groups,
// and returns how many. The group is processing again and settles again. A group without such members is ErrConflict.
func (s *Service) RetryGroup(ctx context.Context, i store.Intervention) (int, error) {
	return s.store.RetryGroup(ctx, i)
}

// CancelGroup seals a group and cancels its members, also in nested groups: queued members soon, running members when their
// workers settle them. A settled group is ErrConflict.
func (s *Service) CancelGroup(ctx context.Context, i store.Intervention) error {
	return s.store.CancelGroup(ctx, i)
}

// SealGroup declares that a group has all its members, in place of a program that cannot do so any more. Sealing a sealed
// group is no error and writes no second event.
func (s *Service) SealGroup(ctx context.Context, i store.Intervention) error {
	by := Actor{Name: i.Actor, Reason: i.Reason, Request: i.Request}
	if err := by.check(); err != nil {
		return err
	}
	g, err := s.store.Group(ctx, i.Group)
	if err != nil {
		return err
	}
	if i.Owner != "" && i.Owner != g.Owner {
		return &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no group %s: check the id", i.Group)}
	}
	if !g.SealedAt.IsZero() {
		return nil
	}
	if err := s.store.SealGroup(ctx, i.Group); err != nil {
		return err
	}
	return s.store.Apply(ctx, store.Change{Events: []store.Event{by.event(groupSubject(i.Group), "sealed")}})
}

func groupSubject(id holdfast.ID) string { return "group/" + id.String() }
