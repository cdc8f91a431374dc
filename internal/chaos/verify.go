package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Evidence is everything known about a run when it is over.
type evidence struct {
	lines     []line
	jobs      map[holdfast.ID]holdfast.Job
	histories map[holdfast.ID]holdfast.History // of the jobs that had more than one attempt
	kills     []kill
}

// A verdict counts broken promises and says which.
type verdict struct {
	lost, duplicated, stale, early int
	exceeded                       int           // moments at which more of a limited dependency were in workers' hands than may be
	slowest                        time.Duration // from a kill to the next start of what the worker held
	troubles                       []string
}

// A dossier is what all processes together saw of one job.
type dossier struct {
	id       holdfast.ID
	claims   []line
	starts   []line
	intents  map[deed]line // the first of each
	answers  []line
	receipts []line
	cancels  int
	retries  int // granted
	doubtful int // manual retries whose answer nobody saw
}

// A deed is what a settlement wanted of a job.
type deed struct {
	job   holdfast.ID
	token int
	to    holdfast.State
}

// judge weighs the evidence. It trusts the journals; the store's own word is what is on trial.
func judge(e evidence) verdict {
	var v verdict
	dossiers := collect(e.lines)
	for id, d := range dossiers {
		job, known := e.jobs[id]
		if !known {
			v.accuse(&v.lost, len(d.receipts) > 0, "job %s was acknowledged and is gone", id)
			continue
		}
		v.ended(job, d)
		v.settledOnce(job, d)
		v.fencedOff(d)
		v.inTime(job, d, e.histories[id])
		v.kept(job, d, e.histories[id])
	}
	for id, job := range e.jobs {
		if dossiers[id] == nil { // nobody ever heard of it: its producer was killed before it could say so, and then it was cancelled by nobody
			v.ended(job, &dossier{id: id})
		}
	}
	v.keysHeldOnce(e.jobs)
	v.withinLimit(dossiers, e.histories)
	v.slowest = slowestReclaim(e.lines, e.kills)
	return v
}

func (v *verdict) accuse(count *int, broken bool, format string, args ...any) {
	if broken {
		*count++
		v.troubles = append(v.troubles, fmt.Sprintf(format, args...))
	}
}

func collect(lines []line) map[holdfast.ID]*dossier {
	all := map[holdfast.ID]*dossier{}
	for _, l := range lines {
		d := all[l.Job]
		if d == nil {
			d = &dossier{id: l.Job, intents: map[deed]line{}}
			all[l.Job] = d
		}
		d.add(l)
	}
	return all
}

func (d *dossier) add(l line) {
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
		key := deed{l.Job, l.Token, l.To}
		if first, again := d.intents[key]; !again || l.From < first.From {
			d.intents[key] = l
		}
	case sawRetry:
		if l.Answer == applied {
			d.retries, d.doubtful = d.retries+1, d.doubtful-1
		} else {
			d.doubtful++
		}
	}
}

// ended: everything has ended, and as its script says, unless a person asked for another end.
func (v *verdict) ended(job holdfast.Job, d *dossier) {
	var s script
	readable := json.Unmarshal(job.Args, &s) == nil
	switch {
	case !job.State.Terminal():
		v.accuse(&v.lost, true, "job %s never ended: it is %s under token %d", job.ID, job.State, job.Token)
	case d.cancels > 0:
		v.accuse(&v.lost, job.State != holdfast.Cancelled, "job %s was to be cancelled, that was granted, and it ended %s", job.ID, job.State)
	case job.State == holdfast.Cancelled: // granted to a producer that was killed before it could say so
	case readable:
		v.accuse(&v.lost, job.State != ending(s.Do), "job %s does %q and ended %s", job.ID, s.Do, job.State)
	}
	grown := job.Generation - 1
	v.accuse(&v.lost, grown < d.retries || grown > d.retries+max(0, d.doubtful), "job %s is of generation %d after %d manual retries", job.ID, job.Generation, d.retries)
}

// settledOnce: one terminal transition per generation, asked for by a holder, and it is the one the store shows.
func (v *verdict) settledOnce(job holdfast.Job, d *dossier) {
	handed := map[int]line{}
	for _, c := range d.claims {
		before, twice := handed[c.Token]
		v.accuse(&v.duplicated, twice, "job %s was handed out twice under token %d, to processes %d and %d", job.ID, c.Token, before.process, c.process)
		handed[c.Token] = c
	}
	ends := map[int]int{} // generation to the token that ended it
	for _, a := range d.answers {
		if a.Answer != applied || !a.To.Terminal() {
			continue
		}
		generation := handed[a.Token].Generation
		other, twice := ends[generation]
		v.accuse(&v.duplicated, twice && other != a.Token, "job %s ended twice in generation %d, under tokens %d and %d", job.ID, generation, other, a.Token)
		ends[generation] = a.Token
	}
	token, told := ends[job.Generation]
	v.accuse(&v.duplicated, told && job.State.Terminal() && token != job.Token, "job %s ended under token %d, and the store shows token %d", job.ID, token, job.Token)
	if job.State == holdfast.Complete || job.State == holdfast.Failed {
		_, asked := d.intents[deed{job.ID, job.Token, job.State}]
		v.accuse(&v.stale, !asked, "job %s ended %s under token %d, which nobody asked for", job.ID, job.State, job.Token)
	}
}

