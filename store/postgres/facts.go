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
)

// readBatches returns all leases of the batches, as the claim that created them would have.
func (d *database) readBatches(ctx context.Context, p *pipeline, batches []holdfast.ID) ([]store.Lease, error) {
	held, now, err := d.lockBatches(ctx, p, batches)
	if err != nil {
		return nil, err
	}
	known, err := d.readFacts(ctx, p, held)
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
func (d *database) readFacts(ctx context.Context, p *pipeline, held []*batchRow) (map[holdfast.ID]*facts, error) {
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
	p.Queue(d.sql["read_facts"], ids(wanted)).Query(func(rows pgx.Rows) error {
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
			State: holdfast.Processing, Token: m.token, Failures: m.failures, Crashes: m.crashes, Releases: m.releases, Generation: m.generation,
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
