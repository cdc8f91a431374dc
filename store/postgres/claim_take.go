package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A claimResult is the answer to a claim.
type claimResult struct {
	leases   []store.Lease
	bytes    int                   // size of their arguments and checkpoints
	excess   []store.Settlement    // jobs to release because they exceed the byte limit of the claim
	rows     int                   // jobs taken, including those without a row in holdfast_job
	last     map[place]holdfast.ID // last job taken from each place
	perLine  map[int32]int         // jobs taken from each line
	perPlace map[place]int         // jobs taken from each place
	lanes    int                   // lanes in the claim's scope; not set by a plan
	more     bool                  // nothing was taken although jobs are ready
	planned  bool                  // nothing was taken because a plan is needed
}

// takeOnce runs one statement that takes jobs, in a round trip of its own.
func (p *claimPlanner) takeOnce(ctx context.Context, how string, e *claimRequest, rest []any) (taken claimResult, err error) {
	send := p.db.newBatch()
	taken.leases = []store.Lease{}
	taken.queue(send, p.db.sql[how], e, rest)
	err = p.db.work.send(ctx, send)
	return taken, err
}

// queue queues a statement that takes jobs, and reads its answer. The statement answers with one row for each job, or with a single row without a job
// that says whether jobs are ready and whether a plan is needed.
func (t *claimResult) queue(b *pgx.Batch, sql string, c *claimRequest, rest []any) {
	args := []any{c.batch.String(), c.Worker, micros(c.Lease), clampLimit(max(c.Start, 0))}
	b.Queue(sql, append(args, rest...)...).Query(func(rows pgx.Rows) error {
		var f facts
		var now pgtype.Timestamptz
		var planned, more, started pgtype.Bool
		var lanes pgtype.Int8
		var id pgtype.UUID
		var lane, token, failures, crashes, releases, generation pgtype.Int4
		in := batchRow{id: c.batch, worker: c.Worker}
		into := append([]any{&now, &planned, &more, &lanes, &id, &lane, &token, &failures, &crashes, &releases, &generation, &started}, f.fields()...)
		_, err := pgx.ForEachRow(rows, into, func() error {
			t.lanes = max(t.lanes, int(lanes.Int64))
			if !id.Valid {
				t.more, t.planned = more.Bool, planned.Bool
				return nil
			}
			if t.rows++; t.rows == 1 { // leases are large: allocate once, and not for an empty answer
				t.leases, t.last = make([]store.Lease, 0, min(c.Limit, 1024)), map[place]holdfast.ID{}
				t.perLine, t.perPlace = map[int32]int{}, map[place]int{}
			}
			if now.Valid {
				in.claimed, in.expires = now.Time, now.Time.Add(c.Lease.Truncate(time.Microsecond))
			}
			t.perLine[lane.Int32]++
			if f.created.Valid { // without it the ready row has no job, and stays in the batch for the integrity check
				at := place{lane.Int32, f.priority.Int16}
				t.last[at] = id.Bytes
				t.perPlace[at]++
				m := member{id.Bytes, int(token.Int32), int(failures.Int32), int(crashes.Int32), int(releases.Int32), 1, started.Bool, ""}
				if generation.Valid {
					m.generation = int(generation.Int32)
				}
				t.keep(c.Bytes, f.lease(&in, &m, in.claimed))
			}
			return nil
		})
		return err
	})
}

// keep adds a lease to the answer, or to the excess if the byte limit is reached. All later leases are then excess too, so that no job overtakes one
// that is released. The first lease is always kept.
func (t *claimResult) keep(most int, l store.Lease) {
	size := len(l.Args) + len(l.Checkpoint)
	if most > 0 && len(t.leases) > 0 && (len(t.excess) > 0 || t.bytes+size > most) {
		t.excess = append(t.excess, store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Queued, Charge: store.ChargeRelease, Queue: l.Queue,
			Why: "it was claimed together with more than fits into memory"})
		return
	}
	t.bytes += size
	t.leases = append(t.leases, l)
}

// recoverClaim returns the leases of a batch that was created by a call whose answer was lost.
func (p *claimPlanner) recoverClaim(ctx context.Context, batch holdfast.ID) (leases []store.Lease, err error) {
	err = p.db.transact(ctx, p.db.work, func(pipe *pipeline) error {
		leases, err = p.db.readBatches(ctx, pipe, []holdfast.ID{batch})
		return err
	})
	return leases, err
}