// fencedOff: no settlement was applied whose job somebody else had been handed before it was sent.
func (v *verdict) fencedOff(d *dossier) {
	for _, a := range d.answers {
		if a.Answer != applied {
			continue
		}
		sent := d.intents[deed{d.id, a.Token, a.To}].From
		late := slices.ContainsFunc(d.claims, func(c line) bool { return c.Token > a.Token && c.Till < sent })
		v.accuse(&v.stale, late, "job %s was settled as %s under token %d after somebody else had been handed it", d.id, a.To, a.Token)
	}
}

// inTime: nobody was handed a job before its time, by the store's own clock.
func (v *verdict) inTime(job holdfast.Job, d *dossier, h holdfast.History) {
	for _, c := range d.claims {
		for _, r := range d.receipts {
			due := job.CreatedAt.Add(r.Delay)
			v.accuse(&v.early, !r.Existing && c.AsOf.Before(due), "job %s was due at %v and handed out at %v", job.ID, due, c.AsOf)
		}
		for _, a := range h.Attempts {
			early := !a.Late && a.Token < c.Token && a.Generation == c.Generation && c.AsOf.Before(a.DueAt)
			v.accuse(&v.early, early, "job %s was to be tried again at %v and was handed out at %v", job.ID, a.DueAt, c.AsOf)
		}
	}
}

// kept: what a holder was told is applied is on record, with the delay it asked for.
func (v *verdict) kept(job holdfast.Job, d *dossier, h holdfast.History) {
	for _, a := range d.answers {
		if a.Answer != applied || a.To != holdfast.Queued {
			continue
		}
		i := slices.IndexFunc(h.Attempts, func(r holdfast.Attempt) bool { return r.Token == a.Token && !r.Late })
		if i < 0 {
			v.accuse(&v.lost, true, "job %s was sent back under token %d, that was acknowledged, and there is no record of it", job.ID, a.Token)
			continue
		}
		r := h.Attempts[i]
		short := r.To == holdfast.Queued && r.DueAt.Sub(r.EndedAt) < a.Delay.Truncate(time.Microsecond)
		v.accuse(&v.early, short, "job %s asked to wait %v under token %d and was given %v", job.ID, a.Delay, a.Token, r.DueAt.Sub(r.EndedAt))
	}
}

// keysHeldOnce: of the jobs of one owner and kind with one unique key, each was made after the one before it had ended.
func (v *verdict) keysHeldOnce(jobs map[holdfast.ID]holdfast.Job) {
	holders := map[string][]holdfast.Job{}
	for _, job := range jobs {
		if job.UniqueKey != "" && job.Generation == 1 {
			name := job.Owner + " " + job.Kind + " " + job.UniqueKey
			holders[name] = append(holders[name], job)
		}
	}
	for name, list := range holders {
		slices.SortFunc(list, func(a, b holdfast.Job) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.FinishedAt.Compare(b.FinishedAt))
		})
		for i := 1; i < len(list); i++ {
			v.accuse(&v.duplicated, list[i].CreatedAt.Before(list[i-1].FinishedAt), "jobs %s and %s held the key %q at once", list[i-1].ID, list[i].ID, name)
		}
	}
}

// slowestReclaim is the longest time from the kill of a worker to the next start of one of the jobs it had started.
func slowestReclaim(lines []line, kills []kill) time.Duration {
	killed := map[int]int64{}
	for _, k := range kills {
		killed[k.process] = k.at
	}
	starts := map[holdfast.ID][]line{}
	settled := map[deed]bool{}
	waits := map[holdfast.ID]bool{} // for a limit, too
	for _, l := range lines {
		switch {
		case l.Dependency == scarce:
			waits[l.Job] = true
		case l.Saw == sawStart:
			starts[l.Job] = append(starts[l.Job], l)
		case l.Saw == sawAnswer && l.Answer == applied:
			settled[deed{l.Job, l.Token, ""}] = true
		}
	}
	first := map[int]time.Duration{} // of each killed process
	for id, list := range starts {
		if waits[id] {
			continue
		}
		slices.SortFunc(list, func(a, b line) int { return a.Token - b.Token })
		for i := 0; i+1 < len(list); i++ {
			n := list[i].process
			at, was := killed[n]
			if !was || settled[deed{id, list[i].Token, ""}] || list[i+1].From < at {
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
