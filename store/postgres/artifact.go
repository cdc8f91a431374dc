package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// listenTo queues what somebody listens for from now on.
func (s *Store) listenTo(p *pipe, l holdfast.Listener) {
	events := texts(l.Events)
	p.Queue(s.sql["listen_drop"], l.Name, events)
	p.Queue(s.sql["listen_add"], l.Name, events)
}

// keepArtifact queues what is known of something that lies elsewhere.
func (s *Store) keepArtifact(p *pipe, a holdfast.Artifact, now time.Time, refused *error) {
	p.Queue(s.sql["artifact_keep"], a.Job.String(), a.Name, clean(a.Ref), a.Size, micros(a.ExpireIn), a.Expired, stamp(now)).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			*refused = rule.NoJob(a.Job)
		}
		return nil
	})
}

// enqueueIn writes entries inside a transaction of the store's own, and answers with those that were new.
func (s *Store) enqueueIn(ctx context.Context, p *pipe, entries []entry) ([]entry, error) {
	if err := p.flush(ctx); err != nil {
		return nil, err
	}
	q := native{p.conn}
	_, fresh, err := s.admit(ctx, q, entries, true)
	if err != nil || len(fresh) == 0 {
		return nil, err
	}
	return fresh, s.add(ctx, q, p.conn.Conn(), fresh)
}
