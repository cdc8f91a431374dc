package inspect

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestAGroupIsReadWithItsMembers(t *testing.T) {
	ms := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		for _, want := range []holdfast.Group{
			{ID: id(201), Name: "spring", Owner: "ann", Then: []holdfast.Then{{On: holdfast.GroupPartial, Draft: holdfast.Draft{Kind: "report"}}}, State: holdfast.GroupPartial, Generation: 2,
				CreatedAt: ms(-900), SealedAt: ms(-800), SettledAt: ms(-100), Members: holdfast.Members{Total: 4, Complete: 2, Failed: 1, Cancelled: 1}, AsOf: noon},
			{ID: id(202), Name: "summer", Owner: "ann", State: holdfast.GroupProcessing, Generation: 1, CreatedAt: ms(-700), SealedAt: ms(-600),
				Members: holdfast.Members{Total: 8, Waiting: 2, Queued: 2, Processing: 2, Complete: 2}, AsOf: noon},
			{ID: id(203), Parent: id(202), State: holdfast.GroupOpen, Generation: 1, CreatedAt: ms(-500), AsOf: noon},
			{ID: id(204), Parent: id(202), Quorum: 1, State: holdfast.GroupReady, Generation: 1, CreatedAt: ms(-500), SealedAt: ms(-400), SettledAt: ms(-300),
				Members: holdfast.Members{Total: 2, Complete: 1, Failed: 1}, AsOf: noon},
		} {
			got, err := i.Group(t.Context(), want.ID)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(holdfast.Draft{})); diff != "" || err != nil {
				t.Errorf("error %v, difference %s", err, diff)
			}
		}
		if _, err := i.Group(t.Context(), id(11)); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("an unknown group: %v", err)
		}
		// It was reopened: the members are counted again, purged ones by their tombstones, a group inside by its
		// outcome.
		plant("UPDATE holdfast_group SET state = 'processing', settled_at = NULL, complete = NULL WHERE id = {id 201}; UPDATE holdfast_group SET state = 'partial' WHERE id = {id 204}")
		spring, err := i.Group(t.Context(), id(201))
		summer, err2 := i.Group(t.Context(), id(202))
		if err != nil || err2 != nil || spring.Members != (holdfast.Members{Total: 4, Complete: 2, Failed: 1, Cancelled: 1}) || summer.Members.Failed != 1 || summer.Members.Complete != 1 {
			t.Errorf("%+v and %+v, errors %v, %v", spring.Members, summer.Members, err, err2)
		}
	})
}

func TestGroupsAreListedNewestFirstInPages(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		for _, c := range []struct {
			filter store.GroupFilter
			want   []byte
		}{
			{store.GroupFilter{}, []byte{204, 203, 202, 201}}, {store.GroupFilter{Owner: "ann"}, []byte{202, 201}}, {store.GroupFilter{Name: "summer"}, []byte{202}},
			{store.GroupFilter{State: holdfast.GroupReady}, []byte{204}}, {store.GroupFilter{Parent: id(202)}, []byte{204, 203}}, {store.GroupFilter{Parent: id(202), State: holdfast.GroupOpen}, []byte{203}},
			{store.GroupFilter{Owner: "' OR 1=1 --"}, nil},
		} {
			for c.filter.Limit = 1; c.filter.Limit < 6; c.filter.Limit++ {
				var got []byte
				c.filter.Cursor = ""
				for more := true; more; more = c.filter.Cursor != "" {
					groups, next, err := i.Groups(t.Context(), c.filter)
					if err != nil || len(groups) > c.filter.Limit {
						t.Fatalf("%+v: %d groups, error %v", c.filter, len(groups), err)
					}
					for _, g := range groups {
						got = append(got, g.ID[15])
					}
					c.filter.Cursor = next
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%+v: %s", c.filter, diff)
				}
			}
		}
		for _, f := range []store.GroupFilter{{State: "done"}, {Limit: -1}, {Cursor: "?"}, {Cursor: "AAAA"}, {Owner: "\xff"}, {Name: "a\x00"}} {
			if _, _, err := i.Groups(t.Context(), f); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%+v was answered with %v", f, err)
			}
		}
	})
}

func TestMembersAreListedWithThoseTheyWaitFor(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		plant("INSERT INTO holdfast_redriven (redrive, job, generation, at, outcome) VALUES ({id 101}, {id 12}, 1, {at 0}, NULL), ({id 101}, {id 28}, 1, {at 0}, NULL), ({id 101}, {id 21}, 1, {at 0}, NULL)")
		for _, c := range []struct {
			filter store.Filter
			want   []int
		}{
			{store.Filter{Group: id(201)}, []int{13, 12, 11}}, {store.Filter{Group: id(202)}, []int{26, 25, 24, 23, 22, 21}},
			{store.Filter{Group: id(202), State: holdfast.Queued}, []int{25, 24, 23, 22}}, {store.Filter{Group: id(202), State: holdfast.Processing}, []int{21}},
			{store.Filter{Group: id(202), State: holdfast.Complete, Kind: "mail"}, []int{26}}, {store.Filter{Group: id(201), DeadLetters: true}, []int{12}},
			{store.Filter{Group: id(201), Code: "GW_5XX"}, []int{12}}, {store.Filter{Group: id(203)}, nil}, {store.Filter{Group: id(201), Owner: "bob"}, nil},
			{store.Filter{Group: id(201), Redrive: id(101)}, []int{12}}, {store.Filter{Group: id(204), Redrive: id(101), State: holdfast.Failed}, []int{28}},
			{store.Filter{Group: id(201), Redrive: id(101), State: holdfast.Processing}, nil}, {store.Filter{Group: id(202), Redrive: id(101), State: holdfast.Processing}, []int{21}},
			{store.Filter{Group: id(202), Redrive: id(101), State: holdfast.Queued}, nil},
		} {
			jobs, _, err := i.Jobs(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, numbers(jobs)); diff != "" || err != nil {
				t.Errorf("%+v: error %v, difference %s", c.filter, err, diff)
			}
			for _, job := range jobs {
				if job.Group != c.filter.Group || job.After != nil || job.Waiting != (job.ID == id(23) || job.ID == id(24)) || (job.Upstream == id(12)) != (job.ID == id(13)) {
					t.Errorf("a list tells %+v", job)
				}
			}
		}
		waiting, err := i.Job(t.Context(), id(24))
		if diff := cmp.Diff(ids(21, 22), waiting.After); diff != "" || err != nil || !waiting.Waiting || !waiting.DueAt.Equal(noon.Add(-690*time.Millisecond)) {
			t.Errorf("error %v, %+v", err, waiting)
		}
		history, err := i.History(t.Context(), id(13))
		if diff := cmp.Diff(ids(12), history.Job.After); diff != "" || err != nil || history.Job.Waiting || history.Job.Upstream != id(12) {
			t.Errorf("error %v, %+v", err, history.Job)
		}
		missed, err := i.History(t.Context(), id(12))
		if err != nil || len(missed.Events) != 1 || missed.Events[0].Request != "req-7" {
			t.Errorf("error %v, events %+v", err, missed.Events)
		}
		counts, err := i.Counts(t.Context())
		due := 0
		for _, c := range counts {
			if c.Due {
				due += c.Jobs
			}
		}
		if err != nil || due != 1 {
			t.Errorf("%d jobs are due, error %v, counts %+v", due, err, counts)
		}
	})
}
