package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Claim moves due jobs from queued to processing. They are in one batch, or in two if the claim is repeated as described below.
//
// There are several ways to claim; docs/design/claiming.md lists them. With one owner and no hold that counts or limits, a claim is one statement and
// one round trip. Otherwise it is planned (see claimPlan).
//
// A claim may start from what this process remembers: marks, or the lines that are not empty. The memory chooses only where to look: a statement
// takes only rows that exist at that moment, under their locks, so no job is claimed twice. The memory can miss jobs of other processes, so a claim
// that used it and returns fewer jobs than its limit is repeated once without it.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	scope, err := lane.NewScope(c)
	if err != nil {
		return nil, err
	}
	l := s.marks.beginScan(false)
	l.even = s.turns.Guard()
	l.scope = scope
	taken, err := s.take(ctx, c, l)
	leases := taken.leases
	if err != nil || !l.marked && !l.narrowed || l.planned || len(leases) >= clampLimit(c.Limit) || len(taken.excess) > 0 {
		return leases, err
	}
	c.Limit, c.Start = c.Limit-len(leases), max(0, c.Start-len(leases))
	if c.Bytes > 0 {
		c.Bytes = max(1, c.Bytes-taken.bytes)
	}
	l = s.marks.beginScan(true)
	l.scope = scope
	rest, err := s.take(ctx, c, l)
	if err != nil && len(leases) > 0 { // jobs that were claimed must be returned
		return leases, nil
	}
	return append(leases, rest.leases...), err
}

// take claims one batch. The batch id is chosen here: if the answer of the database is lost, the store finds the batch by its id and returns it
// instead of claiming again.
func (s *Store) take(ctx context.Context, c store.Claim, l *claimScan) (taken claimResult, err error) {
	batch := holdfast.NewID()
	lost := false
	err = s.withRetries(ctx, "claim", true, func(ctx context.Context) (err error) {
		if lost { // the claim may have committed: look for its batch
			if taken.leases, err = s.recoverClaim(ctx, batch); err != nil || len(taken.leases) > 0 {
				return err
			}
		}
		taken, err = s.claim(ctx, c, batch, l)
		if lost && (isDuplicate(err) || err == nil && len(taken.leases) == 0) { // the first attempt committed in the meantime
			taken.leases, err = s.recoverClaim(ctx, batch)
		}
		lost = lost || err != nil && mayHaveCommitted(err)
		return err
	})
	switch {
	case l.planned: // a plan does not use marks
		s.marks.dropScan(l)
	case l.tookRuns:
		s.marks.endHeadScan(l, taken.last)
	default:
		s.marks.endScan(l, taken.last, err == nil && taken.rows == clampLimit(c.Limit))
	}
	s.releaseExcess(ctx, taken.excess)
	return taken, err
}

// releaseExcess returns jobs to their queues that exceed the byte limit of a claim: their size is known only when the answer is read. If this fails,
// the jobs return when their leases expire.
func (s *Store) releaseExcess(ctx context.Context, excess []store.Settlement) {
	if len(excess) > 0 {
		_, _ = s.Settle(context.WithoutCancel(ctx), excess)
	}
}

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

// clampLimit bounds a limit to what one statement should move.
func clampLimit(n int) int { return min(n, 100_000) }

// multiLineClaims is how many claims skip "claim_lane" after jobs were seen in several lines: trying the single-line statement in vain costs a round
// trip.
const multiLineClaims = 8

