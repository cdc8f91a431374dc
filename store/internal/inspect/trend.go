package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// trendsBack is how far back trends go: a week, and the same day a week ago.
const trendsBack = 8 * day

// Trends returns the results of attempts over time. A step that lies partly within the duration is returned whole.
func (i *Inspector) Trends(ctx context.Context, within, step time.Duration) ([]store.Trend, error) {
	if within <= 0 || within > trendsBack {
		return nil, invalid("trends within %v: give a duration of up to 8 days (192h)", within)
	}
	if step < 0 || step > trendsBack {
		return nil, invalid("trends in steps of %v: give a multiple of a minute of up to 8 days (192h)", step)
	}
	step = max(1, (step+sqltext.TrendStep-1)/sqltext.TrendStep) * sqltext.TrendStep
	now, err := i.now(ctx)
	if err != nil {
		return nil, err
	}
	since := sqltext.StepOf(now.Add(-within), step)
	var trends []store.Trend
	if step%hour == 0 {
		hourly, failed := i.hourlyTrends(ctx, since, now)
		trends, err = steps(hourly, step), failed
	} else {
		trends, err = i.readTrends(ctx, since, now, step)
	}
	slices.SortFunc(trends, func(a, b store.Trend) int { // sorted here: databases disagree on the order of texts
		return cmp.Or(a.Step.Compare(b.Step), strings.Compare(a.Queue, b.Queue))
	})
	return trends, err
}

// readTrends reads the results of attempts between two instants.
func (i *Inspector) readTrends(ctx context.Context, from, to time.Time, step time.Duration) (trends []store.Trend, err error) {
	err = i.q.Query(ctx, i.statements["inspect_trends"], []any{from, int(step.Microseconds()), to}, func(r Row) error {
		trends = append(trends, store.Trend{Step: r.Time(0), Queue: r.Text(1), Complete: r.Int(2), Failed: r.Int(3), Retried: r.Int(4), Cancelled: r.Int(5)})
		return nil
	})
	return trends, err
}

// steps adds hours up to longer steps.
func steps(hourly []store.Trend, step time.Duration) (trends []store.Trend) {
	type place struct {
		at    time.Time
		queue string
	}
	index := map[place]int{}
	for _, one := range hourly {
		one.Step = sqltext.StepOf(one.Step, step)
		n, known := index[place{one.Step, one.Queue}]
		if !known {
			index[place{one.Step, one.Queue}] = len(trends)
			trends = append(trends, one)
			continue
		}
		t := &trends[n]
		t.Complete, t.Failed, t.Retried, t.Cancelled = t.Complete+one.Complete, t.Failed+one.Failed, t.Retried+one.Retried, t.Cancelled+one.Cancelled
	}
	return trends
}
