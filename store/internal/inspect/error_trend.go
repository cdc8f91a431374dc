package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

const (
	mostGroups     = 200 // in one call
	mostDead       = 1_000
	newestFailures = 200
)

// ErrorTrends returns the failures of error groups over time. A step that lies partly within the duration is returned
// whole.
func (i *Inspector) ErrorTrends(ctx context.Context, fingerprints []string, within, every time.Duration) ([]store.ErrorTrend, error) {
	switch {
	case len(fingerprints) > mostGroups:
		return nil, invalid("trends of %d error groups: name at most %d at a time", len(fingerprints), mostGroups)
	case within <= 0 || within > trendsBack:
		return nil, invalid("trends within %v: give a duration of up to 8 days (192h)", within)
	case every < 0 || every > trendsBack:
		return nil, invalid("trends in steps of %v: give a multiple of five minutes of up to 8 days (192h)", every)
	case len(fingerprints) == 0:
		return nil, nil
	}
	now, err := i.now(ctx)
	if err = errors.Join(err, areTexts(fingerprints)); err != nil {
		return nil, err
	}
	named, err := json.Marshal(set(slices.Clone(fingerprints)))
	if err != nil {
		return nil, err
	}
	every = max(1, (every+step-1)/step) * step
	since := sqltext.StepOf(now.Add(-within), every)
	of := map[string]*store.ErrorTrend{}
	var groups []store.ErrorGroup
	err = i.q.Query(ctx, i.statements["inspect_error_outcomes"], []any{string(named), mostDead, newestFailures}, func(r Row) error {
		trend := readOutcomes(r)
		trend.Failures = make([]int, now.Sub(since)/every+1)
		of[trend.Fingerprint] = &trend
		groups = append(groups, store.ErrorGroup{Fingerprint: trend.Fingerprint, FirstSeen: r.Time(3)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if every%hour == 0 {
		var hours []errorHour
		hours, err = i.errorHours(ctx, groups, since, now)
		for _, one := range hours {
			if !one.hour.After(now) {
				of[one.fingerprint].Failures[one.hour.Sub(since)/every] += one.failures
			}
		}
	} else {
		err = i.q.Query(ctx, i.statements["inspect_error_trends"], []any{string(named), int(every.Microseconds()), since, now}, func(r Row) error {
			if trend := of[r.Text(0)]; trend != nil {
				trend.Failures[r.Time(1).Sub(since)/every] += r.Int(2)
			}
			return nil
		})
	}
	trends := make([]store.ErrorTrend, len(fingerprints))
	for n, fingerprint := range fingerprints {
		trends[n].Fingerprint = fingerprint
		if trend := of[fingerprint]; trend != nil {
			trends[n] = *trend
		}
	}
	return trends, err
}

func areTexts(all []string) error {
	for _, one := range all {
		if err := isText(one); err != nil {
			return err
		}
	}
	return nil
}

// readOutcomes reads one row of the statement inspect_error_outcomes.
func readOutcomes(r Row) store.ErrorTrend {
	trend := store.ErrorTrend{Fingerprint: r.Text(0), Dead: r.Int(1)}
	for state := range strings.FieldsSeq(r.Text(2)) {
		switch holdfast.State(state) {
		case holdfast.Complete:
			trend.Recovered++
		case holdfast.Failed:
			trend.Failed++
		case holdfast.Cancelled:
		default:
			trend.Live++
		}
	}
	return trend
}
