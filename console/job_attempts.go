package console

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// An attempt is one attempt of a job on its page.
type attempt struct {
	Anchor      string
	Number      int // within its generation; 0 if it has none
	Generation  int
	Badge       badge
	Worker      string
	WorkerJobs  string // a search for the jobs of the worker
	StartedAt   time.Time
	Took        time.Duration
	Started     bool
	Code        string
	Category    string
	Message     string
	Detail      longText
	Context     []fact
	Dependency  string
	Fingerprint string
	Benign      bool
	Why         string
	Next        time.Time // when the next attempt is due, while the job waits for it
	Count       int
	Limit       int
	Crash       bool // Count and Limit count crashes
	Late        bool
	Repeats     int       // number of released attempts right before it that are not stored separately
	Since       time.Time // when the first of them ended
}

// A fact is a name and a value.
type fact struct{ Name, Value string }

// maxAttempts is the number of attempts that a page shows.
const maxAttempts = 50

// attempts returns the attempts of a job, the newest first, and the number left out.
func attempts(h store.History, lines []ops.StoryLine) (all []attempt, left int) {
	known := numbers(lines)
	every := slices.Clone(h.Attempts)
	if own, ok := ownAttempt(h.Job); ok {
		every = append(every, own)
	}
	slices.SortStableFunc(every, func(a, b store.Attempt) int {
		return cmp.Or(cmp.Compare(b.Generation, a.Generation), cmp.Compare(b.Token, a.Token), b.EndedAt.Compare(a.EndedAt))
	})
	left = max(len(every)-maxAttempts, 0)
	for _, one := range every[:len(every)-left] {
		shown := attemptOf(one)
		if !one.Late {
			shown.Number = known[attemptKey{one.Generation, one.Token}]
		}
		if h.Job.State == holdfast.Queued && one.Token == h.Job.Token && one.Generation == h.Job.Generation && !one.Late && one.DueAt.After(h.Job.AsOf) {
			shown.Next = one.DueAt
		}
		all = append(all, shown)
	}
	return all, left
}

func attemptOf(a store.Attempt) attempt {
	shown := attempt{
		Anchor: anchor(a), Generation: a.Generation, Worker: a.Worker, WorkerJobs: queryPart{"worker", a.Worker}.String(), StartedAt: a.StartedAt, Took: max(a.EndedAt.Sub(a.StartedAt), 0),
		Why: phrase(a.Why), Count: a.Count, Limit: a.Limit, Crash: a.Charge == store.ChargeCrash, Late: a.Late, Badge: ending(a),
		Repeats: a.Repeats, Since: a.Since,
	}
	shown.Started = shown.Took > 0 || shown.Crash
	if f := a.Failure; f != nil {
		shown.Code, shown.Category, shown.Message, shown.Detail = f.Code, f.Category, truncate(f.Message, maxShown), clipped(f.Detail)
		shown.Dependency, shown.Fingerprint, shown.Benign = f.Dependency, f.Fingerprint, f.Benign
		for _, name := range slices.Sorted(maps.Keys(f.Context)) {
			shown.Context = append(shown.Context, fact{name, f.Context[name]})
		}
	}
	return shown
}

// ending returns the badge of how an attempt ended.
func ending(a store.Attempt) badge {
	switch {
	case a.Late:
		return badge{"held", "discarded", "late"}
	case a.To == holdfast.Complete:
		return badge{"complete", "complete", "complete"}
	case a.To == holdfast.Processing:
		return badge{"processing", "processing", "processing"}
	case a.Charge == store.ChargeCrash:
		return badge{"failed", "failed", "crash"}
	case a.Charge == store.ChargeRelease && failure.IsThrottled(a.Failure):
		return badge{"queued", "held", "throttled"}
	case a.Charge == store.ChargeRelease:
		return badge{"queued", "held", "released"}
	case a.To == holdfast.Cancelled:
		return badge{"cancelled", "cancelled", "cancelled"}
	case a.To == holdfast.Failed:
		return badge{"failed", "failed", "failed for good"}
	}
	return badge{"failed", "failed", "failed"}
}
