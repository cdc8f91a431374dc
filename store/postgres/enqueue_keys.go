package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A session runs statements inside one transaction, of the store or of the caller.
type session interface {
	exec(ctx context.Context, sql string, args ...any) error
	query(ctx context.Context, sql string, args []any, each func(scan func(...any) error) error) error
	rows(ctx context.Context, sql string, args []any, each func(inspect.Row) error) error
}

// errAlreadyCommitted means that an attempt whose answer was lost has committed after all.
var errAlreadyCommitted = errors.New("the first attempt has committed")

// insertKeyed writes entries of which some have keys or groups, in a transaction of their own. If an answer is lost, the next attempt finds what the
// first one has written, under its keys or its ids, once that is visible.
func (s *Store) insertKeyed(ctx context.Context, entries []entry) ([]holdfast.Receipt, error) {
	var receipts []holdfast.Receipt
	var fresh []entry
	lost := false
	err := s.withRetries(ctx, "enqueue", true, func(ctx context.Context) error {
		if lost {
			if committed, err := s.committed(ctx, fresh); err != nil || committed {
				return err
			}
		}
		answers, writes, err := s.tryKeyed(ctx, entries, fresh)
		if lost && (isDuplicate(err) || errors.Is(err, errAlreadyCommitted)) {
			if committed, err := s.committed(ctx, fresh); err != nil || committed {
				return err
			}
			if errors.Is(err, errAlreadyCommitted) && replacing(entries) { // their content was replaced since
				return nil
			}
		}
		if err != nil && !mayHaveCommitted(err) {
			return s.explainDuplicate(ctx, s.work, writes, err)
		}
		receipts, fresh = answers, writes
		lost = err != nil && len(fresh) > 0
		return err
	})
	return receipts, err
}

// tryKeyed is one attempt. earlier are the entries that an earlier attempt may have committed: meeting one of them is errAlreadyCommitted and not a
// duplicate.
func (s *Store) tryKeyed(ctx context.Context, entries, earlier []entry) (receipts []holdfast.Receipt, fresh []entry, err error) {
	err = s.runTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.sql["configure_planner"]); err != nil {
			return err
		}
		a, err := s.admit(ctx, pgxSession{tx}, entries, false)
		if receipts, fresh = a.receipts, a.fresh; err != nil {
			return err
		}
		for _, e := range earlier {
			met := func(r holdfast.Receipt) bool { return r.ID == e.ID && r.Existing }
			if slices.ContainsFunc(receipts, met) && !slices.ContainsFunc(fresh, func(f entry) bool { return f.ID == e.ID }) {
				return errAlreadyCommitted
			}
		}
		return a.write(ctx, tx.Conn(), holdfast.ID{})
	})
	return receipts, fresh, err
}

// writeEntries writes entries that were admitted: it checks and locks their groups, inserts them, with COPY if there are many and a connection is
// given, and records what they wait for. If own is given, that group takes them although it is sealed: a member of it adds them.
func (s *Store) writeEntries(ctx context.Context, q session, conn *pgx.Conn, fresh []entry, own holdfast.ID) error {
	if err := s.joinGroups(ctx, q, fresh, own); err != nil {
		return err
	}
	if len(fresh) >= copyThreshold && conn != nil {
		if err := s.copyIn(ctx, conn, fresh); err != nil {
			return err
		}
		return s.writeAfter(ctx, q, fresh)
	}
	for chunk := range slices.Chunk(fresh, maxDraftsPerStatement) {
		name, args := enqueueArgs(chunk)
		if err := q.exec(ctx, s.sql[name], args...); err != nil {
			return err
		}
	}
	return s.writeAfter(ctx, q, fresh)
}

// write writes the entries that were admitted, and then what other entries of the call replace in them. If own is given, that group takes them although it is
// sealed.
func (a *admission) write(ctx context.Context, conn *pgx.Conn, own holdfast.ID) error {
	if err := a.s.writeEntries(ctx, a.q, conn, a.fresh, own); err != nil {
		return err
	}
	return a.replaceFresh(ctx)
}

// An admission decides which entries are new and which match an existing job.
type admission struct {
	s           *Store
	q           session
	entries     []entry
	receipts    []holdfast.Receipt
	duplicateOf map[int]int // index of the earlier entry of this call with the same idempotency key
	conflicting []int       // entries whose idempotency key was used for a different draft
	fresh       []entry     // entries that have to be written
	deferred    []int       // entries that replace the content of fresh ones
}

