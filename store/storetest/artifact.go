package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func (s *scene) artifacts(f store.ArtifactFilter) []store.Artifact {
	s.Helper()
	all, err := s.Store.Artifacts(s.ctx, f)
	s.must(err)
	slices.SortFunc(all, func(a, b store.Artifact) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (s *scene) put(artifacts ...store.Artifact) {
	s.Helper()
	s.keep(store.Change{Artifacts: artifacts})
}

var artifactLaws = []law{
	{"an artifact is stored with its job, its size and its expiry by the store's clock", func(s *scene) {
		id := s.enqueue()
		now := s.job(id).AsOf
		s.put(store.Artifact{Job: id, Name: "result", Ref: "s3://bucket/result.pdf", Size: 1 << 40, ExpireIn: time.Hour}, store.Artifact{Job: id, Name: "source", Ref: "file 7"})
		s.put(store.Artifact{Job: s.enqueue(), Name: "source", Ref: "file 8"})
		same(s, "artifacts", s.artifacts(store.ArtifactFilter{Job: id}), []store.Artifact{
			{Job: id, Name: "result", Ref: "s3://bucket/result.pdf", Size: 1 << 40, CreatedAt: now, ExpireAt: now.Add(time.Hour)},
			{Job: id, Name: "source", Ref: "file 7", CreatedAt: now},
		})
	}},
	{"an artifact of the same name replaces the one before", func(s *scene) {
		id := s.enqueue()
		s.put(store.Artifact{Job: id, Name: "result", Ref: "one", Size: 3, ExpireIn: time.Hour})
		s.put(store.Artifact{Job: id, Name: "result", Ref: "two", ExpireIn: 2 * time.Hour})
		all := s.artifacts(store.ArtifactFilter{Job: id})
		same(s, "artifacts", []any{len(all), all[0].Ref, all[0].Size, all[0].ExpireAt}, []any{1, "two", int64(0), s.job(id).AsOf.Add(2 * time.Hour)})
	}},
	{"an artifact is due when it has expired, until it is reported as deleted", func(s *scene) {
		id := s.enqueue()
		a := store.Artifact{Job: id, Name: "a", Ref: "one", ExpireIn: time.Hour}
		s.put(a, store.Artifact{Job: id, Name: "b", Ref: "two", ExpireIn: 2 * time.Hour}, store.Artifact{Job: id, Name: "c", Ref: "three"})
		s.Advance(time.Hour - time.Microsecond)
		same(s, "due early", len(s.artifacts(store.ArtifactFilter{Due: true})), 0)
		s.Advance(time.Microsecond)
		due := s.artifacts(store.ArtifactFilter{Due: true})
		same(s, "due", []any{len(due), due[0].Name, due[0].Ref}, []any{1, "a", "one"})
		gone := due[0]
		gone.Expired = true
		s.put(gone)
		same(s, "due", len(s.artifacts(store.ArtifactFilter{Due: true})), 0)
		all := s.artifacts(store.ArtifactFilter{Job: id})
		same(s, "gone", []any{all[0].ExpiredAt, all[1].ExpiredAt.IsZero(), all[0].Ref}, []any{s.job(id).AsOf, true, "one"})
		s.Advance(time.Hour)
		same(s, "due at last", len(s.artifacts(store.ArtifactFilter{Due: true, Limit: 1})), 1)
	}},
	{"artifacts are stored together with the records of their change, or not at all", func(s *scene) {
		id := s.enqueue()
		s.keep(kept(breakerRecord(0, `1`)))
		err := s.Store.Apply(s.ctx, store.Change{Records: []store.Record{breakerRecord(0, `2`)}, Artifacts: []store.Artifact{{Job: id, Name: "a", Ref: "x"}}})
		s.expectError(err, holdfast.ErrConflict)
		same(s, "artifacts", len(s.artifacts(store.ArtifactFilter{Job: id})), 0)
	}},
	{"a job with an artifact that is not deleted is not purged; once it is deleted, both are purged", func(s *scene) {
		lease := s.start()
		s.put(store.Artifact{Job: lease.ID, Name: "a", Ref: "one", ExpireIn: time.Hour}, store.Artifact{Job: lease.ID, Name: "b", Ref: "two", Expired: true})
		s.settle(completes(lease))
		s.Advance(2 * time.Hour)
		same(s, "purged", s.purge(atOnce()).Jobs, 0)
		s.put(store.Artifact{Job: lease.ID, Name: "a", Ref: "one", Expired: true})
		same(s, "purged", s.purge(atOnce()).Jobs, 1)
		same(s, "artifacts", len(s.artifacts(store.ArtifactFilter{Job: lease.ID})), 0)
	}},
}
