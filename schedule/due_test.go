package schedule

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// clocks tells slots as the time of the day.
func clocks(slots []time.Time) string {
	var words []string
	for _, slot := range slots {
		words = append(words, slot.Format("15:04:05"))
	}
	return strings.Join(words, " ")
}

// expectDue asks what is due and compares.
func expectDue(t *testing.T, s Schedule, now, want string, skipped int) Schedule {
	t.Helper()
	slots, n, after := s.Due(at(t, now))
	if got := clocks(slots); got != want || n != skipped {
		t.Errorf("at %s: slots %q, %d skipped; want %q, %d", now, got, n, want, skipped)
	}
	if after.Last.Before(s.Last) {
		t.Errorf("at %s: the last slot went back from %v to %v", now, s.Last, after.Last)
	}
	return after
}

func TestAnIntervalCountsFromWhenTheScheduleWasMade(t *testing.T) {
	s := made(t, Schedule{Every: 5 * time.Minute, CreatedAt: at(t, "2026-01-01T10:02:30Z").Add(123 * time.Millisecond)})
	if got := clocks(s.Next(at(t, "2026-01-01T10:00:00Z"), 3)); got != "10:07:30 10:12:30 10:17:30" {
		t.Errorf("slots %s", got)
	}
	if got := clocks(s.Next(at(t, "2026-01-01T10:12:30Z"), 1)); got != "10:17:30" {
		t.Errorf("after a slot comes %s", got)
	}
	s = expectDue(t, s, "2026-01-01T10:07:29Z", "", 0)
	s = expectDue(t, s, "2026-01-01T10:07:30Z", "10:07:30", 0)
	s = expectDue(t, s, "2026-01-01T10:07:31Z", "", 0)
	expectDue(t, s, "2026-01-01T10:12:31Z", "10:12:30", 0)
}

func TestMissedSlotsAreSkippedOrMadeUpForAsTheScheduleSays(t *testing.T) {
	for _, c := range []struct {
		missed  Missed
		most    int
		now     string
		want    string
		skipped int
	}{
		{Skip, 0, "2026-01-01T05:20:00Z", "", 5},
		{Skip, 0, "2026-01-01T05:00:03Z", "05:00:00", 4},
		{Skip, 0, "2026-01-01T05:00:59Z", "05:00:00", 4},
		{One, 0, "2026-01-01T05:20:00Z", "05:00:00", 4},
		{One, 0, "2026-01-01T05:00:03Z", "05:00:00", 4},
		{All, 3, "2026-01-01T05:20:00Z", "03:00:00 04:00:00 05:00:00", 2},
		{All, 3, "2026-01-01T05:00:03Z", "02:00:00 03:00:00 04:00:00 05:00:00", 1},
		{All, 0, "2026-01-01T12:20:00Z", "03:00:00 04:00:00 05:00:00 06:00:00 07:00:00 08:00:00 09:00:00 10:00:00 11:00:00 12:00:00", 2},
		{All, 100, "2026-01-01T02:20:00Z", "01:00:00 02:00:00", 0},
	} {
		for _, how := range []Schedule{{Every: time.Hour}, {Cron: "0 * * * *"}, {Cron: "0 */1 * * *", Zone: "Asia/Kolkata"}} {
			how.Missed, how.Most = c.missed, c.most
			if how.Zone != "" {
				how.Cron = "30 * * * *" // half past, there
			}
			s := made(t, how)
			after := expectDue(t, s, c.now, c.want, c.skipped)
			if runs := len(strings.Fields(c.want)); after.Runs != runs || after.Skipped != c.skipped {
				t.Errorf("%s %s: %d runs and %d skipped on record", c.missed, s.Describe(), after.Runs, after.Skipped)
			}
			expectDue(t, after, c.now, "", 0)
		}
	}
}

func TestASecondsIntervalThatIsALittleLateLosesNothing(t *testing.T) {
	for _, missed := range []Missed{Skip, One} {
		s := made(t, Schedule{Every: time.Second, Missed: missed})
		s = expectDue(t, s, "2026-01-01T00:00:03Z", "00:00:01 00:00:02 00:00:03", 0)
		s = expectDue(t, s, "2026-01-01T00:00:04Z", "00:00:04", 0)
		want := "00:01:50 00:01:51 00:01:52 00:01:53 00:01:54 00:01:55 00:01:56 00:01:57 00:01:58 00:01:59 00:02:00"
		expectDue(t, s, "2026-01-01T00:02:00Z", want, 105)
	}
}

func TestYearsOfMissedSlotsAreCountedAtOnce(t *testing.T) {
	s := made(t, Schedule{Every: time.Second, Missed: All, Most: 2, CreatedAt: at(t, "1990-01-01T00:00:00Z")})
	slots, skipped, after := s.Due(at(t, "2026-01-01T00:00:00Z"))
	if total := int(after.Last.Sub(s.CreatedAt) / time.Second); len(slots) != 13 || len(slots)+skipped != total {
		t.Errorf("%d slots and %d skipped of %d", len(slots), skipped, total)
	}
	s = made(t, Schedule{Cron: "* * * * *", CreatedAt: at(t, "1990-01-01T00:00:00Z")})
	if slots, skipped, _ := s.Due(at(t, "2026-01-01T00:00:30Z")); len(slots) != 1 || skipped != 700*24*60-1 {
		t.Errorf("%d slots and %d skipped", len(slots), skipped)
	}
}

