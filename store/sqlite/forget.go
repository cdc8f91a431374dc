package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// Forget deletes what is older from a shelf, the oldest first.
func (s *Store) Forget(ctx context.Context, shelf string, older time.Duration, limit int) (forgotten int, err error) {
	if err := rule.Forget(shelf, older, limit); err != nil {
		return 0, err
	}
	act := map[string]func(t *tx, before int64, limit int) (int, error){
		holdfast.ShelfFeed: (*tx).forgetFeed, holdfast.ShelfStory: (*tx).forgetStory,
		holdfast.ShelfTallies: (*tx).forgetTallies, holdfast.ShelfTombstones: (*tx).forgetTombstones,
	}[shelf]
	err = s.writer.write(ctx, func(t *tx) (err error) {
		forgotten, err = act(t, t.at(-older), limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return forgotten, nil
}

// forgetFeed deletes whole pages, up to the first that is young, and never beyond what groups have followed.
func (t *tx) forgetFeed(before int64, limit int) (pages int, err error) {
	var last int64
	err = t.rows("find_old_pages", []any{limit}, func(st *sqlite.Stmt) error {
		if st.ColumnInt64(2) > before {
			return errEnough
		}
		pages, last = pages+1, st.ColumnInt64(0)+st.ColumnInt64(1)-1
		return nil
	})
	if err = ignore(err); err != nil || pages == 0 {
		return 0, err
	}
	if _, err := t.exec("delete_pages", last); err != nil {
		return 0, err
	}
	_, err = t.exec("save_purged_number", last)
	return pages, err
}

// ignore forgets that a reading was ended early.
func ignore(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// forgetStory deletes lines from the beginning of the chain, and keeps the hash of the last, so that the rest can be checked. A mark tells of it.
func (t *tx) forgetStory(before int64, limit int) (lines int, err error) {
	var mark rule.Mark
	err = t.rows("find_old_events", []any{limit}, func(st *sqlite.Stmt) error {
		if st.ColumnInt64(2) > before {
			return errEnough
		}
		mark.Lines, mark.Link, mark.Newest = mark.Lines+1, st.ColumnInt(0), instant(st.ColumnInt64(2))
		scan(st, 1, &mark.Hash)
		return nil
	})
	if err = ignore(err); err != nil {
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
	return mark.Lines, t.tellAll(&line)
}

func (t *tx) forgetTombstones(before int64, limit int) (int, error) {
	return t.exec("delete_tombstones", before, limit)
}

// forgetTallies deletes steps that lie wholly before a time. Those of error groups and those of trends are two piles on one shelf: each gives
// up to limit, and the answer is the larger number, so that it is 0 when both are done.
func (t *tx) forgetTallies(before int64, limit int) (int, error) {
	groups, err := t.forgetErrorTallies(before, limit)
	if err != nil {
		return 0, err
	}
	trends, err := t.exec("delete_trend_counts", before-minute, limit)
	return max(groups, trends), err
}

func (t *tx) forgetErrorTallies(before int64, limit int) (int, error) {
	var steps [][]any
	err := t.rows("find_old_error_counts", []any{before - step, limit}, func(st *sqlite.Stmt) error {
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