// admit takes the keys of the entries, and decides which of them have to be written. A draft whose idempotency key was used for a different draft refuses the call;
// if lenient is set, it counts as an existing job.
func (s *Store) admit(ctx context.Context, q session, entries []entry, lenient bool) (*admission, error) {
	a := &admission{s: s, q: q, entries: entries, receipts: make([]holdfast.Receipt, len(entries)), duplicateOf: map[int]int{}}
	for i := range entries {
		a.receipts[i].ID = entries[i].ID
	}
	if err := a.idempotency(ctx); err != nil {
		return a, err
	}
	if err := a.unique(ctx); err != nil {
		return a, err
	}
	var fresh []entry
	for i := range entries {
		if first, ok := a.duplicateOf[i]; ok {
			a.receipts[i] = holdfast.Receipt{ID: a.receipts[first].ID, Existing: true}
		}
		if slices.Contains(a.conflicting, i) && !lenient {
			return a, a.refuse(ctx, i, fresh)
		}
		if !a.receipts[i].Existing {
			fresh = append(fresh, entries[i])
		}
	}
	a.fresh = retargetAfter(entries, a.receipts, fresh)
	return a, nil
}

// refuse returns the error of the first entry that cannot be accepted: the used key of entry i, unless an entry before it has an id that is taken.
func (a *admission) refuse(ctx context.Context, i int, before []entry) error {
	if err := a.s.checkIDsFree(ctx, a.q, before); err != nil {
		return err
	}
	return rule.KeyUsed(a.entries[i].IdempotencyKey, a.receipts[i].ID)
}