// claim takes one batch by the cheapest way that is correct: a plan if one is needed, else runs if many lines of one owner have jobs, else the
// statement for a single open line, else the statement for several lines.
//
// If jobs are ready but nothing was taken, because concurrent claims hold the first rows of every line, the last try takes an equal share of every
// line. A line that others are claiming from can then not hide the other lines.
func (s *Store) claim(ctx context.Context, c store.Claim, batch holdfast.ID, l *claimScan) (taken claimResult, err error) {
	l.planned = c.OwnerSlots > 0 || s.plannedScopes.has(l.scope)
	if !l.planned && l.even {
		l.planned, err = s.mixedPriorities(ctx, l.scope)
	}
	if err != nil {
		return taken, err
	}
	if l.planned {
		return s.claimPlanned(ctx, c, batch, l)
	}
	if !l.all && s.wideScopes.has(l.scope) {
		if taken, done, err := s.takeRuns(ctx, c, batch, l); done || err != nil {
			return taken, err
		}
	}
	known, err := s.knownLines(ctx, l)
	if err != nil {
		return taken, err
	}
	statements := []string{"claim_lane", "claim", "claim"}
	if s.multiLine.Load() > 0 {
		statements = statements[1:]
	}
	for n, statement := range statements {
		even := n == len(statements)-1
		args := append([]any{cleanText(textArray(l.scope.Queues)), clampLimit(c.Limit), even}, l.marks...)
		args = append(args, cleanText(textArray(l.scope.Kinds)), known)
		taken, err = s.claimOnce(ctx, statement, c, batch, args)
		if taken.lanes > fewLanes {
			s.wideScopes.add(l.scope)
		}
		if len(taken.perLine) > 1 || statement == "claim_lane" && taken.more {
			s.multiLine.Store(multiLineClaims)
		} else if statement == "claim" {
			s.multiLine.Add(-1)
		}
		if err != nil || len(taken.leases) > 0 || !taken.more && !taken.planned {
			return taken, err
		}
		if taken.planned {
			l.planned = true
			s.plannedScopes.add(l.scope)
			return s.claimPlanned(ctx, c, batch, l)
		}
	}
	return taken, nil
}

// claimOnce runs one claim statement in a round trip of its own.
func (s *Store) claimOnce(ctx context.Context, how string, c store.Claim, batch holdfast.ID, rest []any) (taken claimResult, err error) {
	send := &pgx.Batch{}
	send.Queue(s.sql["configure_planner"])
	taken.leases = []store.Lease{}
	taken.queue(send, s.sql[how], batchClaim{c, batch}, rest)
	err = s.work.SendBatch(ctx, send).Close()
	return taken, err
}

// A batchClaim is a claim with the id of the batch that it creates.
type batchClaim struct {
	store.Claim
	batch holdfast.ID
}

