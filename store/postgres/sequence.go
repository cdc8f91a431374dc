package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// sealMax is how many events are sealed in one call, at least.
const sealMax = 1000

// Sequence numbers the pages of events that were committed since the last call, and seals the events of the audit log into a hash chain. It returns
// the number of pages, or limit if there may be more to do.
//
// Transactions write their pages without numbers. Sequence numbers committed pages only, while it holds the lock of the feed's row. So numbers are
// consecutive, and no page with a lower number appears after a reader has read a higher one.
func (s *Store) Sequence(ctx context.Context, limit int) (pages int, err error) {
	if err := rule.Batch("sequence", limit); err != nil {
		return 0, err
	}
	limit = clampLimit(limit)
	err = s.withRetries(ctx, "number events", true, func(ctx context.Context) error {
		pages = 0
		some := false
		if err := s.work.queryRow(ctx, s.sql["check_feed"], nil, &some); err != nil || !some {
			return err
		}
		return s.transact(ctx, s.work, func(p *pipeline) error {
			var f feed
			f.queueLock(p, s.sql["feed_lock"])
			p.queueRow(s.sql["number_pages"], []any{limit}, &pages)
			sealed, err := s.sealLines(ctx, p, &f, max(limit, sealMax))
			if sealed == max(limit, sealMax) {
				pages = limit // there may be more events to seal, though perhaps no more pages
			}
			return err
		})
	})
	return pages, err
}

// A feed is the position of the feed and of the hash chain, read under the lock of its row.
type feed struct {
	head, purged, advanced, link, anchor int64
	hash                                 []byte
	now                                  time.Time
}

func (f *feed) queueLock(p *pipeline, sql string) {
	p.queueRow(sql, nil, &f.head, &f.purged, &f.advanced, &f.link, &f.hash, &f.anchor, &f.now)
}

// sealLines seals events into the chain, in the order in which they were written. Each hash covers the event and the hash before it. The caller holds
// the lock of the feed's row, under which the end of the chain was read and is written, so two processes cannot seal the same place.
func (s *Store) sealLines(ctx context.Context, p *pipeline, f *feed, limit int) (sealed int, err error) {
	type line struct {
		id int64
		store.Event
	}
	var lines []line
	var one line
	var was string
	var job pgtype.UUID
	into := []any{&one.id, &job, &one.Subject, &one.At, &one.Name, &one.Actor, &one.Reason, &one.Request, &one.Token, &one.Generation, &was}
	p.queueRows(s.sql["find_unsealed_events"], []any{limit}, into, func() error {
		one.Job, one.Was = job.Bytes, json.RawMessage(was)
		if !job.Valid {
			one.Job = holdfast.ID{}
		}
		lines = append(lines, one)
		return nil
	})
	if err := p.flush(ctx); err != nil || len(lines) == 0 {
		return 0, err
	}
	var id, link, hash column
	for _, l := range lines {
		f.link++
		f.hash = sqltext.Link(f.hash, l.Event)
		id.int(int(l.id))
		link.int(int(f.link))
		hash.quote(`\x` + hex.EncodeToString(f.hash))
	}
	p.Queue(s.sql["seal_events"], id.String(), link.String(), hash.String())
	p.Queue(s.sql["advance_chain"], f.link, f.hash)
	return len(lines), nil
}