// checkIDsFree returns an error for the first entry whose chosen id belongs to an existing job or to an earlier entry.
func (s *Store) checkIDsFree(ctx context.Context, q session, entries []entry) error {
	var given []holdfast.ID
	there := map[holdfast.ID]bool{}
	for _, e := range entries {
		if e.given {
			given = append(given, e.ID)
		}
	}
	err := q.query(ctx, s.sql["find_jobs"], []any{ids(given)}, func(scan func(...any) error) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		id, err := holdfast.ParseID(text)
		there[id] = true
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range given {
		if there[id] {
			return rule.JobExists(id)
		}
		there[id] = true
	}
	return nil
}

// explainDuplicate replaces a unique-constraint error by ErrConflict with the id of the existing job, if an entry has one. Any of several tables may
// have reported the error.
func (s *Store) explainDuplicate(ctx context.Context, q session, entries []entry, err error) error {
	if !isDuplicate(err) {
		return err
	}
	if known := s.checkIDsFree(ctx, q, entries); known != nil {
		return known
	}
	return err
}

// A key is the primary key of a row in holdfast_unique or holdfast_idempotency. Idempotency keys have no kind.
type key struct{ owner, kind, key string }

// idempotency takes the idempotency keys, and finds the jobs of those that were taken before.
func (a *admission) idempotency(ctx context.Context) error {
	first, digests := map[key]int{}, map[int]string{}
	for i, e := range a.entries {
		if e.IdempotencyKey == "" {
			continue
		}
		digest := sqltext.Digest(*e.Draft)
		digests[i] = hex.EncodeToString(digest[:])
		k := key{owner: e.Owner, key: e.IdempotencyKey}
		before, ok := first[k]
		if !ok {
			first[k] = i
			continue
		}
		a.duplicateOf[i] = before
		if digests[before] != digests[i] {
			a.conflicting = append(a.conflicting, i)
		}
	}
	return a.take(ctx, "idempotency", first, digests, func(i int, digest string, job holdfast.ID) {
		a.receipts[i] = holdfast.Receipt{ID: job, Existing: true}
		if digest != digests[i] {
			a.conflicting = append(a.conflicting, i)
		}
	})
}

// unique takes the unique keys of the entries that are still new. The idempotency keys of entries that do not get their unique key are bound to the
// job that holds it.
func (a *admission) unique(ctx context.Context) error {
	first, sameKey := map[key]int{}, map[int]int{}
	var keyed map[int]key // if any entry replaces
	if replacing(a.entries) {
		keyed = map[int]key{}
	}
	for i, e := range a.entries {
		if _, seen := a.duplicateOf[i]; seen || a.receipts[i].Existing || e.UniqueKey == "" {
			continue
		}
		k := key{e.Owner, e.Kind, e.UniqueKey}
		if keyed != nil {
			keyed[i] = k
		}
		if before, ok := first[k]; ok {
			sameKey[i] = before
		} else {
			first[k] = i
		}
	}
	if err := a.lockReplaced(ctx, keyed); err != nil {
		return err
	}
	var lost []int
	err := a.take(ctx, "unique", first, nil, func(i int, _ string, job holdfast.ID) {
		a.receipts[i] = holdfast.Receipt{ID: job, Existing: true}
		lost = append(lost, i)
	})
	if err != nil {
		return err
	}
	for i, before := range sameKey {
		a.receipts[i] = holdfast.Receipt{ID: a.receipts[before].ID, Existing: true}
		lost = append(lost, i)
	}
	if keyed != nil {
		if err := a.replaceHolders(ctx, keyed); err != nil {
			return err
		}
	}
	var owner, name, job column
	for _, i := range lost {
		if e := a.entries[i]; e.IdempotencyKey != "" && a.receipts[i].Existing {
			owner.quote(e.Owner)
			name.quote(e.IdempotencyKey)
			job.id(a.receipts[i].ID)
		}
	}
	if len(owner.text) == 0 {
		return nil
	}
	return a.q.exec(ctx, a.s.sql["idempotency_bind"], owner.String(), name.String(), job.String())
}

// take inserts keys into their table and calls lost for each key that another job holds. There is no check before the insert: the insert waits for a
// concurrent transaction with the same key to commit or roll back. A key that was neither taken nor found was freed in between, so it is tried again.
func (a *admission) take(ctx context.Context, table string, want map[key]int, digests map[int]string, lost func(i int, digest string, job holdfast.ID)) error {
	for round := 0; len(want) > 0; round++ {
		if round > 20 {
			return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not enqueue: other processes keep taking and freeing one of the keys; try again"}
		}
		names, values := a.keyColumns(table, want, digests)
		got := func(scan func(...any) error) error {
			var k key
			err := scan(k.fields(table)...)
			delete(want, k)
			return err
		}
		if err := a.q.query(ctx, a.s.sql[table+"_take"], append(names, values...), got); err != nil || len(want) == 0 {
			return err
		}
		held := func(scan func(...any) error) error {
			var k key
			var digest, text string
			fields := k.fields(table)
			if table == "idempotency" {
				fields = append(fields, &digest)
			}
			if err := scan(append(fields, &text)...); err != nil {
				return err
			}
			job, err := holdfast.ParseID(text)
			if i, ok := want[k]; ok {
				lost(i, digest, job)
			}
			delete(want, k)
			return err
		}
		if err := a.q.query(ctx, a.s.sql[table+"_find"], names, held); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the scan targets of the key columns.
func (k *key) fields(table string) []any {
	if table == "unique" {
		return []any{&k.owner, &k.kind, &k.key}
	}
	return []any{&k.owner, &k.key}
}

// keyColumns returns the parameters that name the keys, and those that name the jobs that want them.
func (a *admission) keyColumns(table string, want map[key]int, digests map[int]string) (names, values []any) {
	var owner, kind, name, digest, job column
	for k, i := range want {
		owner.quote(k.owner)
		kind.quote(k.kind)
		name.quote(k.key)
		digest.quote(digests[i])
		job.id(a.entries[i].ID)
	}
	if table == "unique" {
		return []any{owner.String(), kind.String(), name.String()}, []any{job.String()}
	}
	return []any{owner.String(), name.String()}, []any{digest.String(), job.String()}
}

// enqueueIn writes entries in a transaction of the store, and returns those that were new.
func (s *Store) enqueueIn(ctx context.Context, p *pipeline, entries []entry) ([]entry, error) {
	if err := p.flush(ctx); err != nil {
		return nil, err
	}
	q := pgxSession{p.conn}
	a, err := s.admit(ctx, q, entries, true)
	if err != nil || len(a.fresh) == 0 {
		return nil, err
	}
	return a.fresh, a.write(ctx, p.conn, holdfast.ID{})
}
