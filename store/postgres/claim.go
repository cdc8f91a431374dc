package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Claim moves due jobs from queued to processing. Where one owner's jobs wait and holds are open or closed, that is one statement
// and one round trip; elsewhere it is planned. When the marks, or the lines that the store remembers, let it see fewer than it may take, it looks at
// everything before it says so.
func (s *Store) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
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
	if err != nil && len(leases) > 0 { // what is held must reach its holder
		return leases, nil
	}
	return append(leases, rest.leases...), err
}

// take claims one batch.
func (s *Store) take(ctx context.Context, c holdfast.Claim, l *claimScan) (taken claimResult, err error) {
	batch := holdfast.NewID()
	lost := false
	err = s.withRetries(ctx, "claim", true, func(ctx context.Context) (err error) {
		if lost { // the answer, and perhaps the claim: its batch has our id, so it can be found
			if taken.leases, err = s.recoverClaim(ctx, batch); err != nil || len(taken.leases) > 0 {
				return err
			}
		}
		taken, err = s.claim(ctx, c, batch, l)
		if lost && (isDuplicate(err) || err == nil && len(taken.leases) == 0) { // the first try was still on its way
			taken.leases, err = s.recoverClaim(ctx, batch)
		}
		lost = lost || err != nil && mayHaveCommitted(err)
		return err
	})
	switch {
	case l.planned: // it has a memory of its own
		s.marks.dropScan(l)
	case l.tookRuns:
		s.marks.endHeadScan(l, taken.last)
	default:
		s.marks.endScan(l, taken.last, err == nil && taken.rows == clampLimit(c.Limit))
	}
	s.releaseExcess(ctx, taken.excess)
	return taken, err
}

// giveBack returns jobs to their queues that a claim has taken and has no memory for: how large they are shows only in the answer. If it fails, they return when
// their lease ends.
func (s *Store) releaseExcess(ctx context.Context, excess []holdfast.Settlement) {
	if len(excess) > 0 {
		_, _ = s.Settle(context.WithoutCancel(ctx), excess)
	}
}

// A claimed is the answer to a claim.
type claimResult struct {
	leases  []holdfast.Lease
	bytes   int                   // of their arguments and checkpoints
	excess  []holdfast.Settlement // what goes back, since there were more bytes than the claim may have
	rows    int                   // how many were taken, those without facts among them
	last    map[place]holdfast.ID // of each place, the last one taken
	lines   map[int32]int         // how many of each line
	each    map[place]int         // how many of each place
	lanes   int                   // how many lanes are in the claim's scope, when it was not planned
	more    bool                  // nothing was taken although something is there
	planned bool                  // nothing was taken because it takes a plan
}

// atMost keeps a count within what one statement should move.
func clampLimit(n int) int { return min(n, 100_000) }

// fewClaims is for how many claims jobs in several lines are expected after they were seen there: asking in vain for a single
// line costs a round trip.
const multiLineClaims = 8

