package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// writeRecord writes a record, whatever its version is.
func (s *harness) writeRecord(namespace, name string, body any) {
	s.Helper()
	records, err := s.store.Records(context.Background(), namespace)
	if err != nil {
		s.Fatal(err)
	}
	r := store.Record{Namespace: namespace, Name: name}
	for _, known := range records {
		if known.Name == name {
			r = known
		}
	}
	if r.Body = nil; body != nil {
		if r.Body, err = json.Marshal(body); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.store.Apply(context.Background(), store.Change{Records: []store.Record{r}}); err != nil {
		s.Fatal(err)
	}
}

// setSchedule writes a schedule of notes.
func (s *harness) setSchedule(plan schedule.Schedule) {
	s.Helper()
	plan.Name, plan.Draft.Kind = "report", "note"
	if err := plan.Prepare(time.Now()); err != nil {
		s.Fatal(err)
	}
	s.writeRecord(schedule.Namespace, plan.Name, plan)
}

func (s *harness) schedule() (plan schedule.Schedule) {
	s.Helper()
	records, err := s.store.Records(context.Background(), schedule.Namespace)
	if err != nil || len(records) != 1 {
		s.Fatalf("%d schedules, %v", len(records), err)
	}
	if err := json.Unmarshal(records[0].Body, &plan); err != nil {
		s.Fatal(err)
	}
	return plan
}

// slots returns the slots that have made jobs, in order.
func (s *harness) slots() (slots []string) {
	s.Helper()
	cursor := ""
	for {
		jobs, next, err := s.store.Jobs(context.Background(), store.Filter{Kind: "note", Limit: 200, Cursor: cursor})
		if err != nil {
			s.Fatal(err)
		}
		for _, job := range jobs {
			slot, _ := strings.CutPrefix(job.IdempotencyKey, "schedule/report/")
			slots = append(slots, slot)
		}
		if cursor = next; cursor == "" {
			slices.Sort(slots)
			return slots
		}
	}
}

func expectSlots(s *harness, want ...string) {
	s.Helper()
	if got := s.slots(); !slices.Equal(got, want) {
		s.Errorf("slots:\n got %v\nwant %v", got, want)
	}
}

var noted = handleNotes(func(context.Context, *engine.Job[Note]) error { return nil })

func TestTwentyEnginesMakeOneJobForEachSlot(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.setSchedule(schedule.Schedule{Every: 7 * time.Second})
		began := time.Now()
		for range 20 {
			s.startWorker(engine.Config{Slots: 1}, noted)
		}
		time.Sleep(time.Minute)
		slots := s.slots()
		if n := len(slots); n != int(time.Since(began)/(7*time.Second)) {
			t.Errorf("%d jobs: %v", n, slots)
		}
		expect(s, "different ones", len(slices.Compact(slices.Clone(slots))), len(slots))
		expect(s, "runs on record", s.schedule().Runs, len(slots))
		expect(s, "lines in its story", len(s.eventNames("schedule/report")), 0)
	})
}

// The bubble's time begins at midnight UTC of January 1st, 2000, a Saturday.
func TestASlotThatTheClockSkipsMakesOneJobAndOneThatItShowsTwiceToo(t *testing.T) {
	for _, c := range []struct {
		zone, cron string
		want       []string // the second one is on the day on which the clock is changed
	}{
		{"Europe/Berlin", "30 2 25-27 3 *", []string{"2000-03-25T01:30:00Z", "2000-03-26T01:00:00Z", "2000-03-27T00:30:00Z"}},
		{"Europe/Berlin", "30 2 28-30 10 *", []string{"2000-10-28T00:30:00Z", "2000-10-29T00:30:00Z", "2000-10-30T01:30:00Z"}},
		{"America/New_York", "30 2 1-3 4 *", []string{"2000-04-01T07:30:00Z", "2000-04-02T07:00:00Z", "2000-04-03T06:30:00Z"}},
		{"America/New_York", "30 1 28-30 10 *", []string{"2000-10-28T05:30:00Z", "2000-10-29T05:30:00Z", "2000-10-30T06:30:00Z"}},
	} {
		inBubble(t, func(s *harness) {
			s.setSchedule(schedule.Schedule{Cron: c.cron, Zone: c.zone, Missed: schedule.All})
			changed, _ := time.Parse(time.RFC3339, c.want[1])
			time.Sleep(time.Until(changed) - 5*time.Second)
			// Engines run during the change of the clock and again an hour later; slots after that are made up for at the end.
			for _, then := range []time.Duration{time.Hour, 30 * time.Hour, 0} {
				var three []*worker
				for range 3 {
					three = append(three, s.startWorker(engine.Config{}, noted))
				}
				time.Sleep(10 * time.Second)
				for _, w := range three {
					w.stop()
				}
				time.Sleep(then - 10*time.Second)
			}
			expectSlots(s, c.want...)
		})
	}
}

