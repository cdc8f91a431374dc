package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A jobMix is many jobs of all sorts, for the laws about filters and counts.
type jobMix struct {
	*scene
	rng     *rand.Rand
	group   holdfast.ID
	redrive holdfast.ID
	taken   map[holdfast.ID]bool // by the redrive
}

// makeJobMix makes the same jobs each time: in several queues, lanes and priorities, in every state and in several generations.
func (s *scene) makeJobMix() *jobMix {
	s.Helper()
	c := &jobMix{scene: s, rng: rand.New(rand.NewPCG(8, 16)), group: s.gather(), redrive: holdfast.NewID(), taken: map[holdfast.ID]bool{}}
	s.depends("pdf", "printer")
	c.enqueueMix(75)
	c.settleMix()
	var dead []holdfast.ID
	for _, job := range s.jobs(store.Filter{DeadLetters: true, Limit: 200}) {
		dead = append(dead, job.ID)
	}
	s.must(s.Store.Discard(s.ctx, by(dead[0])))
	s.must(s.Store.Discard(s.ctx, by(dead[5])))
	s.retry(dead[1])
	s.redrive(step(c.redrive, dead[2], dead[3]))
	c.taken[dead[2]], c.taken[dead[3]] = true, true
	s.Advance(time.Hour)
	c.enqueueMix(75)
	s.pause(store.Hold{Tag: "red", Source: "person", Actor: "ada", Reason: "because"})
	c.settleMix()
	for _, worker := range []string{"w1", "w2"} {
		s.claimAs(store.Claim{Worker: worker, Queues: []string{"default", "slow"}, Limit: 4, Start: 2})
	}
	return c
}

func (c *jobMix) enqueueMix(jobs int) {
	c.Helper()
	pick := func(words ...string) string { return words[c.rng.IntN(len(words))] }
	drafts := make([]holdfast.Draft, jobs)
	for n := range drafts {
		drafts[n] = holdfast.Draft{
			Kind: pick("mail", "pdf"), Queue: pick("default", "slow", "rare"), Owner: pick("", "acme", "omni"), Dependency: pick("", "", "gateway"),
			Priority: int16(c.rng.IntN(3)), Delay: time.Duration(max(0, c.rng.IntN(8)-5)) * 24 * time.Hour,
		}
		if c.rng.IntN(4) == 0 {
			drafts[n].Tags = []string{pick("red", "blue")}
		}
		if c.rng.IntN(4) == 0 {
			drafts[n].Group = c.group
		}
	}
	c.enqueueAll(drafts...)
}

// settleMix claims a third of the claimable jobs and settles them with different results in turn.
func (c *jobMix) settleMix() {
	c.Helper()
	limit := len(c.jobs(store.Filter{State: holdfast.Queued, Limit: 200})) / 3
	for n, l := range c.claimAs(store.Claim{Worker: "w1", Queues: []string{"default", "slow"}, Limit: limit, Start: limit}) {
		c.settle([]store.Settlement{
			completes(l), fails(l, "BROKEN"), fails(l, "FLAKY"), retries(l, 0), retries(l, 24*time.Hour), ends(l, holdfast.Cancelled),
			releases(l, store.ChargeCrash, 0), releases(l, store.ChargeRelease, 24*time.Hour), fails(l, "BROKEN"),
		}[n%9])
	}
}

// matches reports whether a filter matches a job, by the job's fields.
func (c *jobMix) matches(f store.Filter, j holdfast.Job) bool {
	failure := holdfast.Failure{}
	if j.LastFailure != nil {
		failure = *j.LastFailure
	}
	for _, is := range [][2]string{
		{string(f.State), string(j.State)}, {f.Kind, j.Kind}, {f.Queue, j.Queue}, {f.Owner, j.Owner}, {f.Dependency, j.Dependency},
		{f.Code, failure.Code}, {f.Fingerprint, failure.Fingerprint}, {f.Worker, j.Worker},
	} {
		if is[0] != "" && is[0] != is[1] {
			return false
		}
	}
	age := j.AsOf.Sub(j.CreatedAt)
	return (f.Worker == "" || j.State == holdfast.Processing) && (!f.Retrying || j.State == holdfast.Queued && j.Failures > 0) &&
		(!f.DeadLetters || j.State == holdfast.Failed && !j.Discarded) && (f.Benign == nil || j.State == holdfast.Failed && failure.Benign == *f.Benign) && (f.Tag == "" || slices.Contains(j.Tags, f.Tag)) &&
		(f.Group.IsZero() || f.Group == j.Group) && (f.Generation == 0 || f.Generation == j.Generation) &&
		(f.Redrive.IsZero() || c.taken[j.ID]) && (f.OlderThan == 0 || age >= f.OlderThan) && (f.NewerThan == 0 || age < f.NewerThan)
}

