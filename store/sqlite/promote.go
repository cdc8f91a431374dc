package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Promote makes up to limit queued jobs claimable whose time has come, and returns how many.
func (s *Store) Promote(ctx context.Context, limit int) (promoted int, err error) {
	if err := rule.Batch("promote", limit); err != nil {
		return 0, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		promoted, err = promote(t, limit)
		t.wakeup.allQueues = promoted > 0
		return err
	})
	if err != nil {
		return 0, err
	}
	return promoted, nil
}

// promote moves due rows from holdfast_later to holdfast_ready. The range ends at the limit's last key, so both
// statements move the same rows.
func promote(t *tx, limit int) (int, error) {
	due, last := t.now, highestID
	if _, err := t.one("find_promote_bound", []any{t.now, limit - 1}, &due, &last); err != nil {
		return 0, err
	}
	if _, err := t.exec("promote", due, last); err != nil {
		return 0, err
	}
	promoted, err := t.exec("delete_promoted", due, last)
	if err != nil {
		return 0, err
	}
	setAside, err := t.promoteSetAside(limit - promoted)
	return promoted + setAside, err
}

// promoteSetAside makes jobs claimable again that were set aside behind tags that are no longer held.
func (t *tx) promoteSetAside(limit int) (promoted int, err error) {
	for tag := ""; promoted < limit; {
		if free, err := t.one("find_free_tag", []any{t.now, tag}, &tag); err != nil || !free {
			return promoted, err
		}
		last := highestID
		if _, err := t.one("find_set_aside_bound", []any{tag, limit - promoted - 1}, &last); err != nil {
			return promoted, err
		}
		if _, err := t.exec("promote_set_aside", tag, last); err != nil {
			return promoted, err
		}
		n, err := t.exec("delete_promoted_set_aside", tag, last)
		if err != nil {
			return promoted, err
		}
		promoted += n
	}
	return promoted, nil
}