func TestMissedSlotsAreRecordedOnceAndMakeOneJob(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.setSchedule(schedule.Schedule{Cron: "0 * * * *"})
		time.Sleep(5*time.Hour + 20*time.Minute)
		for range 5 {
			s.startWorker(engine.Config{}, noted)
		}
		time.Sleep(time.Minute)
		expectSlots(s, "2000-01-01T05:00:00Z")
		if names := s.eventNames("schedule/report"); !slices.Equal(names, []string{"skipped"}) {
			t.Errorf("its story: %v", names)
		}
		expect(s, "skipped", s.schedule().Skipped, 4)
	})
}

func TestAScheduleThatIsForgottenAndMadeAgainDoesNotRunASlotTwice(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{}, noted)
		plan := schedule.Schedule{Cron: "* * * * *", Missed: schedule.All, CreatedAt: time.Now()}
		s.setSchedule(plan)
		time.Sleep(125 * time.Second)
		s.writeRecord(schedule.Namespace, "report", nil)
		s.setSchedule(plan)
		time.Sleep(time.Minute)
		expectSlots(s, "2000-01-01T00:01:00Z", "2000-01-01T00:02:00Z", "2000-01-01T00:03:00Z")
	})
}

func TestASlotIsNotDoneUntilItsJobIsWritten(t *testing.T) {
	for _, after := range []bool{false, true} {
		inBubble(t, func(s *harness) {
			s.setSchedule(schedule.Schedule{Every: time.Minute})
			faulty := storetest.NewFaulty(s.store)
			s.startWorkerOn(faulty, engine.Config{}, noted)
			time.Sleep(50 * time.Second)
			for range 8 {
				faulty.Plan(storetest.Fault{Verb: "Apply", After: after})
			}
			time.Sleep(40 * time.Second)
			expectSlots(s, "2000-01-01T00:01:00Z")
		})
	}
}

func TestARequestedRunOfAScheduleIsMadeOnceAndATimedPauseEnds(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.setSchedule(schedule.Schedule{Cron: "* * * * *", Missed: schedule.All})
		for range 5 {
			s.startWorker(engine.Config{}, noted)
		}
		time.Sleep(10 * time.Second)
		plan := s.schedule()
		plan.RunNow, plan.Paused, plan.PausedUntil, plan.Actor = 1, true, time.Now().Add(140*time.Second), "ada"
		s.writeRecord(schedule.Namespace, "report", plan)
		time.Sleep(5 * time.Second)
		expect(s, "jobs", len(s.slots()), 1)
		time.Sleep(170 * time.Second)
		slots := s.slots()
		expect(s, "jobs", len(slots), 2)
		expect(s, "the slot after the pause", slots[1], "2000-01-01T00:03:00Z")
		if names := s.eventNames("schedule/report"); !slices.Equal(names, []string{"resumed"}) {
			t.Errorf("its story: %v", names)
		}
	})
}

func TestAnUnreadableScheduleDoesNotDelayTheOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		var complaints atomic.Int64
		s.startWorker(engine.Config{Log: counting(&complaints)}, noted)
		s.setSchedule(schedule.Schedule{Every: time.Minute})
		s.writeRecord(schedule.Namespace, "bad", map[string]any{"cron": 5})
		s.writeRecord(schedule.Namespace, "worse", map[string]any{"cron": "TZ=Nowhere 0 * * * *"})
		time.Sleep(90 * time.Second)
		expectSlots(s, "2000-01-01T00:01:00Z")
		if complaints.Load() == 0 {
			t.Error("nothing was logged")
		}
	})
}
