package sqlite

import (
	"context"
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Sequence seals up to limit events of stories into the chain of hashes.
//
// On SQLite, feed pages have their final numbers when they are written, because there is one writer at a time: the
// write lock orders transactions across processes, and numbers are assigned immediately before the commit. So the feed
// has no gaps and needs no later numbering, and Sequence has only the chain to do. It does not use the writer while
// there is nothing to seal.
func (s *Store) Sequence(ctx context.Context, limit int) (sealed int, err error) {
	if err := rule.Batch("sequence", limit); err != nil {
		return 0, err
	}
	open := false
	err = s.reader.with(ctx, func(beside *session) (err error) {
		open, err = beside.one("find_unsealed_events", []any{1})
		return err
	})
	if err == nil && open {
		err = s.writer.write(ctx, func(t *tx) (err error) {
			sealed, err = t.seal(limit)
			return err
		})
	}
	if err != nil {
		return 0, explain(err)
	}
	return sealed, nil
}

// A sealed is an event that is about to be sealed.
type sealed struct {
	id    int64
	event store.Event
}

// seal gives the oldest unsealed events their places in the chain, in the order of their row ids. Each hash covers the
// event and the hash before it. The last link and hash are read and written in the same write transaction, so two
// processes cannot seal the same place.
func (t *tx) seal(limit int) (int, error) {
	var lines []sealed
	err := t.rows("find_unsealed_events", []any{limit}, func(st *sqlite.Stmt) error {
		lines = append(lines, sealed{st.ColumnInt64(0), store.Event{Job: columnID(st, 1), Subject: st.ColumnText(2), At: instant(st.ColumnInt64(3)), Name: st.ColumnText(4),
			Actor: st.ColumnText(5), Reason: st.ColumnText(6), Request: st.ColumnText(7), Token: st.ColumnInt(8), Generation: st.ColumnInt(9), Was: json.RawMessage(st.ColumnText(10))}})
		return nil
	})
	if err != nil || len(lines) == 0 {
		return 0, err
	}
	var head, purged, advanced, link int64
	var hash []byte
	if _, err := t.one("read_feed", nil, &head, &purged, &advanced, &link, &hash); err != nil {
		return 0, err
	}
	for i := range lines {
		link++
		hash = sqltext.Link(hash, lines[i].event)
		if _, err := t.exec("seal_event", lines[i].id, link, hash); err != nil {
			return 0, err
		}
	}
	_, err = t.exec("advance_chain", link, hash)
	return len(lines), err
}