// filters are one of each sort alone, and many random combinations.
func (c *jobMix) filters() []store.Filter {
	sorts := []func(*store.Filter){
		func(f *store.Filter) { f.State = holdfast.Queued }, func(f *store.Filter) { f.State = holdfast.Processing },
		func(f *store.Filter) { f.State = holdfast.Complete }, func(f *store.Filter) { f.State = holdfast.Failed },
		func(f *store.Filter) { f.State = holdfast.Cancelled }, func(f *store.Filter) { f.DeadLetters = true },
		func(f *store.Filter) { f.Benign = new(true) }, func(f *store.Filter) { f.Benign = new(false) },
		func(f *store.Filter) { f.Retrying = true }, func(f *store.Filter) { f.Worker = "w2" },
		func(f *store.Filter) { f.Kind = "pdf" }, func(f *store.Filter) { f.Queue = "slow" }, func(f *store.Filter) { f.Owner = "acme" },
		func(f *store.Filter) { f.Dependency = "printer" }, func(f *store.Filter) { f.Dependency = "gateway" },
		func(f *store.Filter) { f.Tag = "blue" }, func(f *store.Filter) { f.Tag = "red" }, func(f *store.Filter) { f.Group = c.group },
		func(f *store.Filter) { f.Code = "BROKEN" }, func(f *store.Filter) { f.Fingerprint = flaky },
		func(f *store.Filter) { f.Generation = 2 }, func(f *store.Filter) { f.Redrive = c.redrive },
		func(f *store.Filter) { f.OlderThan = 30 * time.Minute }, func(f *store.Filter) { f.NewerThan = 30 * time.Minute },
	}
	all := make([]store.Filter, 1, 48)
	for _, sort := range sorts {
		var f store.Filter
		sort(&f)
		all = append(all, f)
	}
	for len(all) < cap(all) {
		var f store.Filter
		for range 2 + c.rng.IntN(2) {
			sorts[c.rng.IntN(len(sorts))](&f)
		}
		all = append(all, f)
	}
	return all
}

// expectFound expects that a filter finds exactly the jobs it matches, newest first, however few rows are read at a time, but at least least.
func (c *jobMix) expectFound(f store.Filter, everything []holdfast.Job, least int) {
	c.Helper()
	var want []holdfast.ID
	for _, job := range everything {
		if c.matches(f, job) {
			want = append(want, job.ID)
		}
	}
	for _, look := range []int{0, least + c.rng.IntN(2*least), 10 * least, 10_000} {
		f.MaxScan, f.Limit = look, 10+c.rng.IntN(20)
		var got []holdfast.ID
		for _, job := range c.jobs(f) {
			got = append(got, job.ID)
		}
		same(c, fmt.Sprintf("jobs of %+v", f), got, want)
	}
	for _, look := range []int{0, 10_000} {
		f.MaxScan = look
		same(c, fmt.Sprintf("count of %+v", f), []int{c.count(f, 10_000), c.count(f, 3)}, []int{len(want), min(3, len(want))})
	}
	f.MaxScan = 1 + c.rng.IntN(40)
	if n := c.count(f, 10_000); n > len(want) {
		c.Fatalf("%d of %d jobs were counted for %+v", n, len(want), f)
	}
}

func (s *scene) count(f store.Filter, most int) int {
	s.Helper()
	n, err := s.Store.Count(s.ctx, f, most)
	s.must(err)
	return n
}

func (s *scene) depths() []store.Depth {
	s.Helper()
	depths, err := s.Store.Depths(s.ctx)
	s.must(err)
	return depths
}

// withoutKinds returns depths without their kinds: a store does not return the kinds of jobs that are due but not promoted yet.
func withoutKinds(depths []store.Depth) []store.Depth {
	for i := range depths {
		depths[i].Kinds = nil
	}
	return depths
}

