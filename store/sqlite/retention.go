package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Purge deletes ended jobs whose retention is over. It examines up to p.Scan jobs beside the writer; the writer deletes
// those that are unchanged.
func (s *Store) Purge(ctx context.Context, p store.Purge) (done store.PurgeResult, err error) {
	if err := p.Check(); err != nil {
		return done, err
	}
	var due []purgeableJob
	var next holdfast.ID
	spared := map[string]int{}
	err = s.reader.with(ctx, func(beside *session) (err error) {
		due, next, err = beside.findPurgeable(&p, s.now().UnixMicro(), spared)
		return err
	})
	if err == nil && len(due) > 0 {
		err = s.writer.write(ctx, func(t *tx) (err error) {
			done, err = t.purge(due)
			return err
		})
	}
	if err != nil {
		return store.PurgeResult{}, explain(err)
	}
	if done.Next = next; len(spared) > 0 {
		done.Spared = spared
	}
	return done, nil
}

// A purgeableJob is an ended job as it was when its retention was decided.
type purgeableJob struct {
	store.Tombstone
	token, generation int
	expire            int64  // the time by which it had to start; 0: none
	skipped           bool   // a member that was not needed
	step              string // its name in its group
}

// findPurgeable examines the next ended jobs, in the order of their ids, and returns those whose retention is over.
func (s *session) findPurgeable(p *store.Purge, now int64, spared map[string]int) (due []purgeableJob, next holdfast.ID, err error) {
	examined := 0
	err = s.rows("find_purgeable", []any{p.After, p.Scan}, func(st *sqlite.Stmt) error {
		examined++
		next = columnID(st, 0)
		if st.ColumnInt(13) != 0 { // its group has not settled, or one of its artifacts has not expired
			return nil
		}
		tombstone := store.Tombstone{
			Job: next, Kind: st.ColumnText(1), Queue: st.ColumnText(2), Owner: st.ColumnText(3), Group: columnID(st, 4), GroupState: holdfast.GroupState(st.ColumnText(5)),
			State: holdfast.State(st.ColumnText(6)), Code: st.ColumnText(7), FinishedAt: instant(st.ColumnInt64(8)),
		}
		rule, purge := p.Decide(tombstone, instant(now))
		if !purge {
			return nil
		}
		if p.SpareDeadLetters && st.ColumnInt(12) != 0 {
			spared[rule]++
			return nil
		}
		tombstone.Rule = rule
		due = append(due, purgeableJob{tombstone, st.ColumnInt(9), st.ColumnInt(10), st.ColumnInt64(11), st.ColumnInt(14) != 0, st.ColumnText(15)})
		return nil
	})
	if examined < p.Scan {
		next = holdfast.ID{}
	}
	return due, next, err
}

// purgeStatements delete what is stored about jobs. Their order matters: each runs while the rows that it reads are
// still there.
var purgeStatements = []string{
	"purge_redriven", "purge_idempotency", "purge_unique", "purge_attempts", "purge_late", "purge_carry", "purge_cancel", "purge_order", "purge_upstreams",
	"purge_steps", "purge_waiters", "purge_artifacts", "purge_finished", "purge_jobs",
}

// A purgeKey is what purged jobs are counted by.
type purgeKey struct{ rule, kind, state, code string }

// purge deletes jobs if they are unchanged since they were examined. Each leaves a tombstone.
func (t *tx) purge(due []purgeableJob) (done store.PurgeResult, err error) {
	if due, err = t.stillPurgeable(due); err != nil || len(due) == 0 {
		return done, err
	}
	counts, jobs := map[purgeKey]int{}, make([]holdfast.ID, len(due))
	done.Rules = map[string]int{}
	for i := range due {
		e := &due[i]
		jobs[i] = e.Job
		counts[purgeKey{e.Rule, e.Kind, string(e.State), e.Code}]++
		done.Rules[e.Rule]++
		if err := t.addTombstone(e); err != nil {
			return done, err
		}
	}
	if err := t.flushRows(); err != nil {
		return done, err
	}
	for c, n := range counts {
		if _, err := t.exec("purge_count", c.rule, c.kind, c.state, c.code, n, t.now); err != nil {
			return done, err
		}
	}
	for _, name := range purgeStatements {
		if err := t.rowsByID(name, jobs, nil); err != nil {
			return done, err
		}
	}
	done.Jobs = len(jobs)
	return done, nil
}

// stillPurgeable returns the jobs that have the same token and generation as when they were examined, and that nothing
// else keeps.
func (t *tx) stillPurgeable(due []purgeableJob) ([]purgeableJob, error) {
	jobs, current := make([]holdfast.ID, len(due)), make(map[holdfast.ID][2]int, len(due))
	for i := range due {
		jobs[i] = due[i].Job
	}
	err := t.rowsByID("recheck_purgeable", jobs, func(st *sqlite.Stmt) error {
		current[columnID(st, 0)] = [2]int{st.ColumnInt(1), st.ColumnInt(2)}
		return nil
	})
	same := due[:0:0]
	for i := range due {
		if current[due[i].Job] == [2]int{due[i].token, due[i].generation} {
			same = append(same, due[i])
		}
	}
	return same, err
}

