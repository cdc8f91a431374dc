package sqlite

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/holdfastdev/holdfast/store"
)

// ReportWorker records that a worker process is alive, or, with a zero duration, that it has stopped.
func (s *Store) ReportWorker(ctx context.Context, p store.WorkerInfo) error {
	if err := p.Check(); err != nil {
		return err
	}
	queues, _ := json.Marshal(slices.Concat([]string{}, p.Queues)) // strings always marshal; nil must not become null
	kinds, _ := json.Marshal(slices.Concat([]string{}, p.Kinds))
	return s.writer.write(ctx, func(t *tx) (err error) {
		if p.For == 0 {
			_, err = t.exec("delete_worker", p.Worker)
		} else {
			_, err = t.exec("upsert_worker", clean(p.Worker), string(queues), string(kinds), p.Slots, t.now, t.at(p.For), nullIfEmpty(clean(p.Version)), nullIfEmpty(clean(p.Codes)), p.Policy, nullIfEmpty(clean(p.Misses)))
		}
		for _, kind := range slices.Sorted(maps.Keys(p.Depends)) {
			if err == nil && p.For > 0 {
				_, err = t.exec("declare_kind", kind, p.Depends[kind])
			}
		}
		return err
	})
}
