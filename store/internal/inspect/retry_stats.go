package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// last sorts behind every id.
var last = holdfast.ID(bytes.Repeat([]byte{0xff}, len(holdfast.ID{})))

// skew is how far the clocks of enqueuing processes may be behind the store's.
const skew = time.Hour

// RetryStats summarises the attempts of jobs that were created within a duration, by kind, code and number. Jobs are
// found by the time in their ids, so that nothing older is read; a job whose id is not a UUID of version 7 may be left
// out.
func (i *Inspector) RetryStats(ctx context.Context, within time.Duration) ([]store.RetryStats, error) {
	if within <= 0 {
		return nil, invalid("retry statistics within %v: give a positive duration", within)
	}
	now, err := i.now(ctx)
	if err != nil {
		return nil, err
	}
	from := now.Add(-within)
	first, err := i.firstID(ctx, from)
	if err != nil {
		return nil, err
	}
	var all []store.RetryStats
	err = i.q.Query(ctx, i.statements["inspect_first_attempts"], []any{first, last, from}, func(r Row) error {
		all = append(all, store.RetryStats{Kind: r.Text(0), Attempts: r.Int(1), Complete: r.Int(2)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = i.q.Query(ctx, i.statements["inspect_retry_stats"], []any{first, last, from}, func(r Row) error {
		all = append(all, store.RetryStats{
			Kind: r.Text(0), Code: r.Text(1), Number: r.Int(2), Attempts: r.Int(3), Complete: r.Int(4), Again: r.Int(5), GaveUp: r.Int(6),
			Took: time.Duration(r.Int(7)) * time.Microsecond, Wasted: time.Duration(r.Int(8)) * time.Microsecond,
		})
		return nil
	})
	slices.SortFunc(all, func(a, b store.RetryStats) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Code, b.Code), cmp.Compare(a.Number, b.Number))
	})
	return all, err
}

// firstID returns an id that sorts before the ids of all jobs created since then. Ids are made by the clocks of
// enqueuing processes: the newest job shows whether these are far behind the store's.
func (i *Inspector) firstID(ctx context.Context, since time.Time) (first holdfast.ID, err error) {
	since = since.Add(-skew)
	behind := time.Duration(0)
	err = i.q.Query(ctx, i.statements["inspect_newest_job"], nil, func(r Row) error {
		if id := r.ID(0); id[6]>>4 == 7 {
			made := time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
			behind = max(behind, r.Time(1).Sub(made))
		}
		return nil
	})
	if moment := since.Add(-behind).UnixMilli(); moment > 0 {
		binary.BigEndian.PutUint64(first[:8], uint64(moment)<<16)
	}
	return first, err
}