// addTombstone writes the tombstone of a job, and deletes its expiry.
func (t *tx) addTombstone(e *purgeableJob) error {
	if e.expire != 0 {
		if _, err := t.exec("purge_expiry", e.expire, e.Job); err != nil {
			return err
		}
	}
	var group any
	if !e.Group.IsZero() {
		group = e.Group
	}
	return t.addRow("tombstone_add", e.Job, e.Kind, e.Queue, nullIfEmpty(e.Owner), group, nullIfEmpty(string(e.GroupState)), e.State, nullIfEmpty(e.Code), e.FinishedAt, t.now, e.Rule, e.skipped, nullIfEmpty(e.step))
}

// DeleteHistory deletes up to limit entries of a history (store.HistoryFeed and so on) that are older than a duration, oldest first, and returns how many.
func (s *Store) DeleteHistory(ctx context.Context, history string, older time.Duration, limit int) (forgotten int, err error) {
	if err := rule.DeleteHistory(history, older, limit); err != nil {
		return 0, err
	}
	act := map[string]func(t *tx, before int64, limit int) (int, error){
		store.HistoryFeed: (*tx).deleteFeed, store.HistoryStories: (*tx).deleteStory,
		store.HistoryCounts: (*tx).deleteCounts, store.HistoryTombstones: (*tx).deleteTombstones,
	}[history]
	err = s.writer.write(ctx, func(t *tx) (err error) {
		forgotten, err = act(t, t.at(-older), limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return forgotten, nil
}

// deleteFeed deletes whole pages, up to the first page that is too young, and only pages whose ends AdvanceGroups has
// handled.
func (t *tx) deleteFeed(before int64, limit int) (pages int, err error) {
	var last int64
	err = t.rows("find_old_pages", []any{limit}, func(st *sqlite.Stmt) error {
		if st.ColumnInt64(2) > before {
			return errStop
		}
		pages, last = pages+1, st.ColumnInt64(0)+st.ColumnInt64(1)-1
		return nil
	})
	if err = ignoreEnough(err); err != nil || pages == 0 {
		return 0, err
	}
	if _, err := t.exec("delete_pages", last); err != nil {
		return 0, err
	}
	_, err = t.exec("save_purged_number", last)
	return pages, err
}

// ignoreEnough returns nil for a read that was ended early on purpose.
func ignoreEnough(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// deleteStory deletes events from the beginning of the chain. It keeps the hash of the last deleted event, so that the
// rest of the chain can still be verified, and appends an event that says what was deleted (the mark).
func (t *tx) deleteStory(before int64, limit int) (lines int, err error) {
	var mark rule.Mark
	err = t.rows("find_old_events", []any{limit}, func(st *sqlite.Stmt) error {
		if st.ColumnInt64(2) > before {
			return errStop
		}
		mark.Lines, mark.Link, mark.Newest = mark.Lines+1, st.ColumnInt(0), instant(st.ColumnInt64(2))
		scan(st, 1, &mark.Hash)
		return nil
	})
	if err = ignoreEnough(err); err != nil {
		return 0, err
	}
	var last int64
	if _, err := t.one("find_last_mark", []any{rule.MarkSubject, rule.MarkName}, &last); err != nil || !rule.Shortens(mark.Lines, limit, instant(last), instant(t.now)) {
		return 0, err
	}
	if _, err := t.exec("delete_events", mark.Link); err != nil {
		return 0, err
	}
	if _, err := t.exec("save_chain_anchor", mark.Link, mark.Hash); err != nil {
		return 0, err
	}
	line := mark.Line()
	return mark.Lines, t.addEvent(&line)
}

func (t *tx) deleteTombstones(before int64, limit int) (int, error) {
	return t.exec("delete_tombstones", before, limit)
}

// deleteCounts deletes counts whose whole step is older. The counts of error groups and those of trends are deleted up
// to limit each. The result is the larger number, so that it is 0 when both are done.
func (t *tx) deleteCounts(before int64, limit int) (int, error) {
	groups, err := t.deleteErrorCounts(before, limit)
	if err != nil {
		return 0, err
	}
	trends, err := t.exec("delete_trend_counts", before-trendStep, limit)
	return max(groups, trends), err
}

func (t *tx) deleteErrorCounts(before int64, limit int) (int, error) {
	var steps [][]any
	err := t.rows("find_old_error_counts", []any{before - errorCountStep, limit}, func(st *sqlite.Stmt) error {
		steps = append(steps, []any{st.ColumnText(0), st.ColumnInt64(1), st.ColumnText(2), st.ColumnText(3), st.ColumnText(4), st.ColumnText(5)})
		return nil
	})
	for _, s := range steps {
		if err == nil {
			_, err = t.exec("delete_error_counts", s...)
		}
	}
	return len(steps), err
}
