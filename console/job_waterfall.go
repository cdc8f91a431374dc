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
	"github.com/holdfastdev/holdfast/store"
)

// A segment is a period of a job's time, with its colour and its label.
type segment struct {
	from, to time.Time
	tone     string // wait, later, ahead, held, over, good, bad, back, busy
	words    string
}

func (s segment) took() time.Duration { return max(s.to.Sub(s.from), 0) }

// busy reports whether a worker was running the job.
func (s segment) busy() bool {
	return s.tone == "good" || s.tone == "bad" || s.tone == "back" || s.tone == "busy"
}

// A waterfallRow is one row of the waterfall: the wait before an attempt, and the attempt.
type waterfallRow struct {
	Name    string
	Anchor  string // anchor of the attempt on the page; empty if there is none
	Text    string
	Picture template.HTML
	pieces  []segment
}

// A waterfall shows how a job spent its time.
type waterfall struct {
	Rows   []waterfallRow
	Left   int // earlier rows not drawn
	Marks  []string
	Legend []waterfallTone
	Short  bool // some waits are drawn shorter than they were
	Total  time.Duration
}

// maxWaterfallRows is the number of rows of a waterfall.
const maxWaterfallRows = 40

// A waterfallBuilder builds a waterfall from the history of a job.
type waterfallBuilder struct {
	history store.History
	opened  []segment // periods in which the breaker of its dependency was open, the oldest first
	numbers map[attemptKey]int
	at      time.Time // end of the time covered so far
	due     time.Time // no attempt could start before this
	retried bool      // it waits for a retry
	rows    []waterfallRow
}

// An attemptKey identifies an attempt of a job.
type attemptKey struct{ generation, token int }

// buildWaterfall returns the waterfall of a job.
func buildWaterfall(h store.History, lines []ops.StoryLine, opened []segment) waterfall {
	f := &waterfallBuilder{history: h, opened: opened, numbers: numbers(lines), at: h.Job.CreatedAt, due: h.Job.RunAt}
	generation := 1
	for _, a := range countedAttempts(h) {
		if a.Generation != generation {
			f.newGeneration(a.Generation)
			generation = a.Generation
		}
		f.attempt(a)
	}
	if generation != h.Job.Generation {
		f.newGeneration(h.Job.Generation)
	}
	f.currentWait()
	w := waterfall{Rows: f.rows}
	if w.Left = max(len(w.Rows)-maxWaterfallRows, 0); w.Left > 0 {
		w.Rows = w.Rows[w.Left:]
	}
	w.draw()
	return w
}

// numbers returns the number of each attempt within its generation.
func numbers(lines []ops.StoryLine) map[attemptKey]int {
	all := map[attemptKey]int{}
	for _, line := range lines {
		if line.Attempt > 0 {
			all[attemptKey{line.Generation, line.Token}] = line.Attempt
		}
	}
	return all
}

// countedAttempts returns the attempts in order without late results. It adds the attempt that only the job row records: a running or a completed one.
func countedAttempts(h store.History) []store.Attempt {
	all := slices.DeleteFunc(slices.Clone(h.Attempts), func(a store.Attempt) bool { return a.Late })
	if own, ok := ownAttempt(h.Job); ok {
		all = append(all, own)
	}
	slices.SortStableFunc(all, func(a, b store.Attempt) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Token, b.Token))
	})
	return all
}

// ownAttempt returns the attempt that only the job row records: a running or a completed one.
func ownAttempt(job holdfast.Job) (a store.Attempt, ok bool) {
	if job.StartedAt.IsZero() || job.State != holdfast.Processing && job.State != holdfast.Complete {
		return a, false
	}
	a = store.Attempt{Job: job.ID, Token: job.Token, Generation: job.Generation, Worker: job.Worker, StartedAt: job.StartedAt, EndedAt: job.FinishedAt, To: job.State}
	if job.State == holdfast.Processing {
		a.EndedAt = job.AsOf
	}
	return a, true
}

// newGeneration adds the row of a manual retry or a redrive, which starts a generation.
func (f *waterfallBuilder) newGeneration(generation int) {
	f.due, f.retried = time.Time{}, false
	for _, e := range f.history.Events {
		if e.Generation != generation || e.Name != "manual retry" && e.Name != "redrive" {
			continue
		}
		name := fmt.Sprintf("Generation %d", generation)
		gone := segment{f.at, e.At, "over", "ended, until the retry by " + e.Actor}
		f.rows = append(f.rows, waterfallRow{Name: name, Text: e.Name + " by " + e.Actor + " after " + formatDuration(gone.took()), pieces: []segment{gone}})
		f.at = later(f.at, e.At)
		return
	}
}

