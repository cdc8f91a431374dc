package chaos

import (
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// ranLastContent checks that every attempt of a job whose drafts replace each other had the content that the store shows, and that no draft replaced it that was
// certainly enqueued later, or after a claim.
func (v *verdict) ranLastContent(job holdfast.Job, d *jobLog) {
	content := scriptOf(job.Args).Content
	if content == "" || len(d.claims) == 0 {
		return
	}
	for _, start := range d.starts {
		v.record(&v.lost, start.Content != content, "job %s ran with the content %s, and the store shows %s", job.ID, start.Content, content)
	}
	claimed := slices.MinFunc(d.claims, func(a, b line) int { return int(a.Till - b.Till) })
	written := slices.DeleteFunc(slices.Clone(d.receipts), func(r line) bool { return r.Existing && !r.Replaced })
	ran := slices.IndexFunc(written, func(r line) bool { return r.Content == content })
	for _, r := range written {
		v.record(&v.lost, ran >= 0 && r.From > written[ran].Till, "job %s ran with the content %s, and a later draft replaced it with %s", job.ID, content, r.Content)
		v.record(&v.lost, r.Replaced && r.From > claimed.Till, "job %s was claimed, and then a draft replaced its content", job.ID)
	}
}

// inLine checks that of the jobs of one owner with one order key no two were leased at the same time, and that none was claimed before all that were enqueued
// before it had ended once.
func (v *verdict) inLine(e evidence, jobLogs map[holdfast.ID]*jobLog) {
	lines := map[string][]*jobLog{}
	position := map[holdfast.ID]line{} // the receipts of new jobs
	order := map[holdfast.ID]int{}     // the number of that journal line
	for i, l := range e.lines {
		if l.Saw == sawReceipt && !l.Existing && e.jobs[l.Job].Order != "" {
			position[l.Job], order[l.Job] = l, i
		}
	}
	for id, d := range jobLogs {
		if job := e.jobs[id]; job.Order != "" {
			name := job.Owner + " " + job.Order
			lines[name] = append(lines[name], d)
		}
	}
	before := func(a, b holdfast.ID) bool {
		from, first := position[a]
		till, second := position[b]
		return first && second && (from.Till < till.From || from.process == till.process && order[a] < order[b])
	}
	for name, all := range lines {
		var intervals []leaseInterval
		for _, d := range all {
			for _, c := range d.claims {
				if end := d.leaseEnd(c, e.histories[d.id]); end > c.Till {
					intervals = append(intervals, leaseInterval{d.id, c.Till, end})
				}
			}
			claimed, ok := d.firstClaim()
			if !ok {
				continue
			}
			for _, other := range all {
				end := firstEnd(e.jobs[other.id], e.histories[other.id])
				v.record(&v.early, before(other.id, d.id) && claimed.Before(end), "job %s was claimed at %v, and job %s before it in the line %q ended at %v", d.id, claimed, other.id, name, end)
			}
		}
		v.atMost(1, intervals, "the line "+name)
	}
}

// firstClaim returns when a job was claimed for the first time, by the store's clock.
func (d *jobLog) firstClaim() (at time.Time, ok bool) {
	for _, c := range d.claims {
		if at.IsZero() || c.AsOf.Before(at) {
			at = c.AsOf
		}
	}
	return at, len(d.claims) > 0
}

// firstEnd returns when the first generation of a job ended, by the store's clock.
func firstEnd(job holdfast.Job, h store.History) (at time.Time) {
	if job.Generation == 1 {
		return job.FinishedAt
	}
	for _, a := range h.Attempts {
		if a.Generation == 1 && !a.Late && a.To.Terminal() {
			at = a.EndedAt
		}
	}
	return at
}

// enqueuedOnce checks that the jobs which a job enqueues exist if it is complete, each once, and otherwise do not exist.
func (v *verdict) enqueuedOnce(jobs map[holdfast.ID]holdfast.Job) {
	next := map[holdfast.ID]int{}
	for _, job := range jobs {
		if parent := scriptOf(job.Args).Parent; !parent.IsZero() {
			next[parent]++
		}
	}
	for id, job := range jobs {
		want, got := 0, next[id]
		if job.State == holdfast.Complete {
			want = scriptOf(job.Args).Next
		}
		v.record(&v.lost, got < want, "job %s is %s and has enqueued %d of %d jobs", id, job.State, got, want)
		v.record(&v.duplicated, got > want, "job %s is %s and has enqueued %d jobs instead of %d", id, job.State, got, want)
	}
}

// groupsEnded checks that the members of every acknowledged group ended as their scripts and conditions say, and that the group was settled once with the outcome
// that follows.
func (v *verdict) groupsEnded(e evidence) {
	for id, g := range e.groups {
		var want holdfast.Members
		ends := map[string]holdfast.State{}
		expect := func(step string, runs, skipped bool) {
			job := e.jobs[g.steps[step]]
			s, end := scriptOf(job.Args), holdfast.Cancelled
			want.Total++
			if runs {
				end = expectedEnd(s.Do)
			}
			switch {
			case end == holdfast.Complete:
				want.Complete += 1 + s.Next
				want.Total += s.Next
			case end == holdfast.Failed:
				want.Failed++
			case skipped:
				want.Skipped++
			default:
				want.Cancelled++
			}
			ends[step] = end
			v.record(&v.lost, job.State != end || job.Skipped != (skipped && !runs), "the step %s of group %s is %s (skipped: %v) and must be %s", step, id, job.State, job.Skipped, end)
		}
		expect(stepCharge, true, false)
		expect(stepShip, ends[stepCharge] == holdfast.Complete, false)
		expect(stepRefund, ends[stepShip] == holdfast.Failed, true)
		expect(stepReport, true, false)
		outcome := holdfast.GroupFailed
		switch {
		case want.Failed+want.Cancelled == 0:
			outcome = holdfast.GroupReady
		case want.Complete > 0:
			outcome = holdfast.GroupPartial
		}
		v.record(&v.lost, g.State != outcome || g.Members != want, "group %s is %s with %+v and must be %s with %+v", id, g.State, g.Members, outcome, want)
		settled := 0
		for _, event := range g.events {
			if holdfast.GroupState(event.Name).Settled() {
				settled++
			}
		}
		v.record(&v.duplicated, settled > 1, "group %s was settled %d times", id, settled)
	}
}
