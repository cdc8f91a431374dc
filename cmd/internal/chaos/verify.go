package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// evidence is everything that is known about a run after its end: the journals and the content of the store.
type evidence struct {
	lines     []line
	jobs      map[holdfast.ID]holdfast.Job
	histories map[holdfast.ID]store.History // of jobs with more than one attempt
	groups    map[holdfast.ID]smallGroup
	kills     []kill
}

// A verdict counts violations of the guarantees and describes them.
type verdict struct {
	lost, duplicated, stale, early int
	exceeded                       int           // times at which more jobs of the limited dependency were processing than allowed
	slowest                        time.Duration // from the kill of a worker to the next start of a job that it was running
	violations                     []string
}

// A jobLog collects the journal lines of all processes about one job.
type jobLog struct {
	id         holdfast.ID
	claims     []line
	starts     []line
	intents    map[settlementKey]line // the first of each
	answers    []line
	receipts   []line
	cancels    int
	retries    int // acknowledged manual retries
	unanswered int // manual retries without an answer in the journals
}

// A settlementKey identifies a settlement.
type settlementKey struct {
	job   holdfast.ID
	token int
	to    holdfast.State
}

// verifyEvidence verifies the evidence. It trusts the journals and checks the store against them.
func verifyEvidence(e evidence) verdict {
	var v verdict
	jobLogs := collect(e.lines)
	for id, d := range jobLogs {
		job, known := e.jobs[id]
		if !known {
			v.record(&v.lost, len(d.receipts) > 0, "job %s was acknowledged and is gone", id)
			continue
		}
		v.ended(job, d)
		v.settledOnce(job, d)
		v.fencedOff(d)
		v.inTime(job, d, e.histories[id])
		v.kept(job, d, e.histories[id])
		v.ranLastContent(job, d)
	}
	for id, job := range e.jobs {
		if jobLogs[id] == nil { // in no journal: its producer was killed before it could record the job, so no process has cancelled it
			v.ended(job, &jobLog{id: id})
		}
	}
	v.keysHeldOnce(e.jobs)
	v.withinLimit(jobLogs, e.histories)
	v.inLine(e, jobLogs)
	v.enqueuedOnce(e.jobs)
	v.groupsEnded(e)
	v.slowest = slowestReclaim(e.lines, e.kills)
	return v
}

// record counts and describes a violation if broken is true.
func (v *verdict) record(count *int, broken bool, format string, args ...any) {
	if broken {
		*count++
		v.violations = append(v.violations, fmt.Sprintf(format, args...))
	}
}

func collect(lines []line) map[holdfast.ID]*jobLog {
	all := map[holdfast.ID]*jobLog{}
	for _, l := range lines {
		d := all[l.Job]
		if d == nil {
			d = &jobLog{id: l.Job, intents: map[settlementKey]line{}}
			all[l.Job] = d
		}
		d.add(l)
	}
	return all
}

func (d *jobLog) add(l line) {
	switch l.Saw {
	case sawClaim:
		d.claims = append(d.claims, l)
	case sawStart:
		d.starts = append(d.starts, l)
	case sawAnswer:
		d.answers = append(d.answers, l)
	case sawReceipt:
		d.receipts = append(d.receipts, l)
	case sawCancel:
		d.cancels++
	case sawIntent:
		key := settlementKey{l.Job, l.Token, l.To}
		if first, again := d.intents[key]; !again || l.From < first.From {
			d.intents[key] = l
		}
	case sawRetry:
		if l.Answer == applied {
			d.retries, d.unanswered = d.retries+1, d.unanswered-1
		} else {
			d.unanswered++
		}
	}
}

// ended checks that the job has ended as its script says, unless it was cancelled, and that every acknowledged manual retry started a generation.
func (v *verdict) ended(job holdfast.Job, d *jobLog) {
	s := scriptOf(job.Args)
	switch {
	case !job.State.Terminal():
		v.record(&v.lost, true, "job %s never ended: it is %s under token %d", job.ID, job.State, job.Token)
	case d.cancels > 0:
		v.record(&v.lost, job.State != holdfast.Cancelled, "the cancellation of job %s was acknowledged, and the job ended %s", job.ID, job.State)
	case job.State == holdfast.Cancelled: // the producer was killed before it could record the acknowledgement
	default:
		v.record(&v.lost, job.State != expectedEnd(s.Do), "job %s has the script %q and ended %s", job.ID, s.Do, job.State)
	}
	grown := job.Generation - 1
	v.record(&v.lost, grown < d.retries || grown > d.retries+max(0, d.unanswered), "job %s is in generation %d after %d manual retries", job.ID, job.Generation, d.retries)
}

// settledOnce checks that a token was given out once, that each generation has one terminal transition, requested by a worker that held the job, and that the
// store shows the same.
func (v *verdict) settledOnce(job holdfast.Job, d *jobLog) {
	handed := map[int]line{}
	for _, c := range d.claims {
		before, twice := handed[c.Token]
		v.record(&v.duplicated, twice, "job %s was claimed twice with token %d, by processes %d and %d", job.ID, c.Token, before.process, c.process)
		handed[c.Token] = c
	}
	ends := map[int]int{} // token of the terminal transition, by generation
	for _, a := range d.answers {
		if a.Answer != applied || !a.To.Terminal() {
			continue
		}
		generation := handed[a.Token].Generation
		other, twice := ends[generation]
		v.record(&v.duplicated, twice && other != a.Token, "job %s ended twice in generation %d, with tokens %d and %d", job.ID, generation, other, a.Token)
		ends[generation] = a.Token
	}
	token, told := ends[job.Generation]
	v.record(&v.duplicated, told && job.State.Terminal() && token != job.Token, "job %s ended with token %d, and the store shows token %d", job.ID, token, job.Token)
	if job.State == holdfast.Complete || job.State == holdfast.Failed {
		_, asked := d.intents[settlementKey{job.ID, job.Token, job.State}]
		v.record(&v.stale, !asked, "job %s ended %s with token %d, and no process sent that settlement", job.ID, job.State, job.Token)
	}
}

