package sqlite

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// claimAfter lets a claim plan, runs faster before the writer takes the plan, and returns the jobs that the claim then
// took.
func (s *Store) claimAfter(t *testing.T, limit int, faster func(*tx) error) (leases []store.Lease) {
	t.Helper()
	errs := s.inOneGroup(t,
		func() error { return s.writer.write(context.Background(), faster) },
		func() (err error) {
			leases, err = s.Claim(context.Background(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: limit, Start: limit, Lease: time.Minute})
			return err
		})
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	return leases
}

// insertDraft enqueues a draft as another process would.
func insertDraft(d holdfast.Draft) func(*tx) error {
	return func(t *tx) error {
		prepared, err := prepareAll([]holdfast.Draft{d}, rule.Drafts)
		if err == nil {
			_, err = enqueue(unbatched{t}, t.now, prepared)
		}
		return err
	}
}

func TestAClaimTakesWhatIsThereNotWhatItSaw(t *testing.T) {
	first, ids := holdfast.NewID(), []holdfast.ID{holdfast.NewID(), holdfast.NewID(), holdfast.NewID()}
	drop := func(id holdfast.ID) func(*tx) error {
		return func(t *tx) error {
			return t.cancelQueued(store.Intervention{Job: id, Actor: "ada"}, jobState{member: member{generation: 1}})
		}
	}
	both := func(a, b func(*tx) error) func(*tx) error {
		return func(t *tx) error { return errors.Join(a(t), b(t)) }
	}
	for name, c := range map[string]struct {
		faster func(*tx) error
		want   []holdfast.ID
	}{
		"nobody was faster":             {func(*tx) error { return nil }, ids[:2]},
		"one was taken away":            {drop(ids[0]), ids[1:]},
		"one came before the others":    {insertDraft(holdfast.Draft{ID: first, Kind: "mail"}), ids[:2]},
		"one for another, so many left": {both(drop(ids[1]), insertDraft(holdfast.Draft{ID: first, Kind: "mail"})), []holdfast.ID{first, ids[0]}},
		"one of another kind came":      {insertDraft(holdfast.Draft{ID: first, Kind: "bill"}), ids[:2]},
		"the kind was paused": {func(t *tx) error {
			return t.placeHold(store.Hold{Kind: "mail", Source: store.SourceOperator, Actor: "ada"})
		}, nil},
		"one came back from an attempt": {func(t *tx) error {
			m := member{job: ids[0], token: 1, generation: 1}
			return errors.Join(t.removeQueued(m.job), (&batch{worker: "v", claimed: t.now}).release(t, m))
		}, ids[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			db, _, _ := openCounted(t)
			for _, id := range ids {
				if err := db.enqueueOne(id); err != nil {
					t.Fatal(err)
				}
			}
			got := db.claimAfter(t, 2, c.faster)
			if !slices.EqualFunc(got, c.want, func(l store.Lease, id holdfast.ID) bool { return l.ID == id }) {
				t.Errorf("claimed %v, not %v", got, c.want)
			}
			findings, err := db.CheckIntegrity(t.Context())
			if err != nil || len(findings) > 0 {
				t.Errorf("integrity check: %v %v", findings, err)
			}
			jobs, _, err := db.Jobs(t.Context(), store.Filter{State: holdfast.Processing})
			if err != nil || len(jobs) != len(c.want) {
				t.Errorf("%d jobs are processed, not %d: %v", len(jobs), len(c.want), err)
			}
			for _, job := range jobs {
				if name == "one came back from an attempt" && job.ID == ids[0] && job.Token != 2 {
					t.Errorf("its token is %d", job.Token)
				}
			}
		})
	}
}

func TestAClaimHandsOutWhatWasEditedSinceItLooked(t *testing.T) {
	for name, change := range map[string]func(*store.Edit){
		"arguments":    func(e *store.Edit) { e.Patch = []byte(`"edited"`) },
		"tags":         func(e *store.Edit) { e.Tags = &[]string{"red"} },
		"max attempts": func(e *store.Edit) { e.MaxAttempts = new(3) },
		"all of them":  func(e *store.Edit) { e.Patch, e.Tags, e.MaxAttempts = []byte(`{}`), &[]string{"red"}, new(3) },
	} {
		t.Run(name, func(t *testing.T) {
			db, _, _ := openCounted(t)
			id := holdfast.NewID()
			if err := db.enqueueOne(id); err != nil {
				t.Fatal(err)
			}
			e := store.Edit{Intervention: store.Intervention{Job: id, Actor: "ada"}}
			change(&e)
			got := db.claimAfter(t, 1, func(t *tx) error { return t.edit(db.Inspector.On(txQuerier{t}), &e) })
			job, err := db.Job(t.Context(), id)
			if err != nil || len(got) != 1 || string(got[0].Args) != string(job.Args) || !slices.Equal(got[0].Tags, job.Tags) || got[0].MaxAttempts != job.MaxAttempts {
				t.Errorf("claimed %+v, but the job is %+v (%v)", got, job, err)
			}
		})
	}
}
