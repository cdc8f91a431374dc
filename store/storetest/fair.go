package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// reopened is the same scene with a new handle: it has made no claim yet, and remembers no owner.
func (s *scene) reopened() *scene {
	subject := *s.Subject
	subject.Store = s.Reopen()
	return &scene{TB: s.TB, Subject: &subject, ctx: s.ctx}
}

// byOwner counts jobs by their owner.
func byOwner(leases []store.Lease) map[string]int {
	shares := map[string]int{}
	for _, l := range leases {
		shares[l.Owner]++
	}
	return shares
}

// claimUntil claims limit jobs at a time until one of them is id, and returns how many claims it took.
func (s *scene) claimUntil(id holdfast.ID, limit, patience int) int {
	s.Helper()
	for i := range patience {
		leases := s.claim(limit)
		if slices.Contains(ids(leases), id) {
			return i + 1
		}
		var all []store.Settlement
		for _, l := range leases {
			all = append(all, completes(l))
		}
		s.settle(all...)
	}
	s.Fatalf("job %v was not claimed within %d claims of %d", id, patience, limit)
	return 0
}

var fairLaws = []law{
	{"one owner with a thousand jobs does not keep ten others waiting", func(s *scene) {
		s.enqueueMany(1000, owned("noisy"))
		for i := range 10 {
			s.enqueue(owned(fmt.Sprint("quiet", i)))
		}
		leases := append(s.claim(10), s.claim(10)...)
		shares := byOwner(leases)
		same(s, "owners served by two claims of ten", []int{len(shares), shares["noisy"], len(leases)}, []int{11, 10, 20})
	}},
	{"owners share a claim evenly, and the share that one cannot use goes to the others", func(s *scene) {
		s.enqueueMany(50, owned("a"))
		s.enqueueMany(50, owned("b"))
		s.enqueueMany(3, owned("c"))
		shares := byOwner(s.claim(21))
		same(s, "the small share", shares["c"], 3)
		if d := shares["a"] - shares["b"]; d < -2 || d > 2 || shares["a"]+shares["b"] != 18 {
			s.Fatalf("unfair shares: %v", shares)
		}
	}},
	{"owners also share over many claims of one job", func(s *scene) {
		s.enqueueMany(40, owned("a"))
		s.enqueueMany(40, owned("b"))
		var leases []store.Lease
		for range 40 {
			leases = append(leases, s.claimOne())
		}
		shares := byOwner(leases)
		if d := shares["a"] - shares["b"]; d < -2 || d > 2 {
			s.Fatalf("unfair shares: %v", shares)
		}
	}},
	{"an owner that was idle has not saved up turns", func(s *scene) {
		s.enqueueMany(200, owned("a"))
		s.claim(100)
		s.enqueueMany(100, owned("b"))
		shares := byOwner(s.claim(40))
		if d := shares["a"] - shares["b"]; d < -2 || d > 2 {
			s.Fatalf("unfair shares: %v", shares)
		}
	}},
	{"an owner that appears through another handle soon gets its share", func(s *scene) {
		other, queue := s.Reopen(), "shared-"+holdfast.NewID().String()
		s.enqueueMany(40, func(d *holdfast.Draft) { d.Queue = queue })
		shares := func() map[string]int {
			leases := s.claimAs(store.Claim{Worker: "w", Limit: 10, Start: 10, Queues: []string{queue}})
			for _, l := range leases {
				s.settle(releases(l, store.ChargeRelease, 0))
			}
			return byOwner(leases)
		}
		same(s, "alone", shares(), map[string]int{"": 10})
		_, err := other.Enqueue(s.ctx, slices.Repeat([]holdfast.Draft{{Kind: "mail", Queue: queue, Owner: "late"}}, 10))
		s.must(err)
		for end := time.Now().Add(20 * time.Second); shares()["late"] == 0; {
			if time.Now().After(end) {
				s.Fatal("the second owner has had nothing for twenty seconds")
			}
		}
		if got := shares(); got["late"] < 4 || got["late"] > 6 {
			s.Fatalf("unfair shares: %v", got)
		}
	}},
	{"weights of three to one give shares of three to one", func(s *scene) {
		s.must(s.Store.Apply(s.ctx, store.Change{Records: []store.Record{{Namespace: "share", Name: "heavy", Body: raw(`{"weight": 3}`)}}}))
		s.enqueueMany(400, owned("heavy"))
		s.enqueueMany(400, owned("light"))
		other := s.reopened()
		shares, claimed := map[string]int{}, 0
		for claimed < 400 {
			leases := other.claim(20)
			same(s, "claimed", len(leases), 20)
			for owner, n := range byOwner(leases) {
				shares[owner] += n
			}
			claimed += len(leases)
		}
		if shares["heavy"] < 270 || shares["heavy"] > 330 {
			s.Fatalf("unfair shares: %v", shares)
		}
	}},
	{"two hundred owners are all served before one is served a third time", func(s *scene) {
		var drafts []holdfast.Draft
		for range 4 {
			for i := range 200 {
				drafts = append(drafts, holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i)})
			}
		}
		s.enqueueAll(drafts...)
		// A store that remembers jobs of the laws before this one, which no longer exist, may choose their owners, and gives their places in a claim to
		// the owners that it chose with them. How long it remembers depends on the speed of the machine. A new handle remembers nothing.
		other, shares := s.reopened(), map[string]int{}
		for range 45 {
			for owner, n := range byOwner(other.claim(5)) {
				shares[owner] += n
			}
		}
		highest := 0
		for _, n := range shares {
			highest = max(highest, n)
		}
		same(s, "owners served within 45 claims of five, and how often at most", []any{len(shares), highest <= 2}, []any{200, true})
	}},
	{"owners whose jobs another handle took do not keep others from their turn", func(s *scene) {
		for i := range 10 {
			s.enqueue(owned(fmt.Sprint("gone", i)))
		}
		seen := s.claim(1) // the store remembers where the others wait
		same(s, "what another handle took", len(s.reopened().claim(20)), 10-len(seen))
		var drafts []holdfast.Draft
		for i := range 4 * 200 {
			drafts = append(drafts, holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i%200)})
		}
		s.enqueueAll(drafts...)
		shares := map[string]int{}
		for range 50 { // forty, and eight more if each of the ten is chosen and gives its place to an owner that has three more jobs
			leases := s.claim(5)
			same(s, "what a claim brings", len(leases), 5)
			for owner, n := range byOwner(leases) {
				shares[owner] += n
			}
		}
		same(s, "owners served within 50 claims of five", len(shares), 200)
	}},
	{"many owners are served in full claims, each job once and each owner's jobs in order", func(s *scene) {
		const owners, each, limit = 600, 3, 70
		var drafts []holdfast.Draft
		for i := range owners * each {
			drafts = append(drafts, holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i%owners)})
		}
		s.enqueueAll(drafts...)
		got, served := map[string][]holdfast.ID{}, 0
		for claimed := 0; claimed < owners*each; {
			leases := s.claim(limit)
			same(s, "what a claim brings", len(leases), min(limit, owners*each-claimed))
			claimed += len(leases)
			for _, l := range leases {
				if got[l.Owner] == nil && claimed <= owners {
					served++
				}
				got[l.Owner] = append(got[l.Owner], l.ID)
			}
		}
		for owner, jobs := range got {
			if len(jobs) != each || !slices.IsSortedFunc(jobs, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) }) || len(slices.Compact(jobs)) != each {
				s.Fatalf("the jobs of %s: %v", owner, jobs)
			}
		}
		if served < owners/4 {
			s.Fatalf("the first %d jobs were those of %d owners", owners, served)
		}
	}},
	{"each owner's jobs are taken in their own order", func(s *scene) {
		other := s.reopened()
		want := map[string][]holdfast.ID{}
		for _, owner := range []string{"a", "b"} {
			late := s.enqueueMany(5, owned(owner), func(d *holdfast.Draft) { d.Priority = 1 })
			pdf := s.enqueueMany(5, owned(owner), func(d *holdfast.Draft) { d.Kind = "pdf" })
			soon := s.enqueueMany(5, owned(owner), func(d *holdfast.Draft) { d.Priority = -1 })
			want[owner] = slices.Concat(soon, pdf, late)
		}
		got := map[string][]holdfast.ID{}
		for range 6 {
			for _, l := range other.claim(5) {
				got[l.Owner] = append(got[l.Owner], l.ID)
			}
		}
		same(s, "order", got, want)
	}},
	{"many urgent jobs do not starve the others, in claims of ten", func(s *scene) {
		s.enqueueMany(400, func(d *holdfast.Draft) { d.Priority = -5 })
		patient := s.enqueue(func(d *holdfast.Draft) { d.Priority = 5 })
		s.claimUntil(patient, 10, 32)
	}},
	{"many urgent jobs do not starve other jobs of any owner, also in claims of one", func(s *scene) {
		var patient []holdfast.ID
		for _, owner := range []string{"a", "b"} {
			s.enqueueMany(250, owned(owner), func(d *holdfast.Draft) { d.Priority = -5 })
			patient = append(patient, s.enqueue(owned(owner), func(d *holdfast.Draft) { d.Priority = 5 }))
		}
		for range 400 {
			if at := slices.Index(patient, s.claimOne().ID); at >= 0 {
				patient = slices.Delete(patient, at, at+1)
			}
		}
		same(s, "owners whose less urgent job was not claimed", len(patient), 0)
	}},
	{"many first attempts do not starve retries, nor the other way round", func(s *scene) {
		lease := s.start(func(d *holdfast.Draft) { d.Priority = 3 })
		s.settle(retries(lease, 0))
		s.enqueueMany(400)
		s.claimUntil(lease.ID, 10, 32)
	}},
}
