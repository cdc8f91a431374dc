package postgres

import (
	"context"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// afterMax is how many rows of holdfast_after one statement inserts.
const afterMax = 20_000

// joinGroups checks that entries may become members of the groups they name, and locks these groups against a seal until the entries are committed. If an
// entry has a step name or waits for others, the lock also keeps other transactions from adding members, so that what was checked stays true.
// Groups with entries that wait for other members are flagged for AdvanceGroups: these members may have ended already, or may end before the new rows are
// visible.
func (s *Store) joinGroups(ctx context.Context, q session, fresh []entry, own holdfast.ID) error {
	var groups, flagged []holdfast.ID
	how := "share_lock_groups"
	for i := range fresh {
		if e := &fresh[i]; e.Step != "" || len(e.edges) > 0 || !own.IsZero() {
			how = "lock_groups"
		}
		if e := &fresh[i]; !e.Group.IsZero() && !slices.Contains(groups, e.Group) {
			groups = append(groups, e.Group)
		}
		if e := &fresh[i]; len(e.edges) > 0 && !slices.Contains(flagged, e.Group) {
			flagged = append(flagged, e.Group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	if err := s.lockOpenGroups(ctx, q, how, groups, own); err != nil {
		return err
	}
	if err := s.checkSteps(ctx, q, fresh); err != nil || len(flagged) == 0 {
		return err
	}
	if err := s.checkUpstreams(ctx, q, fresh); err != nil {
		return err
	}
	return q.exec(ctx, s.sql["flag_groups"], ids(flagged))
}

// lockOpenGroups locks groups, and returns an error if one does not exist, or is sealed and is not the caller's own.
func (s *Store) lockOpenGroups(ctx context.Context, q session, how string, groups []holdfast.ID, own holdfast.ID) error {
	sealed := map[holdfast.ID]bool{}
	err := q.query(ctx, s.sql[how], []any{ids(groups)}, func(scan func(...any) error) error {
		var text string
		var done bool
		if err := scan(&text, &done); err != nil {
			return err
		}
		id, err := holdfast.ParseID(text)
		sealed[id] = done
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range groups {
		if done, there := sealed[id]; !there {
			return rule.NoGroup(id)
		} else if done && id != own {
			return rule.Sealed(id)
		}
	}
	return nil
}

// A stepName is the name of a member within its group.
type stepName struct {
	group holdfast.ID
	name  string
}

// checkSteps returns an error if an entry has the step name of another member of its group.
func (s *Store) checkSteps(ctx context.Context, q session, fresh []entry) error {
	var group, name column
	wanted := map[stepName]holdfast.ID{}
	for i := range fresh {
		e := &fresh[i]
		if e.Step == "" {
			continue
		}
		of := stepName{e.Group, e.Step}
		if other, twice := wanted[of]; twice {
			return rule.StepTaken(e.Step, other)
		}
		wanted[of] = e.ID
		group.id(e.Group)
		name.quote(e.Step)
	}
	if len(wanted) == 0 {
		return nil
	}
	taken, err := s.findSteps(ctx, q, group, name)
	for i := range fresh {
		if id, found := taken[stepName{fresh[i].Group, fresh[i].Step}]; found && err == nil && fresh[i].Step != "" {
			return rule.StepTaken(fresh[i].Step, id)
		}
	}
	return err
}

// findSteps returns the members that have step names.
func (s *Store) findSteps(ctx context.Context, q session, group, name column) (map[stepName]holdfast.ID, error) {
	found := map[stepName]holdfast.ID{}
	err := q.query(ctx, s.sql["find_steps"], []any{group.String(), name.String()}, func(scan func(...any) error) error {
		var of, name, job string
		if err := scan(&of, &name, &job); err != nil {
			return err
		}
		group, err := holdfast.ParseID(of)
		if err != nil {
			return err
		}
		found[stepName{group, name}], err = holdfast.ParseID(job)
		return err
	})
	return found, err
}

// writeSteps writes the step names of entries.
func (s *Store) writeSteps(ctx context.Context, q session, fresh []entry) error {
	var group, name, job column
	for i := range fresh {
		if e := &fresh[i]; e.Step != "" {
			group.id(e.Group)
			name.quote(e.Step)
			job.id(e.ID)
		}
	}
	if len(job.text) == 0 {
		return nil
	}
	return q.exec(ctx, s.sql["step_add"], group.String(), name.String(), job.String())
}

// checkUpstreams looks up the members for which entries wait by a step name, and returns an error if an entry waits for a job that is neither a member of the same
// group nor an earlier entry of the call.
func (s *Store) checkUpstreams(ctx context.Context, q session, fresh []entry) error {
	if err := s.resolveSteps(ctx, q, fresh); err != nil {
		return err
	}
	earlier := map[holdfast.ID]holdfast.ID{}
	var upstream, group column
	for i := range fresh {
		e := &fresh[i]
		for _, edge := range e.edges {
			if of, ok := earlier[edge.Upstream]; !ok || of != e.Group {
				upstream.id(edge.Upstream)
				group.id(e.Group)
			}
		}
		earlier[e.ID] = e.Group
	}
	if len(upstream.text) == 0 {
		return nil
	}
	nonMember := ""
	err := q.query(ctx, s.sql["find_non_member"], []any{upstream.String(), group.String()}, func(scan func(...any) error) error { return scan(&nonMember) })
	if err == nil && nonMember != "" {
		id, err := holdfast.ParseID(nonMember)
		if err != nil {
			return err
		}
		return rule.NotMember(id)
	}
	return err
}

// resolveSteps finds the members for which entries wait by a step name: earlier entries of the call, or stored jobs.
func (s *Store) resolveSteps(ctx context.Context, q session, fresh []entry) error {
	earlier := map[stepName]holdfast.ID{}
	var group, name column
	var missing []*rule.Edge
	var in []stepName
	for i := range fresh {
		e := &fresh[i]
		for n := range e.edges {
			edge := &e.edges[n]
			if edge.Step == "" {
				continue
			}
			of := stepName{e.Group, edge.Step}
			id, found := earlier[of]
			if edge.Upstream = id; !found {
				missing, in = append(missing, edge), append(in, of)
				group.id(e.Group)
				name.quote(edge.Step)
			}
		}
		if e.Step != "" {
			earlier[stepName{e.Group, e.Step}] = e.ID
		}
	}
	if len(missing) == 0 {
		return nil
	}
	stored, err := s.findSteps(ctx, q, group, name)
	if err != nil {
		return err
	}
	for n, edge := range missing {
		id, found := stored[in[n]]
		if edge.Upstream = id; !found {
			return rule.NoStep(edge.Step)
		}
	}
	return nil
}

// writeAfter records the step names of entries, and which of them wait for which jobs. An entry with conditions on a failure or a cancellation also waits for
// itself, which keeps programs that do not know conditions from starting it.
func (s *Store) writeAfter(ctx context.Context, q session, fresh []entry) error {
	if err := s.writeSteps(ctx, q, fresh); err != nil {
		return err
	}
	var upstream, job, regardless, outcome column
	rows := 0
	write := func() error {
		err := q.exec(ctx, s.sql["after_add"], upstream.String(), job.String(), regardless.String(), outcome.String())
		upstream, job, regardless, outcome, rows = column{}, column{}, column{}, column{}, 0
		return err
	}
	for i := range fresh {
		e := &fresh[i]
		edges, conditions, err := rule.MergeEdges(e.edges)
		if err != nil {
			return err
		}
		for _, edge := range edges {
			upstream.id(edge.Upstream)
			job.id(e.ID)
			regardless.bool(edge.Regardless())
			outcome.textOrNull(edge.Outcome())
			rows++
		}
		if conditions > 0 {
			upstream.id(e.ID)
			job.id(e.ID)
			regardless.bool(true)
			outcome.quote(strconv.Itoa(conditions))
			rows++
		}
		if rows >= afterMax {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if rows == 0 {
		return nil
	}
	return write()
}

// retargetAfter makes entries that wait for a draft which matched an existing job wait for that job.
func retargetAfter(entries []entry, receipts []holdfast.Receipt, fresh []entry) []entry {
	existing := map[holdfast.ID]holdfast.ID{}
	for i := range entries {
		if entries[i].given && receipts[i].ID != entries[i].ID {
			existing[entries[i].ID] = receipts[i].ID
		}
	}
	for i := range fresh {
		if len(existing) == 0 || len(fresh[i].edges) == 0 {
			continue
		}
		edges := slices.Clone(fresh[i].edges) // the original ones are kept for a further attempt
		for n := range edges {
			if job, ok := existing[edges[n].Upstream]; ok {
				edges[n].Upstream = job
			}
		}
		fresh[i].edges = edges
	}
	return fresh
}
