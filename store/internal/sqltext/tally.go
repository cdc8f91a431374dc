package sqltext

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// KeptReleases is how many attempts of a generation that were released (handed back at no cost) are kept one by one. Of each run of releases
// after that the last attempt is kept, and says for how many it stands: a job that is throttled or snoozed ten thousand times must not have a story
// of ten thousand lines.
const KeptReleases = 100

// TrendStep is how finely trends are kept: every step that is answered with is a multiple of it.
const TrendStep = time.Minute

// Tallies are what became of the attempts that one call settles, by queue. Stores add them to what they keep with the last statement
// of the call's transaction.
type Tallies struct {
	all  map[string]*holdfast.Trend
	said string          // the last queue, as the settlement named it
	last *holdfast.Trend // and what is counted of it: settlements of a queue come together
}

// Add counts a settlement that was applied, by where it led: a request to cancel may have overruled it. An attempt that was handed back
// for free counts nowhere, and neither does a benign end.
func (t *Tallies) Add(s *holdfast.Settlement, to holdfast.State) {
	switch {
	case to == holdfast.Complete:
		t.of(s.Queue).Complete++
	case to == holdfast.Failed && s.Failure != nil && s.Failure.Benign:
	case to == holdfast.Failed:
		t.of(s.Queue).Failed++
	case to == holdfast.Cancelled:
		t.of(s.Queue).Cancelled++
	case s.Charge == holdfast.ChargeFailure || s.Charge == holdfast.ChargeCrash:
		t.of(s.Queue).Retried++
	}
}

func (t *Tallies) of(queue string) *holdfast.Trend {
	if t.last != nil && t.said == queue {
		return t.last
	}
	name := strings.ReplaceAll(strings.ToValidUTF8(queue, "\uFFFD"), "\x00", "")
	if len(name) > holdfast.MaxKey { // no queue has such a name
		name = ""
	}
	if t.all == nil {
		t.all = map[string]*holdfast.Trend{}
	}
	if t.all[name] == nil {
		t.all[name] = &holdfast.Trend{Queue: name}
	}
	t.said, t.last = queue, t.all[name]
	return t.last
}

// All is a line for each queue, in the order of their names, within the step of an instant.
func (t *Tallies) All(at time.Time) []holdfast.Trend {
	all := make([]holdfast.Trend, 0, len(t.all))
	for _, one := range t.all {
		one.Step = StepOf(at, TrendStep)
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b holdfast.Trend) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}

// StepOf is when the step began in which an instant lies. Steps are counted from 1970.
func StepOf(at time.Time, step time.Duration) time.Time {
	micros := at.UnixMicro()
	return time.UnixMicro(micros - micros%step.Microseconds()).UTC()
}
