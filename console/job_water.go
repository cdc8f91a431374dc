package console

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// A stretch is a piece of a job's time: what it was, and how it is drawn.
type stretch struct {
	from, to time.Time
	tone     string // wait, later, ahead, held, over, good, bad, back, busy
	words    string
}

func (s stretch) took() time.Duration { return max(s.to.Sub(s.from), 0) }

// busy reports whether a worker had the job.
func (s stretch) busy() bool {
	return s.tone == "good" || s.tone == "bad" || s.tone == "back" || s.tone == "busy"
}

// A bout is one row of the waterfall: what came before an attempt, and the attempt.
type bout struct {
	Name    string
	Anchor  string // of the attempt, further down; empty: there is none
	Text    string
	Picture template.HTML
	pieces  []stretch
}

// A waterfall shows where a job's time went.
type waterfall struct {
	Bouts  []bout
	Left   int // earlier rows that are not drawn
	Marks  []string
	Legend []waterTone
	Short  bool // some waits are drawn shorter than they were
	Total  time.Duration
}

// mostBouts is how many rows a waterfall has.
const mostBouts = 40

// A faller makes a waterfall of what is known about a job.
type faller struct {
	history holdfast.History
	opened  []stretch // when the breaker of its dependency kept jobs back, the oldest first
	numbers map[place]int
	at      time.Time // how far its time has been told
	due     time.Time // no attempt could start before this
	retried bool      // the time it waits for is a retry's
	bouts   []bout
}

// A place names an attempt.
type place struct{ generation, token int }

// fall tells where the time of a job went.
func fall(h holdfast.History, lines []ops.Line, opened []stretch) waterfall {
	f := &faller{history: h, opened: opened, numbers: numbers(lines), at: h.Job.CreatedAt, due: h.Job.RunAt}
	generation := 1
	for _, a := range tries(h) {
		if a.Generation != generation {
			f.again(a.Generation)
			generation = a.Generation
		}
		f.attempt(a)
	}
	if generation != h.Job.Generation {
		f.again(h.Job.Generation)
	}
	f.present()
	w := waterfall{Bouts: f.bouts}
	if w.Left = max(len(w.Bouts)-mostBouts, 0); w.Left > 0 {
		w.Bouts = w.Bouts[w.Left:]
	}
	w.draw()
	return w
}

// numbers are the attempts' numbers within their generations.
func numbers(lines []ops.Line) map[place]int {
	all := map[place]int{}
	for _, line := range lines {
		if line.Attempt > 0 {
			all[place{line.Generation, line.Token}] = line.Attempt
		}
	}
	return all
}

// tries are the attempts that count, in order, with the one that the job's own row proves: it runs, or it completed.
func tries(h holdfast.History) []holdfast.Attempt {
	all := slices.DeleteFunc(slices.Clone(h.Attempts), func(a holdfast.Attempt) bool { return a.Late })
	if own, ok := ownAttempt(h.Job); ok {
		all = append(all, own)
	}
	slices.SortStableFunc(all, func(a, b holdfast.Attempt) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Token, b.Token))
	})
	return all
}

// ownAttempt is the attempt of which only the job's row tells.
func ownAttempt(job holdfast.Job) (a holdfast.Attempt, ok bool) {
	if job.StartedAt.IsZero() || job.State != holdfast.Processing && job.State != holdfast.Complete {
		return a, false
	}
	a = holdfast.Attempt{Job: job.ID, Token: job.Token, Generation: job.Generation, Worker: job.Worker, StartedAt: job.StartedAt, EndedAt: job.FinishedAt, To: job.State}
	if job.State == holdfast.Processing {
		a.EndedAt = job.AsOf
	}
	return a, true
}

// again tells how a generation began: somebody sent an ended job round again.
func (f *faller) again(generation int) {
	f.due, f.retried = time.Time{}, false
	for _, e := range f.history.Events {
		if e.Generation != generation || e.Name != "manual retry" && e.Name != "redrive" {
			continue
		}
		name := fmt.Sprintf("Generation %d", generation)
		gone := stretch{f.at, e.At, "over", "ended, until it was sent round again by " + e.Actor}
		f.bouts = append(f.bouts, bout{Name: name, Text: e.Name + " by " + e.Actor + " after " + took(gone.took()), pieces: []stretch{gone}})
		f.at = later(f.at, e.At)
		return
	}
}