func TestAClockThatGoesBackMakesNothingTwice(t *testing.T) {
	s := made(t, Schedule{Cron: "0 * * * *"})
	s = expectDue(t, s, "2026-01-01T03:00:00Z", "03:00:00", 2)
	s = expectDue(t, s, "2026-01-01T01:30:00Z", "", 0)
	s = expectDue(t, s, "2025-06-01T01:30:00Z", "", 0)
	s = expectDue(t, s, "2026-01-01T03:00:01Z", "", 0)
	expectDue(t, s, "2026-01-01T04:00:01Z", "04:00:00", 0)
}

func TestTheSlotsOfAPausePassBy(t *testing.T) {
	s := made(t, Schedule{Cron: "0 * * * *", Missed: All})
	s.Paused, s.PausedUntil, s.Actor, s.Reason = true, at(t, "2026-01-01T04:30:00Z"), "ada", "month end"
	s = expectDue(t, s, "2026-01-01T01:00:00Z", "", 1)
	s = expectDue(t, s, "2026-01-01T01:00:01Z", "", 0)
	s = expectDue(t, s, "2026-01-01T05:00:02Z", "05:00:00", 3) // two, three and four o'clock
	if s.Paused || s.Actor != "" || s.Reason != "" || !s.PausedUntil.IsZero() || s.Skipped != 4 || s.Runs != 1 {
		t.Errorf("after its pause: %+v", s)
	}
	s.Paused = true
	s = s.Resume(at(t, "2026-01-01T08:10:00Z"))
	s = expectDue(t, s, "2026-01-01T08:10:01Z", "", 0)
	expectDue(t, s, "2026-01-01T09:00:01Z", "09:00:00", 0)
}

func TestARunOutOfTurnIsMadeOnceAlsoDuringAPauseAndIsNoSlotOfTheClock(t *testing.T) {
	s := made(t, Schedule{Cron: "0 * * * *"})
	s.Paused, s.RunNow = true, 2
	now := at(t, "2026-01-01T00:30:00Z")
	slots, skipped, after := s.Due(now)
	if len(slots) != 2 || skipped != 0 || after.Ran != 2 || after.Runs != 2 || !after.Last.IsZero() {
		t.Fatalf("%v, %d, %+v", slots, skipped, after)
	}
	keys := map[string]bool{s.Job(now).IdempotencyKey: true, s.Job(slots[0]).IdempotencyKey: true, s.Job(slots[1]).IdempotencyKey: true}
	if len(keys) != 3 {
		t.Errorf("two of them are one: %v", keys)
	}
	expectDue(t, after, "2026-01-01T00:30:01Z", "", 0)
}

func TestASlotMakesOneAndTheSameJobWhoeverFindsIt(t *testing.T) {
	s := made(t, Schedule{Cron: "0 9 * * *", Zone: "Europe/Berlin"})
	slot := s.Next(at(t, "2026-06-01T00:00:00Z"), 1)[0]
	berlin, _ := location("Europe/Berlin")
	job := s.Job(slot)
	if !reflect.DeepEqual(job, s.Job(slot.In(berlin))) {
		t.Error("the zone in which the slot is written makes another job of it")
	}
	if job.IdempotencyKey != "schedule/report/2026-06-01T07:00:00Z" || string(job.Args) != `{"schedule":"report","slot":"2026-06-01T07:00:00Z"}` {
		t.Errorf("key %s, arguments %s", job.IdempotencyKey, job.Args)
	}
	s.Draft.Args = json.RawMessage(`{"a":1}`)
	if job := s.Job(slot); string(job.Args) != `{"a":1}` {
		t.Errorf("arguments %s", job.Args)
	}
}

func TestAScheduleIsTheSameAfterItWasKept(t *testing.T) {
	s := made(t, Schedule{Cron: "0 9 * * 1", Zone: "Europe/Berlin", Missed: All, Most: 3})
	_, _, s = s.Due(at(t, "2026-02-03T00:00:00Z"))
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again Schedule
	if err := json.Unmarshal(body, &again); err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(body) {
		t.Errorf("%s became %s, %v", body, second, err)
	}
	expectDue(t, again, "2026-02-03T00:00:00Z", "", 0)
}

func TestPeopleAreToldWhenItIsDue(t *testing.T) {
	for want, s := range map[string]Schedule{
		"every 5 minutes":                   {Every: 5 * time.Minute},
		"every hour":                        {Every: time.Hour},
		"every 90 minutes":                  {Every: 90 * time.Minute},
		"every 2 days":                      {Every: 48 * time.Hour},
		`cron "0 9 * * *" in Europe/Berlin`: {Cron: "0 9 * * *", Zone: "Europe/Berlin"},
		`cron "@daily" in UTC`:              {Cron: "@daily"},
	} {
		if got := s.Describe(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
