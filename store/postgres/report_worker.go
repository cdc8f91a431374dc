package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast/store"
)

// ReportWorker records that a worker process is alive for p.For, or that it is leaving if p.For is 0. It also stores the declared dependencies of its
// kinds.
func (s *Store) ReportWorker(ctx context.Context, p store.WorkerInfo) error {
	if err := p.Check(); err != nil {
		return err
	}
	return s.withRetries(ctx, "register the worker", true, func(ctx context.Context) (err error) {
		if p.For == 0 {
			return s.renews.exec(ctx, s.sql["delete_worker"], p.Worker)
		}
		err = s.renews.exec(ctx, s.sql["upsert_worker"], p.Worker, cleanText(textArray(p.Queues)), cleanText(textArray(p.Kinds)), p.Slots, micros(p.For), cleanText(p.Version), cleanText(p.Codes), p.Policy, cleanText(p.Misses))
		if err != nil || len(p.Depends) == 0 {
			return err
		}
		var kinds, dependencies column
		for kind, dependency := range p.Depends {
			kinds.quote(cleanText(kind))
			dependencies.quote(cleanText(dependency))
		}
		return s.renews.exec(ctx, s.sql["declare_kinds"], kinds.String(), dependencies.String())
	})
}
