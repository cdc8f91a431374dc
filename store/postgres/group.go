package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// manyDeadline is the deadline of operations that may move a hundred thousand jobs in one transaction.
const manyDeadline = time.Minute

// CreateGroup creates a group, so that drafts can name it.
func (s *Store) CreateGroup(ctx context.Context, g holdfast.Group) (made holdfast.Group, err error) {
	if err := rule.Group(&g); err != nil {
		return holdfast.Group{}, err
	}
	if err := s.addGroupListener(ctx); err != nil {
		return holdfast.Group{}, err
	}
	err = s.withRetries(ctx, "create the group", false, func(ctx context.Context) error {
		return s.runTx(ctx, func(tx pgx.Tx) error {
			made, err = s.gather(ctx, pgxSession{tx}, g)
			return err
		})
	})
	return made, err
}

// CreateGroup creates a group that exists if and when the caller's transaction commits.
func (g txStore) CreateGroup(ctx context.Context, group holdfast.Group) (holdfast.Group, error) {
	q, err := g.session(ctx)
	if err != nil {
		return holdfast.Group{}, err
	}
	if err := rule.Group(&group); err != nil {
		return holdfast.Group{}, err
	}
	if err := g.s.addGroupListener(ctx); err != nil {
		return holdfast.Group{}, err
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	made, err := g.s.gather(ctx, q, group)
	return made, explain("create the group", err)
}

// addGroupListener makes sure that ends of members are written to the feed. It runs outside the caller's transaction, which would otherwise wait for
// others that write the same rows.
func (s *Store) addGroupListener(ctx context.Context) error {
	return s.withRetries(ctx, "create the group", true, func(ctx context.Context) error {
		return s.beside.exec(ctx, s.sql["add_group_listener"])
	})
}

// gather inserts the group, after it has locked its parent against a seal.
func (s *Store) gather(ctx context.Context, q session, g holdfast.Group) (holdfast.Group, error) {
	var parent, expireAt, expireIn, then any
	if !g.Parent.IsZero() {
		parent = g.Parent.String()
		if err := s.lockOpenGroups(ctx, q, "share_lock_groups", []holdfast.ID{g.Parent}, holdfast.ID{}); err != nil {
			return holdfast.Group{}, err
		}
	}
	if !g.ExpireAt.IsZero() {
		expireAt = timestamp(g.ExpireAt)
	}
	if g.ExpireIn > 0 {
		expireIn = micros(g.ExpireIn)
	}
	if len(g.Then) > 0 {
		body, err := json.Marshal(g.Then)
		if err != nil {
			return holdfast.Group{}, err
		}
		then = string(body)
	}
	added := false
	args := []any{g.ID.String(), g.Name, g.Owner, parent, g.Quorum, expireAt, expireIn, then}
	err := q.query(ctx, s.sql["group_add"], args, func(scan func(...any) error) error {
		var expire *time.Time
		err := scan(&g.CreatedAt, &expire)
		if g.ExpireAt = (time.Time{}); expire != nil {
			g.ExpireAt = expire.UTC()
		}
		added = true
		return err
	})
	if err == nil && !added {
		err = rule.GroupExists(g.ID)
	}
	if err != nil {
		return holdfast.Group{}, err
	}
	g.CreatedAt = g.CreatedAt.UTC()
	g.State, g.Generation, g.ExpireIn, g.AsOf = holdfast.GroupOpen, 1, 0, g.CreatedAt
	g.SealedAt, g.SettledAt, g.Members = time.Time{}, time.Time{}, holdfast.Members{}
	return g, nil
}

// SealGroup marks a group as having all its members.
func (s *Store) SealGroup(ctx context.Context, group holdfast.ID) error {
	return s.withRetries(ctx, "seal the group", true, func(ctx context.Context) error { return s.seal(ctx, s.work, group) })
}

// SealGroup seals a group if and when the caller's transaction commits.
func (g txStore) SealGroup(ctx context.Context, group holdfast.ID) error {
	q, err := g.session(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	return explain("seal the group", g.s.seal(ctx, q, group))
}

func (s *Store) seal(ctx context.Context, q session, group holdfast.ID) error {
	there := false
	var id string
	err := q.query(ctx, s.sql["group_seal"], []any{group.String()}, func(scan func(...any) error) error { there = true; return scan(&id) })
	if err == nil && !there {
		return rule.NoGroup(group)
	}
	return err
}

// reopen starts a new generation of the settled groups of these jobs, and of all groups around them. Lock order: jobs first, then groups from the
// youngest to the oldest, and no transaction that has locked a group waits for a job. So there is no deadlock.
func (s *Store) reopen(ctx context.Context, p *pipeline, jobs []holdfast.ID, now time.Time, i store.Intervention) error {
	var groups []holdfast.ID
	var id [16]byte
	p.queueRows(s.sql["lock_group_ancestors"], []any{ids(jobs)}, []any{&id}, func() error { groups = append(groups, id); return nil })
	if err := p.flush(ctx); err != nil || len(groups) == 0 {
		return err
	}
	p.Queue(s.sql["group_reopen"], ids(groups), timestamp(now), i.Actor, i.Reason, i.Request)
	return nil
}

// CancelGroup seals the group and marks it as ending. AdvanceGroups cancels its members.
func (s *Store) CancelGroup(ctx context.Context, i store.Intervention) error {
	if err := i.Check(); err != nil {
		return err
	}
	return s.withRetries(ctx, "cancel the group", false, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipeline) error {
			var owner, state string
			var there, ending bool
			var generation int
			var now time.Time
			p.queueRows(s.sql["lock_group"], []any{i.Group.String()}, []any{&owner, &state, &ending, &generation}, func() error { there = true; return nil })
			p.queueRow(s.sql["now"], nil, &now)
			if err := p.flush(ctx); err != nil {
				return err
			}
			if !there || i.Owner != "" && i.Owner != owner {
				return rule.NoGroup(i.Group)
			}
			if err := rule.CancelGroup(i.Group, holdfast.GroupState(state)); err != nil || ending { // only the first request is recorded as an event
				return err
			}
			p.Queue(s.sql["group_end"], i.Group.String(), timestamp(now))
			s.queueEvent(p.Batch, groupEvent("cancel", i, generation), now)
			return nil
		})
	})
}

// groupEvent is the event of a person's action on a group.
func groupEvent(name string, i store.Intervention, generation int) store.Event {
	return store.Event{Subject: "group/" + i.Group.String(), Name: name, Actor: i.Actor, Reason: i.Reason, Request: i.Request, Generation: generation}
}
