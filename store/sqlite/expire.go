package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Expire claims up to c.Limit queued jobs whose expiry has passed, so that the caller can settle them as expired.
func (s *Store) Expire(ctx context.Context, c store.Claim) (leases []store.Lease, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		leases, err = expire(t, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

func expire(t *tx, c store.Claim) (leases []store.Lease, err error) {
	if _, err := t.exec("expiry_sweep", t.now); err != nil {
		return nil, err
	}
	batch := &batch{id: holdfast.NewID(), worker: c.Worker, claimed: t.now, expires: t.at(c.Lease)}
	err = t.rows("find_expired", []any{t.now, c.Limit}, func(st *sqlite.Stmt) error {
		batch.members = append(batch.members, member{job: columnID(st, 1), token: st.ColumnInt(2) + 1, failures: st.ColumnInt(3), crashes: st.ColumnInt(4),
			releases: st.ColumnInt(5), generation: st.ColumnInt(6)})
		return nil
	})
	if err != nil || len(batch.members) == 0 {
		return nil, err
	}
	for _, m := range batch.members {
		if err := t.removeQueued(m.job); err != nil {
			return nil, err
		}
		facts := store.Lease{}
		if _, err := t.readJobFacts(m.job, &facts); err != nil {
			return nil, err
		}
		leases = append(leases, batch.leaseOf(facts, m, t.now))
	}
	return leases, t.insertBatch(batch)
}

// removeQueued removes a queued job from where it waits.
func (t *tx) removeQueued(job holdfast.ID) error {
	if left, err := t.exec("delete_ready", job); left > 0 || err != nil {
		return err
	}
	_, err := t.exec("delete_later", job)
	return err
}
