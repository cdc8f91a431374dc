package inspect

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast/store"
)

var errReading = errors.New("the disk is away")

// A flaw is a Querier that fails once: the query of that number fails after a number of rows.
type flaw struct {
	*tables
	query, rows int
	failed      bool
}

func (f *flaw) Query(ctx context.Context, text string, args []any, each func(Row) error) error {
	if f.query--; f.query != 0 {
		return f.tables.Query(ctx, text, args, each)
	}
	f.failed = true
	rows := 0
	err := f.tables.Query(ctx, text, args, func(r Row) error {
		if rows++; rows > f.rows {
			return errReading
		}
		return each(r)
	})
	return errors.Join(err, errReading)
}

// told is everything that is answered from cached hours.
type told struct {
	Groups   []store.ErrorGroup
	One, Two []store.ErrorTrend
	Trends   []store.Trend
}

func tell(ctx context.Context, i *Inspector) (all told, err error) {
	names := []string{"f2", "f5", "f3"}
	var errs [4]error
	all.Groups, _, errs[0] = i.ErrorGroups(ctx, store.ErrorFilter{})
	all.One, errs[1] = i.ErrorTrends(ctx, names, week, hour)
	all.Two, errs[2] = i.ErrorTrends(ctx, names[:2], week, 2*hour)
	all.Trends, errs[3] = i.Trends(ctx, week, 2*hour)
	return all, errors.Join(errs[:]...)
}

// openBusy returns tables with failures and completions every twenty-three minutes for ten days.
func openBusy(t *testing.T) *tables {
	s, _ := openHealthy(t)
	s.plant("DELETE FROM holdfast_error_count; DELETE FROM holdfast_trend")
	for n := range int(10 * day / (23 * time.Minute)) {
		at := noon.Add(-time.Duration(n) * 23 * time.Minute)
		s.plant(fmt.Sprintf("INSERT INTO holdfast_error_count (fingerprint, step, kind, queue, dependency, version, failures) VALUES ('f%d', %d, 'kind%d', 'q%d', '', 'v%d', %d)",
			[]int{2, 5, 3, 2}[n%4], at.Truncate(step).UnixMicro(), n%5, n%2, n/100, 1+n%7))
		s.plant(fmt.Sprintf("INSERT INTO holdfast_trend (step, shard, queue, complete, failed, retried, cancelled) VALUES (%d, 0, 'q%d', %d, %d, 1, 0)",
			at.Truncate(time.Minute).UnixMicro(), n%3, n%11, n%4))
	}
	return s
}

func TestAFailedReadIsNeverCachedInPart(t *testing.T) {
	s := openBusy(t)
	ctx := t.Context()
	before, after := noon.Add(-50*time.Minute), noon.Add(6*time.Minute)
	for _, rows := range []int{1, 50} {
		for n := 1; ; n++ {
			f := &flaw{tables: s}
			i := New(f, SQLite)
			s.now = before
			if n%2 == 0 { // the cache is not empty, and groups differ in how far they are cached
				_, first := i.ErrorTrends(ctx, []string{"f2"}, week, hour)
				_, second := i.Trends(ctx, week, hour)
				s.now = after
				_, third := i.ErrorTrends(ctx, []string{"f5"}, week, hour)
				if err := errors.Join(first, second, third); err != nil {
					t.Fatal(err)
				}
			}
			s.now = after
			f.query, f.rows = (n+1)/2, rows
			if _, err := tell(ctx, i); f.failed && !errors.Is(err, errReading) {
				t.Fatalf("query %d failed, and was answered with %v", n, err)
			}
			if !f.failed {
				break
			}
			for range 2 {
				want, err := tell(ctx, i.On(s))
				if err != nil {
					t.Fatal(err)
				}
				got, err := tell(ctx, i)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Fatalf("after query %d failed behind %d rows: error %v, difference %s", n, f.rows, err, diff)
				}
			}
		}
	}
}

func TestRememberedHoursAddUpAtEveryInstant(t *testing.T) {
	s := openBusy(t)
	i := New(s, SQLite)
	for n, by := range []time.Duration{
		-30 * hour, 7 * time.Minute, 53*time.Minute - time.Microsecond, time.Microsecond, 5 * time.Minute, 54 * time.Minute, 59 * time.Minute,
		-10 * time.Minute, -3 * hour, 20 * time.Minute, 55 * time.Minute, 26 * hour, 58 * time.Minute, 40 * time.Minute, 9 * day,
	} {
		s.now = s.now.Add(by)
		want, err := tell(t.Context(), i.On(s))
		if err != nil {
			t.Fatal(err)
		}
		got, err := tell(t.Context(), i)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("instant %d, %v: error %v, difference %s", n, s.now, err, diff)
		}
	}
}
