package console

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
)

// An attempt is one span in a worker's hands, as its job's page shows it.
type attempt struct {
	Anchor      string
	Number      int // within its generation; 0 when it has none
	Generation  int
	Badge       badge
	Worker      string
	Theirs      string // a search for that worker's jobs
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
	Next        time.Time // the start of the next one, while the job waits for it
	Count       int
	Limit       int
	Crash       bool // the count is of workers lost
	Late        bool
	Repeats     int       // for how many released attempts right before it stands too
	Since       time.Time // when the first of them ended
}

// A fact is a name and what it is.
type fact struct{ Name, Value string }

// mostAttempts is how many attempts a page shows.
const mostAttempts = 50

// attempts are those of a job, the newest first, and how many are left out.
func attempts(h holdfast.History, lines []ops.Line) (all []attempt, left int) {
	known := numbers(lines)
	every := slices.Clone(h.Attempts)
	if own, ok := ownAttempt(h.Job); ok {
		every = append(every, own)
	}
	slices.SortStableFunc(every, func(a, b holdfast.Attempt) int {
		return cmp.Or(cmp.Compare(b.Generation, a.Generation), cmp.Compare(b.Token, a.Token), b.EndedAt.Compare(a.EndedAt))
	})
	left = max(len(every)-mostAttempts, 0)
	for _, one := range every[:len(every)-left] {
		shown := attemptOf(one)
		if !one.Late {
			shown.Number = known[place{one.Generation, one.Token}]
		}
		if h.Job.State == holdfast.Queued && one.Token == h.Job.Token && one.Generation == h.Job.Generation && !one.Late && one.DueAt.After(h.Job.AsOf) {
			shown.Next = one.DueAt
		}
		all = append(all, shown)
	}
	return all, left
}

func attemptOf(a holdfast.Attempt) attempt {
	shown := attempt{
		Anchor: anchor(a), Generation: a.Generation, Worker: a.Worker, Theirs: queryPart{"worker", a.Worker}.String(), StartedAt: a.StartedAt, Took: max(a.EndedAt.Sub(a.StartedAt), 0),
		Why: phrase(a.Why), Count: a.Count, Limit: a.Limit, Crash: a.Charge == holdfast.ChargeCrash, Late: a.Late, Badge: ending(a),
		Repeats: a.Repeats, Since: a.Since,
	}
	shown.Started = shown.Took > 0 || shown.Crash
	if f := a.Failure; f != nil {
		shown.Code, shown.Category, shown.Message, shown.Detail = f.Code, f.Category, cut(f.Message, mostShown), clipped(f.Detail)
		shown.Dependency, shown.Fingerprint, shown.Benign = f.Dependency, f.Fingerprint, f.Benign
		for _, name := range slices.Sorted(maps.Keys(f.Context)) {
			shown.Context = append(shown.Context, fact{name, f.Context[name]})
		}
	}
	return shown
}

// ending is how an attempt ended, in a word.
func ending(a holdfast.Attempt) badge {
	switch {
	case a.Late:
		return badge{"held", "discarded", "too late"}
	case a.To == holdfast.Complete:
		return badge{"complete", "complete", "complete"}
	case a.To == holdfast.Processing:
		return badge{"processing", "processing", "processing"}
	case a.Charge == holdfast.ChargeCrash:
		return badge{"failed", "failed", "worker lost"}
	case a.Charge == holdfast.ChargeInterrupt && failure.IsThrottled(a.Failure):
		return badge{"queued", "held", "throttled"}
	case a.Charge == holdfast.ChargeInterrupt:
		return badge{"queued", "held", "handed back"}
	case a.To == holdfast.Cancelled:
		return badge{"cancelled", "cancelled", "cancelled"}
	case a.To == holdfast.Failed:
		return badge{"failed", "failed", "failed for good"}
	}
	return badge{"failed", "failed", "failed"}
}