// fencedOff checks that no settlement was applied that was sent after another process had claimed the job.
func (v *verdict) fencedOff(d *jobLog) {
	for _, a := range d.answers {
		if a.Answer != applied {
			continue
		}
		sent := d.intents[settlementKey{d.id, a.Token, a.To}].From
		late := slices.ContainsFunc(d.claims, func(c line) bool { return c.Token > a.Token && c.Till < sent })
		v.record(&v.stale, late, "job %s was settled as %s with token %d after another process had claimed it", d.id, a.To, a.Token)
	}
}

// inTime checks that no job was claimed before it was due, by the store's clock.
func (v *verdict) inTime(job holdfast.Job, d *jobLog, h store.History) {
	for _, c := range d.claims {
		for _, r := range d.receipts {
			due := job.CreatedAt.Add(r.Delay)
			v.record(&v.early, !r.Existing && c.AsOf.Before(due), "job %s was due at %v and claimed at %v", job.ID, due, c.AsOf)
		}
		for _, a := range h.Attempts {
			early := !a.Late && a.Token < c.Token && a.Generation == c.Generation && c.AsOf.Before(a.DueAt)
			v.record(&v.early, early, "the retry of job %s was due at %v and claimed at %v", job.ID, a.DueAt, c.AsOf)
		}
	}
}

// kept checks that every acknowledged settlement that returned a job to its queue is in the job's history, with the requested delay.
func (v *verdict) kept(job holdfast.Job, d *jobLog, h store.History) {
	for _, a := range d.answers {
		if a.Answer != applied || a.To != holdfast.Queued {
			continue
		}
		i := slices.IndexFunc(h.Attempts, func(r store.Attempt) bool { return r.Token == a.Token && !r.Late })
		if i < 0 {
			v.record(&v.lost, true, "the return of job %s to its queue with token %d was acknowledged, and its history has no record of it", job.ID, a.Token)
			continue
		}
		r := h.Attempts[i]
		short := r.To == holdfast.Queued && r.DueAt.Sub(r.EndedAt) < a.Delay.Truncate(time.Microsecond)
		v.record(&v.early, short, "job %s requested a delay of %v with token %d and got %v", job.ID, a.Delay, a.Token, r.DueAt.Sub(r.EndedAt))
	}
}

// keysHeldOnce checks that of the jobs with the same owner, kind and unique key, each was created after the one before had ended.
func (v *verdict) keysHeldOnce(jobs map[holdfast.ID]holdfast.Job) {
	holderCount := map[string][]holdfast.Job{}
	for _, job := range jobs {
		if job.UniqueKey != "" && job.Generation == 1 {
			name := job.Owner + " " + job.Kind + " " + job.UniqueKey
			holderCount[name] = append(holderCount[name], job)
		}
	}
	for name, list := range holderCount {
		slices.SortFunc(list, func(a, b holdfast.Job) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.FinishedAt.Compare(b.FinishedAt))
		})
		for i := 1; i < len(list); i++ {
			v.record(&v.duplicated, list[i].CreatedAt.Before(list[i-1].FinishedAt), "jobs %s and %s held the key %q at the same time", list[i-1].ID, list[i].ID, name)
		}
	}
}

// slowestReclaim returns the longest time from the kill of a worker to the next start of one of its jobs. It ignores jobs of the limited dependency, because
// they also wait for the limit.
func slowestReclaim(lines []line, kills []kill) time.Duration {
	killed := map[int]int64{}
	for _, k := range kills {
		killed[k.process] = k.at
	}
	starts := map[holdfast.ID][]line{}
	settled := map[settlementKey]bool{}
	waits := map[holdfast.ID]bool{} // jobs that also wait for the limit
	for _, l := range lines {
		switch {
		case l.Dependency == limitedDependency:
			waits[l.Job] = true
		case l.Saw == sawStart:
			starts[l.Job] = append(starts[l.Job], l)
		case l.Saw == sawAnswer && l.Answer == applied:
			settled[settlementKey{l.Job, l.Token, ""}] = true
		}
	}
	first := map[int]time.Duration{} // time to the first restarted job, by killed process
	for id, list := range starts {
		if waits[id] {
			continue
		}
		slices.SortFunc(list, func(a, b line) int { return a.Token - b.Token })
		for i := 0; i+1 < len(list); i++ {
			n := list[i].process
			at, was := killed[n]
			if !was || settled[settlementKey{id, list[i].Token, ""}] || list[i+1].From < at {
				continue
			}
			gap := time.Duration(list[i+1].From - at)
			if before, some := first[n]; !some || gap < before {
				first[n] = gap
			}
		}
	}
	var slowest time.Duration
	for _, gap := range first {
		slowest = max(slowest, gap)
	}
	return slowest
}
