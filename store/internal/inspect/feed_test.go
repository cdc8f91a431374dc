package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestTheFeedListsEventsOfJobsInOrder(t *testing.T) {
	ms := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Millisecond) }
	of := func(n int, e store.Event) store.Event {
		e.Job, e.Kind, e.Queue, e.Owner, e.Group = id(n), "mail", "default", "ann", id(201)
		if e.Generation == 0 {
			e.Generation = 1
		}
		return e
	}
	bulk := func(e store.Event) store.Event {
		e.Kind, e.Queue, e.Owner, e.Group = "report", "bulk", "", holdfast.ID{}
		return e
	}
	in := func(group int, e store.Event) store.Event { e.Group = id(group); return e }
	want := []store.Event{
		of(11, store.Event{Name: "queued", At: ms(-990)}), of(12, store.Event{Name: "queued", At: ms(-980)}), of(13, store.Event{Name: "queued", At: ms(-970)}),
		of(11, store.Event{Name: "processing", At: ms(-950), Token: 1}), of(12, store.Event{Name: "processing", At: ms(-950), Token: 1}),
		of(11, store.Event{Name: "retry", At: ms(-940), Token: 1, Attempt: 1, Took: 10 * time.Millisecond, DueAt: ms(-930), Code: "TIMEOUT", Message: "too slow", Context: map[string]string{"http_status": "504"}}),
		of(11, store.Event{Name: "reclaimed", At: ms(-930), Token: 2}),
		of(11, store.Event{Name: "complete", At: ms(-900), Token: 2, Attempt: 2, Took: 30 * time.Millisecond}),
		of(14, store.Event{Name: "complete", At: ms(-895), Token: 1}), // purged
		of(12, store.Event{Name: "failed", At: ms(-910), Token: 1, Attempt: 1, Took: 40 * time.Millisecond, Code: "GW_5XX", Message: "the gateway failed"}),
		in(204, of(28, store.Event{Name: "expired", At: ms(-350), Token: 1, Code: "JOB_EXPIRED", Message: "not started in time"})),
		bulk(of(15, store.Event{Name: "failed", At: ms(-994), Token: 1, Code: "BAD"})), // purged
		of(13, store.Event{Name: "cancelled", At: ms(-890)}),
		{Subject: "group/" + id(201).String(), Name: "partial", At: ms(-100), Actor: "holdfast", Reason: "2 of 4 complete", Generation: 2, Owner: "ann", Group: id(201), Context: map[string]string{"name": "spring"}},
		{Name: "forgotten", At: ms(-80)},
		of(12, store.Event{Name: "deadline missed", At: ms(-90), Actor: "ann", Reason: "too late", Request: "req-7", Token: 1}),
		in(202, of(25, store.Event{Name: "released", At: ms(-640), Token: 1, Took: 10 * time.Millisecond, DueAt: ms(500)})),
		{Job: id(99), Name: "released", At: ms(-640), Token: 3, Generation: 1}, // no row of this job is left
	}
	for n := range want {
		want[n].Seq = int64(n + 1)
	}
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		feed, err := i.Feed(t.Context(), 0, 100)
		if diff := cmp.Diff(store.Feed{Events: want, Next: 18, Head: 18}, feed); diff != "" || err != nil {
			t.Fatalf("error %v, difference %s", err, diff)
		}
		plant("UPDATE holdfast_outbox SET tokens = NULL WHERE first = 1")
		for limit := 1; limit <= len(want); limit++ {
			for after := range len(want) {
				feed, err := i.Feed(t.Context(), int64(after), limit)
				until := min(after+limit, len(want))
				if diff := cmp.Diff(store.Feed{Events: want[after:until], Next: int64(until), Head: 18}, feed); diff != "" || err != nil {
					t.Fatalf("%d after %d: error %v, difference %s", limit, after, err, diff)
				}
			}
		}
	})
}

func TestAReaderBehindRetentionLearnsHowMuchItMissed(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		plant("DELETE FROM holdfast_outbox WHERE first < 10; UPDATE holdfast_feed SET purged = 9")
		for _, c := range []struct{ after, missed, first int64 }{{0, 9, 10}, {8, 1, 10}, {9, 0, 10}, {12, 0, 13}} {
			feed, err := i.Feed(t.Context(), c.after, 2)
			if err != nil || feed.Missed != c.missed || feed.Purged != 9 || len(feed.Events) != 2 || feed.Events[0].Seq != c.first || feed.Next != c.first+1 {
				t.Errorf("after %d: %+v, error %v", c.after, feed, err)
			}
		}
		plant("DELETE FROM holdfast_outbox; UPDATE holdfast_feed SET purged = 18")
		if feed, err := i.Feed(t.Context(), 3, 2); err != nil || feed.Missed != 15 || feed.Next != 18 || len(feed.Events) != 0 {
			t.Errorf("of an empty feed: %+v, error %v", feed, err)
		}
	})
}

func TestAReaderAtTheHeadWaitsThereAndOneBeyondItIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, _ func(string)) {
		if feed, err := i.Feed(t.Context(), 18, 5); err != nil || feed.Next != 18 || len(feed.Events) != 0 {
			t.Errorf("at the head: %+v, error %v", feed, err)
		}
		for _, c := range []struct {
			after int64
			limit int
		}{{19, 5}, {-1, 5}, {0, -1}} {
			if _, err := i.Feed(t.Context(), c.after, c.limit); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%d after %d: %v", c.limit, c.after, err)
			}
		}
		if _, err := i.Feed(t.Context(), 40, 5); err == nil || !strings.Contains(err.Error(), "ends at 18") {
			t.Errorf("the refusal does not say where the feed ends: %v", err)
		}
	})
}

func TestAJobThatEndsTwiceUnderOneTokenIsShownAsItWasEachTime(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		// The group was retried: 13 waited again, and was cancelled again, never claimed.
		plant("UPDATE holdfast_finished SET generation = 2, finished_at = {at -10} WHERE job = {id 13}")
		plant("INSERT INTO holdfast_outbox (first, events, name, at, jobs, tokens) VALUES (19, 1, 'cancelled', {at -10}, {jobs 13}, {tokens 0}); UPDATE holdfast_feed SET head = 19, advanced = 19, followed = 19")
		first, err := i.Feed(t.Context(), 12, 1)
		second, err2 := i.Feed(t.Context(), 18, 1)
		if err != nil || err2 != nil || first.Events[0].Generation != 1 || !first.Events[0].At.Equal(noon.Add(-890*time.Millisecond)) || second.Events[0].Generation != 2 {
			t.Errorf("%+v and %+v, errors %v, %v", first.Events, second.Events, err, err2)
		}
	})
}

func TestADamagedPageIsReadAsFarAsPossible(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		plant("UPDATE holdfast_outbox SET jobs = {jobs 11}, tokens = {tokens 0} WHERE first = 1; UPDATE holdfast_outbox SET story = {lines 1} WHERE name = 'story'")
		feed, err := i.Feed(t.Context(), 0, 0)
		if err != nil || len(feed.Events) != 18 {
			t.Fatalf("%d events, error %v", len(feed.Events), err)
		}
		var told []string
		for _, n := range []int{0, 1, 2, 13, 14, 15} {
			told = append(told, fmt.Sprint(feed.Events[n].Name, feed.Events[n].Job.IsZero()))
		}
		if diff := cmp.Diff([]string{"queuedfalse", "queuedtrue", "queuedtrue", "partialtrue", "forgottentrue", "forgottentrue"}, told); diff != "" {
			t.Error(diff)
		}
	})
}
