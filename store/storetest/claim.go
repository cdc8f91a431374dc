package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var claimLaws = []law{
	{"a claim returns no more than its byte limit, and later claims get the rest", func(s *scene) { s.claimByBytes(1, 1) }},
	{"a claim among several owners returns no more than its byte limit", func(s *scene) { s.claimByBytes(3, 2) }},
	{"a claim of many kinds returns no more than its byte limit", func(s *scene) { s.claimByBytes(40, 1) }},
	{"a claim with a byte limit below the first job returns that one job", func(s *scene) {
		first := s.enqueue(func(d *holdfast.Draft) { d.Args = raw(`{"x":"much longer than it may be"}`) })
		s.enqueue(func(d *holdfast.Draft) { d.Args = raw(`{}`) })
		leases := s.claimAs(store.Claim{Worker: "w1", Limit: 10, Bytes: 1})
		same(s, "claimed", ids(leases), []holdfast.ID{first})
		same(s, "how many after it", len(s.claim(10)), 1)
	}},
	{"a claim moves jobs to processing, with a token and a lease that expires", func(s *scene) {
		id := s.enqueue(func(d *holdfast.Draft) { d.Args, d.Owner, d.Tags = raw(`{"a": 1}`), "acme", []string{"t"} })
		queued := s.job(id)
		s.Advance(time.Second)
		lease := s.claimOne()
		now := queued.AsOf.Add(time.Second)
		want := queued
		want.State, want.DueAt, want.Token, want.Worker, want.AsOf = holdfast.Processing, time.Time{}, 1, "w1", now
		want.LeaseUntil, want.StartedAt = now.Add(shortLease), now
		same(s, "lease", lease, store.Lease{Job: want, Batch: lease.Batch, Since: queued.CreatedAt})
		same(s, "job", s.job(id), want)
		if lease.Batch.IsZero() {
			s.Fatal("the batch has no id")
		}
	}},
	{"a claimed job is not claimed again", func(s *scene) {
		s.enqueue()
		s.claimOne()
		same(s, "claimed again", len(s.claim(10)), 0)
	}},
	{"a claim without ready jobs returns no leases", func(s *scene) {
		same(s, "claimed", len(s.claim(10)), 0)
		same(s, "claimed of no queue", len(s.claimAs(store.Claim{Worker: "w", Limit: 1, Queues: []string{"never-heard-of"}})), 0)
	}},
	{"lowest priority number first, oldest first within it, across kinds and queues", func(s *scene) {
		put := func(queue, kind string, priority int16) holdfast.ID {
			return s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Kind, d.Priority = queue, kind, priority })
		}
		e, c, f, a, d, b := put("slow", "pdf", 5), put("default", "mail", 0), put("default", "pdf", 5), put("slow", "mail", -7), put("slow", "pdf", 0), put("default", "mail", -7)
		want := []holdfast.ID{a, b, c, d, e, f}
		both := []string{"default", "slow"}
		s = s.reopened()
		first := s.claimAs(store.Claim{Worker: "w", Limit: 4, Queues: both})
		rest := s.claimAs(store.Claim{Worker: "w", Limit: 4, Queues: both})
		same(s, "order", append(ids(first), ids(rest)...), want)
	}},
	{"a claim takes only from the queues it names, and no more than its limit", func(s *scene) {
		s.enqueue(func(d *holdfast.Draft) { d.Queue = "slow" })
		ours := []holdfast.ID{s.enqueue(), s.enqueue()}
		s.enqueue()
		same(s, "claimed", ids(s.claim(2)), ours)
		same(s, "left", len(s.claim(10)), 1)
	}},
	{"many ready jobs in some lanes do not hide a more urgent job in another (river PR#1318)", func(s *scene) {
		crowd := make([]holdfast.Draft, 300)
		for i := range crowd {
			crowd[i] = holdfast.Draft{Kind: fmt.Sprintf("kind%d", i%3), Priority: 3}
		}
		s.enqueueAll(crowd...)
		urgent := s.enqueue(func(d *holdfast.Draft) { d.Kind = "rare" })
		same(s, "first", s.reopened().claimOne().ID, urgent)
	}},
	{"many held jobs do not hide a job that is not held (river PR#1318)", func(s *scene) {
		crowd := make([]holdfast.Draft, 200)
		for i := range crowd {
			crowd[i] = holdfast.Draft{Kind: "held"}
		}
		s.enqueueAll(crowd...)
		s.must(s.Store.Pause(s.ctx, store.Hold{Kind: "held", Actor: "ada"}))
		free := s.enqueue()
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{free})
	}},
	{"the first Start jobs of a batch count as started", func(s *scene) {
		for range 3 {
			s.enqueue()
		}
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 3, Start: 2})
		for i, l := range leases {
			same(s, "started", !l.StartedAt.IsZero(), i < 2)
			same(s, "started as seen", !s.job(l.ID).StartedAt.IsZero(), i < 2)
			same(s, "batch", l.Batch, leases[0].Batch)
		}
	}},
	{"a job that was reclaimed or released counts as started from its next claim on", func(s *scene) {
		s.start()
		s.Advance(longAgo)
		s.settle(releases(s.reclaim()[0], store.ChargeCrash, 0))
		again := s.claimAs(store.Claim{Worker: "w", Limit: 1})[0]
		same(s, "started", again.StartedAt.IsZero(), false)
	}},
	{"the token grows with every claim and never decreases", func(s *scene) {
		lease := s.start()
		for token := 1; token <= 4; token++ {
			same(s, "token", lease.Token, token)
			s.settle(releases(lease, store.ChargeRelease, 0))
			lease = s.claimOne()
		}
		s.settle(fails(lease, "BROKEN"))
		s.retry(lease.ID)
		same(s, "token after a manual retry", s.claimOne().Token, 6)
	}},
	{"two claims are two batches", func(s *scene) {
		s.enqueue()
		s.enqueue()
		if a, b := s.claimOne(), s.claimOne(); a.Batch == b.Batch {
			s.Fatal("the batches have the same id")
		}
	}},
	{"an invalid claim is refused", func(s *scene) {
		good := store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Lease: time.Second}
		for _, bad := range []func(*store.Claim){
			func(c *store.Claim) { c.Worker = "" }, func(c *store.Claim) { c.Limit = 0 }, func(c *store.Claim) { c.Limit = -1 },
			func(c *store.Claim) { c.Lease = 0 }, func(c *store.Claim) { c.Lease = -time.Second },
		} {
			c := good
			bad(&c)
			_, err := s.Store.Claim(s.ctx, c)
			s.expectError(err, holdfast.ErrInvalid)
			_, err = s.Store.Reclaim(s.ctx, c)
			s.expectError(err, holdfast.ErrInvalid)
			_, err = s.Store.Expire(s.ctx, c)
			s.expectError(err, holdfast.ErrInvalid)
		}
	}},
	{"another handle on the same data sees the same jobs, and claims no job twice", func(s *scene) {
		other := s.Reopen()
		s.enqueueAll(draft(), draft(), draft())
		s.claimOne()
		rest, err := other.Claim(s.ctx, store.Claim{Worker: "w2", Queues: []string{"default"}, Limit: 10, Lease: shortLease})
		s.must(err)
		same(s, "claimed by the other", len(rest), 2)
		same(s, "left", len(s.claim(10)), 0)
	}},
}

