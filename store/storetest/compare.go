package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Comparisons at the end of a sequence.

// compareAll runs the duties, so that nothing is overdue, and then compares everything with the model.
func (d *driver) compareAll(t *rapid.T) {
	d.advanceGroups(t)
	d.promote(t)
	d.reclaim(t)
	d.missedDeadlines(t)
	for id := range d.m.jobs {
		d.touched[id] = true
	}
	d.compare(t)
	d.compareHolds(t)
	d.compareCounts(t)
	d.compareRecords(t)
	d.compareErrorGroups(t)
	d.compareTrends(t)
	d.compareStories(t)
	d.audit(t)
}

func (d *driver) compareHolds(t *rapid.T) {
	got, err := d.Store.Holds(d.ctx)
	if err != nil {
		failSequence(t, "the store does not list its holds", "%v", err)
	}
	shown, want := map[holdName]store.Hold{}, map[holdName]store.Hold{}
	for _, h := range got {
		shown[nameOf(h)] = h
	}
	for name, h := range d.m.holds {
		if !h.inForce(d.m.now) {
			continue
		}
		now := h.Hold
		if h.Rate != nil {
			now.Rate = &store.Rate{PerSecond: h.Rate.PerSecond, Burst: h.Rate.Burst, Level: h.level(d.m.now)}
		}
		want[name] = now
	}
	match(t, "holds", shown, want, cmpopts.EquateApprox(0, 1e-6))
}

// compareCounts compares the numbers of jobs by queue, kind and state, and by whether they are claimable unless some may be set aside.
func (d *driver) compareCounts(t *rapid.T) {
	type line struct {
		queue, kind string
		state       holdfast.State
		due         bool
	}
	counts, err := d.Store.Counts(d.ctx)
	if err != nil {
		failSequence(t, "the store does not count its jobs", "%v", err)
	}
	certain := len(d.m.where(ready, func(r *record) bool { return r.aside })) == 0
	got, want := map[line]int{}, map[line]int{}
	for _, c := range counts {
		if c.Jobs > 0 {
			got[line{c.Queue, c.Kind, c.State, c.Due && certain}] += c.Jobs
		}
	}
	for _, r := range d.m.jobs {
		want[line{r.Queue, r.Kind, d.m.view(r).State, r.place == ready && certain}]++
	}
	match(t, "counts", got, want)
}

func (d *driver) compareRecords(t *rapid.T) {
	got, err := d.Store.Records(d.ctx, "breaker")
	if err != nil {
		failSequence(t, "the store does not show its records", "%v", err)
	}
	var want []store.Record
	for _, r := range d.m.records {
		r.AsOf = d.m.now
		want = append(want, r)
	}
	slices.SortFunc(want, func(a, b store.Record) int { return strings.Compare(a.Name, b.Name) })
	match(t, "records", got, want)
}

// compareStories compares the events of subjects that are not jobs.
func (d *driver) compareStories(t *rapid.T) {
	for subject, want := range d.m.stories {
		if d.m.ambiguous[subject] {
			continue
		}
		got, err := d.Store.Events(d.ctx, subject, 200)
		if err != nil {
			failSequence(t, "the store does not return a story", "%s: %v", subject, err)
		}
		slices.Reverse(got)
		if strings.HasPrefix(subject, "group/") {
			got = settledLines(got)
		}
		match(t, "stories", got, want)
	}
}

func (d *driver) compareErrorGroups(t *rapid.T) {
	got, _, err := d.Store.ErrorGroups(d.ctx, store.ErrorFilter{Limit: 200})
	if err != nil {
		failSequence(t, "the store does not list its error groups", "%v", err)
	}
	if len(got) != len(d.m.errors) {
		failSequence(t, "error groups differ in number", "the store has %d, the model %d", len(got), len(d.m.errors))
	}
	for _, g := range got {
		known := d.m.errors[g.Fingerprint]
		if known == nil {
			failSequence(t, "an unexpected error group", "%+v", g)
		}
		d.compareErrorGroup(t, g, known)
	}
}

// compareTrends compares the trends, unless the clock was set back: then some are in the future.
func (d *driver) compareTrends(t *rapid.T) {
	trends, err := d.Store.Trends(d.ctx, 8*24*time.Hour, 0)
	if err != nil {
		failSequence(t, "the store does not return trends", "%v", err)
	}
	got := map[trendOf]*store.Trend{}
	for _, trend := range trends {
		got[trendOf{trend.Step, trend.Queue}] = &trend
	}
	if !d.back {
		match(t, "trends", got, d.m.trends)
	}
}

// compareErrorGroup compares what is guaranteed. Times are left out once the clock was set back. The fields of a triage are compared while it
// applies.
func (d *driver) compareErrorGroup(t *rapid.T, got store.ErrorGroup, known *errorGroup) {
	want := known.ErrorGroup
	want.Kinds, want.Queues = names(known.seen, func(s failureSeen) string { return s.kind }), names(known.seen, func(s failureSeen) string { return s.queue })
	want.Dependencies = names(known.seen, func(s failureSeen) string { return s.dependency })
	want.Versions = names(known.seen, func(s failureSeen) string { return s.version })
	got.Actor, got.Reason = "", ""
	if want.Status == store.StatusIgnored && !want.Until.IsZero() && !want.Until.After(d.m.now) {
		want.Status = store.StatusOpen // the event is recorded only by the next failure
	}
	if want.Status != store.StatusIgnored {
		got.Until, got.UntilCount, want.Until, want.UntilCount = time.Time{}, 0, time.Time{}, 0
	}
	if want.Status != store.StatusResolved {
		got.ResolvedIn, want.ResolvedIn = "", ""
	}
	windows := map[time.Duration]int{time.Hour: got.LastHour, 3 * time.Hour: got.Last3Hours, 24 * time.Hour: got.LastDay, 7 * 24 * time.Hour: got.LastWeek}
	got.LastHour, got.Last3Hours, got.LastDay, got.LastWeek = 0, 0, 0, 0
	if d.back {
		got.FirstSeen, got.LastSeen, got.Kinds, got.Queues, got.Dependencies, got.Versions = want.FirstSeen, want.LastSeen, want.Kinds, want.Queues, want.Dependencies, want.Versions
	}
	match(t, "error groups", got, want)
	for window, n := range windows {
		if least, most := known.within(window, d.m.now); !d.back && (n < least || n > most) {
			failSequence(t, "an error group counts its last failures differently", "%v: the store says %d, the model %d to %d", window, n, least, most)
		}
	}
}

// within counts the failures in a window: without and with the step of five minutes at its start.
func (g *errorGroup) within(window time.Duration, now time.Time) (least, most int) {
	for _, s := range g.seen {
		step := s.at.Truncate(5 * time.Minute)
		least += countIf(step.After(now.Add(-window)))
		most += countIf(!step.Add(5 * time.Minute).Before(now.Add(-window)))
	}
	return least, most
}

// names returns the distinct values, sorted.
func names(seen []failureSeen, of func(failureSeen) string) (all []string) {
	for _, s := range seen {
		if name := of(s); name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
