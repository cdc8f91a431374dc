package sqltext

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// KeptReleases is how many released attempts of a generation are stored one by one. After that, each sequence of
// releases is stored as its last attempt, with the number of attempts that it stands for: a job that is throttled or
// snoozed ten thousand times must not have a story of ten thousand lines.
const KeptReleases = 100

// TrendStep is the finest step of trends: every step that is returned is a multiple of it.
const TrendStep = time.Minute

// TrendCounts count the results of the attempts that one call settles, by queue. A store adds them to the stored trends at
// the end of the call's transaction.
type TrendCounts struct {
	all  map[string]*store.Trend
	said string       // the queue of the last settlement, as the settlement names it
	last *store.Trend // and its counts: settlements of one queue usually come together
}

// Add counts an applied settlement by the state in which it left the job, which a cancel request may have overruled. A
// released attempt is not counted, and neither is a benign failure.
func (t *TrendCounts) Add(s *store.Settlement, to holdfast.State) {
	switch {
	case to == holdfast.Complete:
		t.of(s.Queue).Complete++
	case to == holdfast.Failed && s.Failure != nil && s.Failure.Benign:
	case to == holdfast.Failed:
		t.of(s.Queue).Failed++
	case to == holdfast.Cancelled:
		t.of(s.Queue).Cancelled++
	case s.Charge == store.ChargeFailure || s.Charge == store.ChargeCrash:
		t.of(s.Queue).Retried++
	}
}

func (t *TrendCounts) of(queue string) *store.Trend {
	if t.last != nil && t.said == queue {
		return t.last
	}
	name := strings.ReplaceAll(strings.ToValidUTF8(queue, "\uFFFD"), "\x00", "")
	if len(name) > check.MaxKey { // no queue has such a name
		name = ""
	}
	if t.all == nil {
		t.all = map[string]*store.Trend{}
	}
	if t.all[name] == nil {
		t.all[name] = &store.Trend{Queue: name}
	}
	t.said, t.last = queue, t.all[name]
	return t.last
}

// Queue returns the name under which the last settlement is counted.
func (t *TrendCounts) Queue() string { return t.last.Queue }

// All returns one trend for each queue, ordered by name, in the step that contains the instant.
func (t *TrendCounts) All(at time.Time) []store.Trend {
	all := make([]store.Trend, 0, len(t.all))
	for _, one := range t.all {
		one.Step = StepOf(at, TrendStep)
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b store.Trend) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}

// StepOf returns when the step began that contains an instant. Steps are counted from 1970.
func StepOf(at time.Time, step time.Duration) time.Time {
	micros := at.UnixMicro()
	return time.UnixMicro(micros - micros%step.Microseconds()).UTC()
}