// claim takes what is there: by a plan where one is needed, or else from the one open line if there is one, or from all of them.
// When something is there and nothing came of it, because others were faster, it is asked once more with the lines sharing
// evenly, so that a line others are at cannot hide the rest.
func (s *Store) claim(ctx context.Context, c holdfast.Claim, batch holdfast.ID, l *claimScan) (taken claimResult, err error) {
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
	ways := []string{"claim_lane", "claim", "claim"}
	if s.multiLine.Load() > 0 {
		ways = ways[1:]
	}
	for n, way := range ways {
		even := n == len(ways)-1
		args := append([]any{cleanText(textArray(l.scope.Queues)), clampLimit(c.Limit), even}, l.marks...)
		args = append(args, cleanText(textArray(l.scope.Kinds)), known)
		taken, err = s.claimOnce(ctx, way, c, batch, args)
		if taken.lanes > fewLanes {
			s.wideScopes.add(l.scope)
		}
		if len(taken.lines) > 1 || way == "claim_lane" && taken.more {
			s.multiLine.Store(multiLineClaims)
		} else if way == "claim" {
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

func (s *Store) claimOnce(ctx context.Context, how string, c holdfast.Claim, batch holdfast.ID, rest []any) (taken claimResult, err error) {
	send := &pgx.Batch{}
	send.Queue(s.sql["configure_planner"])
	taken.leases = []holdfast.Lease{}
	taken.queue(send, s.sql[how], batchClaim{c, batch}, rest)
	err = s.work.SendBatch(ctx, send).Close()
	return taken, err
}

// A claiming is a claim and the batch that it makes.
type batchClaim struct {
	holdfast.Claim
	batch holdfast.ID
}

// queue queues a statement that takes jobs, and reads its answer.
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
			if t.rows++; t.rows == 1 { // leases are large: room is made once, and not for an empty answer
				t.leases, t.last = make([]holdfast.Lease, 0, min(c.Limit, 1024)), map[place]holdfast.ID{}
				t.lines, t.each = map[int32]int{}, map[place]int{}
			}
			if now.Valid {
				in.claimed, in.expires = now.Time, now.Time.Add(c.Lease.Truncate(time.Microsecond))
			}
			t.lines[lane.Int32]++
			if f.created.Valid { // or else it is a row without its job
				at := place{lane.Int32, f.priority.Int16}
				t.last[at] = id.Bytes
				t.each[at]++
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

// keep adds a lease to the answer, or to what goes back when there is no memory left for it: then everything after it goes back too, so that nothing overtakes it.
func (t *claimResult) keep(most int, l holdfast.Lease) {
	size := len(l.Args) + len(l.Checkpoint)
	if most > 0 && len(t.leases) > 0 && (len(t.excess) > 0 || t.bytes+size > most) {
		t.excess = append(t.excess, holdfast.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Queued, Charge: holdfast.ChargeInterrupt, Queue: l.Queue,
			Why: "it was claimed together with more than fits into memory"})
		return
	}
	t.bytes += size
	t.leases = append(t.leases, l)
}

// pickUp answers with the members of a batch that was made by a call whose answer was lost.
func (s *Store) recoverClaim(ctx context.Context, batch holdfast.ID) (leases []holdfast.Lease, err error) {
	err = s.transact(ctx, s.work, func(p *pipeline) error {
		leases, err = s.readBatches(ctx, p, []holdfast.ID{batch})
		return err
	})
	return leases, err
}

// handOver reads whole batches as a claim would have answered.
func (s *Store) readBatches(ctx context.Context, p *pipeline, batches []holdfast.ID) ([]holdfast.Lease, error) {
	held, now, err := s.lockBatches(ctx, p, batches)
	if err != nil {
		return nil, err
	}
	known, err := s.readFacts(ctx, p, held)
	if err != nil {
		return nil, err
	}
	leases := []holdfast.Lease{}
	for _, l := range held {
		for i := range l.members {
			if f, ok := known[l.members[i].job]; ok {
				leases = append(leases, f.lease(l, &l.members[i], now))
			}
		}
	}
	return leases, nil
}

// read fetches the facts of every member. A member without any is missing from the answer.
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

// facts are what never changes about a job, and what it takes along, as they are read. Whatever may be damaged may be NULL.
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
	args, checkpoint            []byte // JSON, or else the database would not hold it
}

// A word is a text that is mostly the same from row to row, and is not made anew then. NULL is no text.
type internedText struct{ text string }

// ScanBytes is what the driver calls.
func (w *internedText) ScanBytes(text []byte) error {
	if string(text) != w.text {
		w.text = string(text)
	}
	return nil
}

func (f *facts) fields() []any {
	return []any{&f.kind, &f.queue, &f.priority, &f.owner, &f.tags, &f.maxAttempts, &f.unique, &f.idempotency,
		&f.created, &f.run, &f.expire, &f.dependency, &f.within, &f.group, &f.trace, &f.args, &f.since, &f.checkpoint}
}

// lease is the job in its holder's hands.
func (f *facts) lease(l *batchRow, m *member, now time.Time) holdfast.Lease {
	answer := holdfast.Lease{
		Batch: l.id, Since: f.created.Time.UTC(), Lost: l.lost, Corrupt: f.corrupt(),
		Job: holdfast.Job{
			ID: m.job, Kind: f.kind.text, Queue: f.queue.text, Args: f.args, Priority: f.priority.Int16, Owner: f.owner.text,
			Tags: f.tags, Dependency: f.dependency.text, RetryWithin: time.Duration(f.within.Int64) * time.Microsecond, MaxAttempts: int(f.maxAttempts.Int32), UniqueKey: f.unique.text, IdempotencyKey: f.idempotency.text, Trace: f.trace.text, CreatedAt: f.created.Time.UTC(),
			State: holdfast.Processing, Token: m.token, Failures: m.failures, Crashes: m.crashes, Interrupts: m.interrupts, Generation: m.generation,
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

// corrupt says what is wrong with the row, if anything is.
func (f *facts) corrupt() string {
	switch {
	case f.kind.text == "":
		return "the job has no kind"
	case f.queue.text == "":
		return "the job has no queue"
	case len(f.args) == 0:
		return "the arguments are missing"
	case len(f.args) > holdfast.MaxArgs:
		return fmt.Sprintf("the arguments have %d bytes, the limit is %d", len(f.args), holdfast.MaxArgs)
	}
	return ""
}