// attempt adds the row of an attempt and of the wait before it.
func (f *waterfallBuilder) attempt(a store.Attempt) {
	row := waterfallRow{Name: fmt.Sprintf("Attempt %d", max(f.numbers[attemptKey{a.Generation, a.Token}], 1)), Anchor: anchor(a)}
	row.pieces = f.waitSegments(a.StartedAt)
	row.Text = waitTotals(row.pieces)
	run := segment{a.StartedAt, a.EndedAt, "bad", "ran"}
	end := "failed"
	switch {
	case a.To == holdfast.Complete:
		run.tone, end = "good", "complete"
	case a.To == holdfast.Processing:
		run.tone, end = "busy", "running"
	case a.Charge == store.ChargeCrash:
		end = "crash"
	case a.Charge == store.ChargeRelease:
		run.tone, end = "back", "released"
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
		end += fmt.Sprintf(", after %s releases", num(a.Repeats))
	}
	if run.took() > 0 || a.Charge == store.ChargeCrash {
		row.Text = joinWithDot(row.Text, "ran "+formatDuration(run.took()))
		run.words = "ran"
		row.pieces = append(row.pieces, run)
	}
	row.Text = joinWithDot(row.Text, end)
	f.rows = append(f.rows, row)
	f.at, f.due, f.retried = later(f.at, a.EndedAt), a.DueAt, a.Charge != store.ChargeRelease
}

// currentWait adds the row of what a queued job waits for now.
func (f *waterfallBuilder) currentWait() {
	job := f.history.Job
	if job.State != holdfast.Queued {
		return
	}
	row := waterfallRow{Name: "Now", pieces: f.waitSegments(job.AsOf)}
	row.Text = waitTotals(row.pieces)
	if job.DueAt.After(job.AsOf) {
		ahead := segment{job.AsOf, job.DueAt, "ahead", "still to wait"}
		row.pieces = append(row.pieces, ahead)
		row.Text = joinWithDot(row.Text, ahead.words+" "+formatDuration(ahead.took()))
	}
	if len(row.pieces) > 0 {
		f.rows = append(f.rows, row)
	}
}

// waitSegments returns the segments from f.at to a start: first the wait for its due time, then for a breaker, then for a worker.
func (f *waterfallBuilder) waitSegments(until time.Time) (pieces []segment) {
	at := f.at
	if f.due.After(at) {
		words := "scheduled"
		if f.retried {
			words = "backoff"
		} else if len(f.rows) > 0 {
			words = "released for"
		}
		pieces = appendSegment(pieces, segment{at, earlier(f.due, until), "later", words})
		at = earlier(f.due, until)
	}
	for _, open := range f.opened {
		from, to := later(open.from, at), earlier(open.to, until)
		if !to.After(from) {
			continue
		}
		pieces = appendSegment(pieces, segment{at, from, "wait", "waited"})
		pieces = appendSegment(pieces, segment{from, to, "held", open.words})
		at = to
	}
	return appendSegment(pieces, segment{at, until, "wait", "waited"})
}

// waitTotals returns the total of each kind of wait in words.
func waitTotals(pieces []segment) (text string) {
	var order []string
	long := map[string]time.Duration{}
	for _, piece := range pieces {
		if long[piece.words] == 0 {
			order = append(order, piece.words)
		}
		long[piece.words] += piece.took()
	}
	for _, words := range order {
		text = joinWithDot(text, words+" "+formatDuration(long[words]))
	}
	return text
}

// appendSegment appends a segment unless it is empty.
func appendSegment(pieces []segment, one segment) []segment {
	if one.took() <= 0 {
		return pieces
	}
	return append(pieces, one)
}

// openPeriods returns the periods in which a breaker was open, the oldest first. A half-open or recovering breaker lets some jobs through, so those periods are
// not counted as held.
func openPeriods(b ops.Breaker, now time.Time) (all []segment) {
	var open *segment
	for _, turn := range slices.Backward(b.History) {
		switch {
		case turn.To == breaker.Open || turn.To == breaker.ForcedOpen:
			if open == nil {
				open = &segment{from: turn.At, tone: "held", words: "held by breaker " + b.Dependency}
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

func anchor(a store.Attempt) string {
	name := fmt.Sprintf("a-%d-%d", a.Generation, a.Token)
	if a.Late {
		name += "-late"
	}
	return name
}

func joinWithDot(text, more string) string {
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
