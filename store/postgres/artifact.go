package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// keepArtifact queues the insertion or replacement of an artifact's record. The artifact itself is stored elsewhere.
func (s *Store) keepArtifact(p *pipeline, a store.Artifact, now time.Time, refused *error) {
	p.Queue(s.sql["artifact_keep"], a.Job.String(), a.Name, cleanText(a.Ref), a.Size, micros(a.ExpireIn), a.Expired, timestamp(now)).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			*refused = rule.NoJob(a.Job)
		}
		return nil
	})
}
