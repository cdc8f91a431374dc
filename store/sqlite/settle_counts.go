package sqlite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// trendStep is the length of a trend step in microseconds.
var trendStep = sqltext.TrendStep.Microseconds()

// countTrend counts an applied settlement in the trends, by the state in which it left the job.
func (s *settler) countTrend(x *store.Settlement) {
	to := x.To
	if s.overruled {
		to = holdfast.Cancelled
	}
	s.trends.Add(x, to)
}

// writeTrends adds the results of attempts to the trends: one row for each step and queue of the transaction, however
// many calls contributed to it.
func writeTrends(t *tx, all []store.Trend) error {
	slices.SortFunc(all, func(a, b store.Trend) int {
		return cmp.Or(a.Step.Compare(b.Step), strings.Compare(a.Queue, b.Queue))
	})
	for len(all) > 0 {
		sum, n := all[0], 1
		for n < len(all) && all[n].Queue == sum.Queue && all[n].Step.Equal(sum.Step) {
			sum.Complete, sum.Failed = sum.Complete+all[n].Complete, sum.Failed+all[n].Failed
			sum.Retried, sum.Cancelled = sum.Retried+all[n].Retried, sum.Cancelled+all[n].Cancelled
			n++
		}
		if _, err := t.exec("add_trend_counts", sum.Step, sum.Queue, sum.Complete, sum.Failed, sum.Retried, sum.Cancelled); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}
