package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// CreateGroup creates a group, so that drafts may name it.
func (s *Store) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	made, err := prepareGroup(g)
	if err != nil {
		return holdfast.Group{}, err
	}
	err = s.writer.write(ctx, func(t *tx) error {
		if err := gather(t, t.now, &made); err != nil {
			return err
		}
		return t.reloadListened()
	})
	if err != nil {
		return holdfast.Group{}, err
	}
	return made, nil
}

// SealGroup marks a group as complete: it takes no more members.
func (s *Store) SealGroup(ctx context.Context, group holdfast.ID) error {
	return s.writer.write(ctx, func(t *tx) error { return seal(t, t.now, group) })
}

// CreateGroup creates the group in the caller's transaction.
func (b *txStore) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	made, err := prepareGroup(g)
	if err == nil {
		err = b.inSavepoint(ctx, func(to *callerTx) error { return gather(to, b.store.now().UnixMicro(), &made) })
	}
	if err != nil {
		return holdfast.Group{}, err
	}
	return made, nil
}

// SealGroup seals the group if and when the caller's transaction commits.
func (b *txStore) SealGroup(ctx context.Context, group holdfast.ID) error {
	return b.inSavepoint(ctx, func(to *callerTx) error { return seal(to, b.store.now().UnixMicro(), group) })
}

// inSavepoint runs act in a savepoint of the caller's transaction, all or nothing. After a refusal the transaction can
// still be used.
func (b *txStore) inSavepoint(ctx context.Context, act func(*callerTx) error) error {
	tx, err := b.callerTx()
	if err != nil {
		return err
	}
	to := &callerTx{ctx: ctx, tx: tx}
	if _, err := to.exec("savepoint"); err != nil {
		return to.explain(err)
	}
	if err := act(to); err != nil {
		// The caller's context may have ended, and undoing must not depend on it. If undoing fails, the transaction is
		// lost, and its commit will fail.
		to.ctx = context.WithoutCancel(ctx)
		_, undone := to.exec("savepoint_rollback")
		_, released := to.exec("savepoint_release")
		return to.explain(errors.Join(err, undone, released))
	}
	if _, err := to.exec("savepoint_release"); err != nil {
		return to.explain(err)
	}
	return nil
}

// prepareGroup checks a group and sets the fields that a new group has.
func prepareGroup(g holdfast.Group) (holdfast.Group, error) {
	if err := rule.Group(&g); err != nil {
		return g, err
	}
	g.State, g.Generation, g.Members = holdfast.GroupOpen, 1, holdfast.Members{}
	return g, nil
}

// gather writes the group, and a listener for the ends of its members, which AdvanceGroups reads from the feed.
func gather(to executor, now int64, g *holdfast.Group) error {
	if !g.Parent.IsZero() {
		if err := checkOpen(to, g.Parent); err != nil {
			return err
		}
	}
	var parent, then any
	if !g.Parent.IsZero() {
		parent = g.Parent
	}
	if len(g.Then) > 0 {
		text, _ := json.Marshal(g.Then) // rule.Group has marshalled it once already
		then = string(text)
	}
	expire := instantOrNil(now, g.ExpireIn, g.ExpireAt)
	added, err := to.exec("group_add", g.ID, nullIfEmpty(g.Name), nullIfEmpty(g.Owner), parent, g.Quorum, expire, then, now)
	if err != nil {
		return err
	}
	if added == 0 {
		return rule.GroupExists(g.ID)
	}
	for _, event := range []string{store.EventComplete, store.EventFailed, store.EventCancelled} {
		if _, err := to.exec("listen_add", event, "group"); err != nil {
			return err
		}
	}
	g.CreatedAt, g.AsOf = instant(now), instant(now)
	if at, ok := expire.(int64); ok {
		g.ExpireIn, g.ExpireAt = 0, instant(at)
	}
	return nil
}

// checkOpen refuses a group that does not exist or is sealed.
func checkOpen(to executor, group holdfast.ID) error {
	var state string
	found, err := to.one("find_group_state", []any{group}, &state)
	switch {
	case err != nil:
		return err
	case !found:
		return rule.NoGroup(group)
	case holdfast.GroupState(state) != holdfast.GroupOpen:
		return rule.Sealed(group)
	}
	return nil
}

// seal seals a group. Sealing it again is no error.
func seal(to executor, now int64, group holdfast.ID) error {
	sealed, err := to.exec("group_seal", group, now)
	if err != nil || sealed > 0 {
		return err
	}
	var state string
	if found, err := to.one("find_group_state", []any{group}, &state); err != nil || found {
		return err
	}
	return rule.NoGroup(group)
}

// A groupRow is a group as its row describes it.
type groupRow struct {
	holdfast.Group
	ending     string // the state in which it is to end: cancelled or expired; empty: by its members
	expire     int64  // 0: never
	flags      int    // how often it was flagged for evaluation since the last one
	liveCursor []byte // every member with a higher id has ended
	then       string
}

// group reads a group, and reports whether it exists.
func (s *session) group(id holdfast.ID) (g groupRow, found bool, err error) {
	g.ID = id
	var state string
	found, err = s.one("group_find", []any{id}, &state, &g.Generation, &g.ending, &g.expire, &g.flags, &g.liveCursor, &g.Quorum, &g.Parent, &g.Owner, &g.then)
	if g.State = holdfast.GroupState(state); len(g.liveCursor) == 0 {
		g.liveCursor = highestID
	}
	return g, found, err
}

// findGroup reads the group of an intervention. A group that does not exist and a group of another owner get the same
// answer.
func (t *tx) findGroup(i store.Intervention) (groupRow, error) {
	g, found, err := t.group(i.Group)
	if err == nil && (!found || i.Owner != "" && i.Owner != g.Owner) {
		err = rule.NoGroup(i.Group)
	}
	return g, err
}

// addGroupEvent appends an event to the story of a group.
func (t *tx) addGroupEvent(i store.Intervention, group holdfast.ID, name string, generation int) error {
	return t.addEvent(&store.Event{Subject: "group/" + group.String(), Name: name, Actor: i.Actor, Reason: i.Reason, Request: i.Request, Generation: generation})
}

// CancelGroup seals a group and has its members cancelled by later steps of AdvanceGroups.
func (s *Store) CancelGroup(ctx context.Context, i store.Intervention) error {
	if err := i.Check(); err != nil {
		return err
	}
	return s.writer.write(ctx, func(t *tx) error {
		g, err := t.findGroup(i)
		if err != nil {
			return err
		}
		if err := rule.CancelGroup(i.Group, g.State); err != nil {
			return err
		}
		first, err := t.exec("group_end", i.Group, string(holdfast.GroupCancelled), t.now)
		if err != nil || first == 0 {
			return err
		}
		return t.addGroupEvent(i, i.Group, "cancel", g.Generation)
	})
}
