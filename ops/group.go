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
// and returns how many. The group is processing again and settles again. A group without such members is ErrConflict, and so is one in which the compensation of
// such a member is complete, unless the intervention says Compensated: a refunded order would be shipped. Compensations are looked for among the first thousand
// members of the group, not in nested groups.
func (s *Service) RetryGroup(ctx context.Context, i store.Intervention) (int, error) {
	if err := i.Check(); err != nil {
		return 0, err
	}
	if !i.Compensated {
		if err := s.checkCompensations(ctx, i); err != nil {
			return 0, err
		}
	}
	return s.store.RetryGroup(ctx, i)
}

// checkCompensations refuses a retry of members whose compensation is complete.
func (s *Service) checkCompensations(ctx context.Context, i store.Intervention) error {
	g, err := s.store.Group(ctx, i.Group)
	if err != nil || i.Owner != "" && i.Owner != g.Owner {
		return err // the store refuses a group of another owner
	}
	graph, err := s.store.GroupGraph(ctx, i.Group)
	if err != nil {
		return err
	}
	done, failed, found := compensation(graph)
	if !found {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrConflict, Job: done.Job, Message: fmt.Sprintf(
		"nothing was retried: %s ran because %s did not complete, and is complete itself; a retry would run %[2]s although it was compensated: if that is right, retry with compensated set (holdfast groups retry --compensated)",
		memberName(done), memberName(failed))}
}

// compensation returns a complete member that ran because of the failure or cancellation of a member that a retry of the group would run again.
func compensation(g store.GroupGraph) (done, failed store.Member, found bool) {
	retried := map[holdfast.ID]store.Member{}
	for _, m := range g.Members {
		if m.State == holdfast.Failed || m.State == holdfast.Cancelled && !m.Cause.IsZero() && !m.Skipped {
			retried[m.Job] = m
		}
	}
	for _, m := range g.Members {
		if m.State != holdfast.Complete {
			continue
		}
		for _, c := range m.When {
			if of, ok := retried[c.Job]; ok && (c.On == holdfast.OnFailed || c.On == holdfast.OnCancelled) {
				return m, of, true
			}
		}
	}
	return done, failed, false
}

// memberName returns the step name of a member, or its kind and id.
func memberName(m store.Member) string {
	if m.Step != "" {
		return fmt.Sprintf("step %q", m.Step)
	}
	return fmt.Sprintf("%s %s", m.Kind, m.Job)
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