// claimByBytes drains large jobs of some kinds and owners in claims with a byte limit of eight jobs.
func (s *scene) claimByBytes(kinds, owners int) {
	s.Helper()
	const jobs, size = 60, 10 << 10
	var drafts []holdfast.Draft
	for n := range jobs {
		d := draft()
		d.Args = raw(fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("x", size)))
		d.Kind, d.Owner = fmt.Sprintf("kind%d", n%kinds), fmt.Sprintf("owner%d", n%owners)
		drafts = append(drafts, d)
	}
	s.enqueueAll(drafts...)
	had := map[holdfast.ID]bool{}
	for len(had) < jobs {
		leases := s.claimAs(store.Claim{Worker: "w1", Limit: 40, Start: len(had) % 40, Bytes: 8 * size, Lease: time.Hour})
		if len(leases) == 0 || len(leases) > 8 {
			s.Fatalf("a claim of %d bytes returned %d jobs of %d bytes, after %d of %d", 8*size, len(leases), size, len(had), jobs)
		}
		for _, l := range leases {
			if had[l.ID] {
				s.Fatalf("%s was claimed twice", l.ID)
			}
			had[l.ID] = true
			if job := s.job(l.ID); job.Failures > 0 || job.Crashes > 0 || len(l.Args) <= size {
				s.Fatalf("%d failures and %d crashes, %d bytes of arguments", job.Failures, job.Crashes, len(l.Args))
			}
		}
		s.settle(completes(leases[0]))
	}
}