// queue queues a statement that takes jobs, and reads its answer. The statement answers with one row for each job, or with a single row without a job
// that says whether jobs are ready and whether a plan is needed.
func (t *claimResult) queue(b *pgx.Batch, sql string, c batchClaim, rest []any) {
	args := []any{c.batch.String(), c.Worker, micros(c.Lease), clampLimit(max(c.Start, 0))}
	b.Queue(sql, append(args, rest...)...).Query(func(rows pgx.Rows) error {
		var f facts
		var now pgtype.Timestamptz
		var planned, more, started pgtype.Bool
		var lanes pgtype.Int8
		var id pgtype.UUID
		var lane, token, failures, crashes, interrupts, generation pgtype.Int4
		in := batchRow{id: c.batch, worker: c.Worker}
		into := append([]any{&now, &planned, &more, &lanes, &id, &lane, &token, &failures, &crashes, &interrupts, &generation, &started}, f.fields()...)
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
				m := member{id.Bytes, int(token.Int32), int(failures.Int32), int(crashes.Int32), int(interrupts.Int32), 1, started.Bool, ""}
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
func (s *Store) recoverClaim(ctx context.Context, batch holdfast.ID) (leases []store.Lease, err error) {
	err = s.transact(ctx, s.work, func(p *pipeline) error {
		leases, err = s.readBatches(ctx, p, []holdfast.ID{batch})
		return err
	})
	return leases, err
}

// readBatches returns all leases of the batches, as the claim that created them would have.
func (s *Store) readBatches(ctx context.Context, p *pipeline, batches []holdfast.ID) ([]store.Lease, error) {
	held, now, err := s.lockBatches(ctx, p, batches)
	if err != nil {
		return nil, err
	}
	known, err := s.readFacts(ctx, p, held)
	if err != nil {
		return nil, err
	}
	leases := []store.Lease{}
	for _, l := range held {
		for i := range l.members {
			if f, ok := known[l.members[i].job]; ok {
				leases = append(leases, f.lease(l, &l.members[i], now))
			}
		}
	}
	return leases, nil
}

// readFacts reads the facts of every member. A member without a row in holdfast_job is missing from the answer.
func (s *Store) readFacts(ctx context.Context, p *pipeline, held []*batchRow) (map[holdfast.ID]*facts, error) {
	var wanted []holdfast.ID
	for _, l := range held {
		for _, m := range l.members {
			wanted = append(wanted, m.job)
		}
	}
	known := make(map[holdfast.ID]*facts, len(wanted))
	if len(wanted) == 0 {
		return known, nil
	}
	p.Queue(s.sql["read_facts"], ids(wanted)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			f, id := &facts{}, [16]byte{}
			if err := rows.Scan(append([]any{&id}, f.fields()...)...); err != nil {
				return err
			}
			known[id] = f
		}
		return rows.Err()
	})
	return known, p.flush(ctx)
}

// facts are the columns of a job that a lease shows: its row in holdfast_job, which only an edit or a redrive changes, and what it carries between
// attempts. Columns that may be damaged may be NULL.
type facts struct {
	kind, queue, owner          internedText
	unique, idempotency         internedText
	dependency, trace           internedText
	within                      pgtype.Int8 // microseconds
	group                       pgtype.UUID
	priority                    pgtype.Int2
	tags                        []string
	maxAttempts                 pgtype.Int4
	created, run, expire, since pgtype.Timestamptz
	args, checkpoint            []byte // valid JSON: the column type guarantees it
}

// An internedText is a text column that usually has the same value in consecutive rows; then no new string is allocated. NULL reads as "".
type internedText struct{ text string }

// ScanBytes implements pgtype.BytesScanner.
func (w *internedText) ScanBytes(text []byte) error {
	if string(text) != w.text {
		w.text = string(text)
	}
	return nil
}

// fields are the scan targets, in the order of the claim statements and of "read_facts".
func (f *facts) fields() []any {
	return []any{&f.kind, &f.queue, &f.priority, &f.owner, &f.tags, &f.maxAttempts, &f.unique, &f.idempotency,
		&f.created, &f.run, &f.expire, &f.dependency, &f.within, &f.group, &f.trace, &f.args, &f.since, &f.checkpoint}
}

// lease returns the job as its worker sees it.
func (f *facts) lease(l *batchRow, m *member, now time.Time) store.Lease {
	answer := store.Lease{
		Batch: l.id, Since: f.created.Time.UTC(), Lost: l.lost, Corrupt: f.corrupt(),
		Job: holdfast.Job{
			ID: m.job, Kind: f.kind.text, Queue: f.queue.text, Args: f.args, Priority: f.priority.Int16, Owner: f.owner.text,
			Tags: f.tags, Dependency: f.dependency.text, RetryWithin: time.Duration(f.within.Int64) * time.Microsecond, MaxAttempts: int(f.maxAttempts.Int32), UniqueKey: f.unique.text, IdempotencyKey: f.idempotency.text, Trace: f.trace.text, CreatedAt: f.created.Time.UTC(),
			State: holdfast.Processing, Token: m.token, Failures: m.failures, Crashes: m.crashes, Releases: m.interrupts, Generation: m.generation,
			Worker: l.worker, LeaseUntil: l.expires.UTC(), AsOf: now.UTC(),
		},
	}
	if answer.Corrupt != "" {
		answer.Args = json.RawMessage("null")
	}
	if f.group.Valid {
		answer.Group = f.group.Bytes
	}
	if f.run.Valid {
		answer.RunAt = f.run.Time.UTC()
	}
	if f.expire.Valid {
		answer.ExpireAt = f.expire.Time.UTC()
	}
	if f.since.Valid {
		answer.Since = f.since.Time.UTC()
	}
	answer.Checkpoint = f.checkpoint
	if m.started {
		answer.StartedAt = l.claimed.UTC()
	}
	return answer
}

// corrupt returns what is wrong with the row, or "".
func (f *facts) corrupt() string {
	switch {
	case f.kind.text == "":
		return "the job has no kind"
	case f.queue.text == "":
		return "the job has no queue"
	case len(f.args) == 0:
		return "the arguments are missing"
	case len(f.args) > check.MaxArgs:
		return fmt.Sprintf("the arguments have %d bytes, the limit is %d", len(f.args), check.MaxArgs)
	}
	return ""
}