// depthsOf computes the depths of each queue from the jobs.
func depthsOf(jobs []holdfast.Job) []store.Depth {
	of := map[string]*store.Depth{}
	first := func(known *time.Time, at time.Time) {
		if known.IsZero() || at.Before(*known) {
			*known = at
		}
	}
	for _, j := range jobs {
		d := of[j.Queue]
		if d == nil {
			d = &store.Depth{Queue: j.Queue}
		}
		switch {
		case j.State == holdfast.Processing:
			d.Processing++
		case j.State == holdfast.Failed && !j.Discarded:
			d.Dead++
		case j.State != holdfast.Queued:
			continue
		case j.Waiting:
			d.Later++
		case !j.DueAt.After(j.AsOf):
			d.Ready++
			first(&d.Oldest, j.CreatedAt)
		default:
			*map[bool]*int{true: &d.Retrying, false: &d.Later}[j.Failures > 0]++
			first(&d.NextDue, j.DueAt)
		}
		of[j.Queue] = d
	}
	all := []store.Depth{}
	for _, queue := range slices.Sorted(maps.Keys(of)) {
		all = append(all, *of[queue])
	}
	return all
}

var countLaws = []law{
	{"every filter finds and counts the jobs it matches, however few rows are read at a time", func(s *scene) {
		c := s.makeJobMix()
		everything := s.jobs(store.Filter{Limit: 200})
		same(s, "jobs", len(everything), 150)
		for _, f := range c.filters() {
			c.expectFound(f, everything, 10)
		}
		c.expectFound(store.Filter{State: holdfast.Failed, Queue: "slow"}, everything, 1)
	}},
	{"the same holds with more lanes than a query merges", func(s *scene) {
		c := s.makeJobMix()
		drafts := make([]holdfast.Draft, 300)
		for n := range drafts {
			drafts[n] = holdfast.Draft{Kind: "mail", Queue: "default", Owner: fmt.Sprintf("owner-%d", n)}
		}
		s.enqueueAll(drafts...)
		everything := s.jobs(store.Filter{Limit: 200})
		same(s, "jobs", len(everything), 450)
		for _, f := range []store.Filter{
			{State: holdfast.Queued}, {State: holdfast.Queued, Queue: "default"}, {State: holdfast.Queued, Owner: "owner-7"}, {State: holdfast.Queued, Kind: "pdf"},
			{Retrying: true}, {Code: "FLAKY"}, {State: holdfast.Queued, Tag: "blue"},
		} {
			c.expectFound(f, everything, 60)
		}
		same(s, "depths", withoutKinds(s.depths()), depthsOf(everything))
	}},
	{"the rows that a page reads are bounded: a page may be empty, and its cursor leads on", func(s *scene) {
		red := s.enqueue(tagged("red"))
		s.enqueueMany(30)
		page, cursor, err := s.Store.Jobs(s.ctx, store.Filter{State: holdfast.Queued, Tag: "red", MaxScan: 10})
		s.must(err)
		same(s, "page", []any{len(page), cursor != ""}, []any{0, true})
		same(s, "following", s.jobs(store.Filter{State: holdfast.Queued, Tag: "red", MaxScan: 10})[0].ID, red)
		for _, bad := range []store.Filter{{MaxScan: -1}, {State: "dead"}, {Worker: "\x00"}} {
			_, _, err := s.Store.Jobs(s.ctx, bad)
			s.expectError(err, holdfast.ErrInvalid)
			_, err = s.Store.Count(s.ctx, bad, 10)
			s.expectError(err, holdfast.ErrInvalid)
		}
		_, err = s.Store.Count(s.ctx, store.Filter{}, 0)
		s.expectError(err, holdfast.ErrInvalid)
	}},
	{"the depths of each queue agree with its jobs", func(s *scene) {
		same(s, "of nothing", s.depths(), []store.Depth{})
		s.makeJobMix()
		same(s, "depths", withoutKinds(s.depths()), depthsOf(s.jobs(store.Filter{Limit: 200})))
	}},
	{"a job that waits for members of its group has no due time in depths", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		s.enqueue(in(group), after(first))
		depths := s.depths()
		same(s, "depths", depths, []store.Depth{{Queue: "default", Ready: 1, Later: 1, Oldest: s.job(first).CreatedAt, Kinds: []string{s.job(first).Kind}}})
	}},
	{"ready jobs are counted exactly up to a bound", func(s *scene) {
		s.enqueueMany(10_000)
		s.enqueue()
		same(s, "count", s.count(store.Filter{State: holdfast.Queued, MaxScan: 20_000}, 10_000), 10_000)
		depths := s.depths()
		same(s, "ready", []any{len(depths), depths[0].Ready, len(depths[0].AtLeast)}, []any{1, 10_001, 0})
	}},
}