// attempt tells what came before an attempt, and the attempt.
func (f *faller) attempt(a holdfast.Attempt) {
	row := bout{Name: fmt.Sprintf("Attempt %d", max(f.numbers[place{a.Generation, a.Token}], 1)), Anchor: anchor(a)}
	row.pieces = f.waits(a.StartedAt)
	row.Text = summed(row.pieces)
	run := stretch{a.StartedAt, a.EndedAt, "bad", "ran"}
	end := "failed"
	switch {
	case a.To == holdfast.Complete:
		run.tone, end = "good", "complete"
	case a.To == holdfast.Processing:
		run.tone, end = "busy", "running"
	case a.Charge == holdfast.ChargeCrash:
		end = "worker lost"
	case a.Charge == holdfast.ChargeInterrupt:
		run.tone, end = "back", "handed back"
	case a.To == holdfast.Cancelled:
		run.tone, end = "back", "cancelled"
	}
	if a.Failure != nil {
		end = a.Failure.Code
	}
	if failure.IsThrottled(a.Failure) {
		end = "throttled with " + end
	}
	if a.Repeats > 0 {
		end += fmt.Sprintf(" and %s releases before it", num(a.Repeats))
	}
	if run.took() > 0 || a.Charge == holdfast.ChargeCrash {
		row.Text = dotted(row.Text, "ran "+took(run.took()))
		run.words = "ran"
		row.pieces = append(row.pieces, run)
	}
	row.Text = dotted(row.Text, end)
	f.bouts = append(f.bouts, row)
	f.at, f.due, f.retried = later(f.at, a.EndedAt), a.DueAt, a.Charge != holdfast.ChargeInterrupt
}

// present tells what the job waits for now.
func (f *faller) present() {
	job := f.history.Job
	if job.State != holdfast.Queued {
		return
	}
	row := bout{Name: "Now", pieces: f.waits(job.AsOf)}
	row.Text = summed(row.pieces)
	if job.DueAt.After(job.AsOf) {
		ahead := stretch{job.AsOf, job.DueAt, "ahead", "still to wait"}
		row.pieces = append(row.pieces, ahead)
		row.Text = dotted(row.Text, ahead.words+" "+took(ahead.took()))
	}
	if len(row.pieces) > 0 {
		f.bouts = append(f.bouts, row)
	}
}

// waits are the pieces from where the telling is to the start of something: its time, then a breaker, then a worker.
func (f *faller) waits(until time.Time) (pieces []stretch) {
	at := f.at
	if f.due.After(at) {
		words := "scheduled"
		if f.retried {
			words = "backoff"
		} else if len(f.bouts) > 0 {
			words = "handed back for"
		}
		pieces = putPiece(pieces, stretch{at, earlier(f.due, until), "later", words})
		at = earlier(f.due, until)
	}
	for _, shut := range f.opened {
		from, to := later(shut.from, at), earlier(shut.to, until)
		if !to.After(from) {
			continue
		}
		pieces = putPiece(pieces, stretch{at, from, "wait", "waited"})
		pieces = putPiece(pieces, stretch{from, to, "held", shut.words})
		at = to
	}
	return putPiece(pieces, stretch{at, until, "wait", "waited"})
}

// summed says how long each sort of wait was in all.
func summed(pieces []stretch) (said string) {
	var met []string
	long := map[string]time.Duration{}
	for _, piece := range pieces {
		if long[piece.words] == 0 {
			met = append(met, piece.words)
		}
		long[piece.words] += piece.took()
	}
	for _, words := range met {
		said = dotted(said, words+" "+took(long[words]))
	}
	return said
}

// putPiece adds a piece that took some time.
func putPiece(pieces []stretch, one stretch) []stretch {
	if one.took() <= 0 {
		return pieces
	}
	return append(pieces, one)
}

// shut are the times in which a breaker kept jobs back, the oldest first. Half open and recovering it lets some through: nobody knows which.
func shut(b ops.Breaker, now time.Time) (all []stretch) {
	var open *stretch
	for _, turn := range slices.Backward(b.History) {
		switch {
		case turn.To == breaker.Open || turn.To == breaker.ForcedOpen:
			if open == nil {
				open = &stretch{from: turn.At, tone: "held", words: "held by breaker " + b.Dependency}
			}
		case open != nil:
			open.to = turn.At
			all = append(all, *open)
			open = nil
		}
	}
	if open != nil {
		open.to = now
		all = append(all, *open)
	}
	return all
}

func anchor(a holdfast.Attempt) string {
	name := fmt.Sprintf("a-%d-%d", a.Generation, a.Token)
	if a.Late {
		name += "-late"
	}
	return name
}

func dotted(text, more string) string {
	if text == "" {
		return more
	}
	return text + " · " + more
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
