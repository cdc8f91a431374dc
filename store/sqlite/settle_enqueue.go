package sqlite

import (
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// prepareDrafts returns the settlements with copies of their drafts that have ids and defaults. Settlements that were refused already are left as they are.
func prepareDrafts(settlements []store.Settlement, refused []error) []store.Settlement {
	settlements = slices.Clone(settlements)
	for i := range settlements {
		if x := &settlements[i]; len(x.Enqueue) > 0 && refused[i] == nil {
			x.Enqueue, refused[i] = prepareAll(x.Enqueue, rule.Drafts)
		}
	}
	return settlements
}

// noteDrafts tells the planner about the jobs that were enqueued with settlements.
func (s *Store) noteDrafts(settlements []store.Settlement, answers []error) {
	for i := range settlements {
		if len(settlements[i].Enqueue) > 0 && answers[i] == nil {
			s.planner.noteEnqueued(settlements[i].Enqueue)
		}
	}
}

// enqueueDrafts enqueues the jobs of a settlement that has just completed its job. They are written one by one, because they may wait for rows that the same call
// adds.
func (s *settler) enqueueDrafts(x *store.Settlement) error {
	if err := s.flushRows(); err != nil {
		return err
	}
	_, err := (&enqueuer{executor: unbatched{s.tx}, now: s.now, member: x.Job}).enqueue(x.Enqueue)
	s.wakeQueues(x.Enqueue)
	return err
}

// joinSealed admits a draft to a sealed group if the job that enqueues it with its settlement is a member: until that is committed the group has a live member, and
// so it has not settled. The group is searched for live members from this job down, if not from a higher one.
func (e *enqueuer) joinSealed(d *holdfast.Draft, refusal error) error {
	var own holdfast.ID
	var ended bool
	if _, err := e.one("find_upstream", []any{e.member}, &own, &ended); err != nil || own != d.Group {
		return orRefusal(err, refusal)
	}
	raised, err := e.exec("raise_group_cursor", d.Group, d.ID)
	if err != nil || raised == 0 {
		return orRefusal(err, refusal)
	}
	return nil
}

func orRefusal(err, refusal error) error {
	if err != nil {
		return err
	}
	return refusal
}
