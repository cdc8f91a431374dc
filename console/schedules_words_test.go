package console

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/schedule"
)

func TestAScheduleIsDescribedInWords(t *testing.T) {
	for cron, want := range map[string]string{
		"30 2 * * *":           "Every day at 02:30",
		"0 9,17 * * MON-FRI":   "Monday to Friday at 09:00 and 17:00",
		"*/5 * * * *":          "Every 5 minutes",
		"* * * * *":            "Every minute",
		"@hourly":              "Every hour",
		"15 */6 * * *":         "Every 6 hours, 15 min past",
		"*/15 9-17 * * 1-5":    "Every 15 minutes from 09:00 to 17:59, Monday to Friday",
		"0 0 1 * *":            "On the 1st of every month at 00:00",
		"0 4 L * *":            "On the last day of every month at 04:00",
		"0 4 15W 3 *":          "On the weekday nearest to the 15th in March at 04:00",
		"0 8 * * FRI#3":        "On the third Friday of the month at 08:00",
		"0 8 1,15 * 7":         "On the 1st and 15th of every month or every Sunday at 08:00",
		"0 9 * * MON,4":        "Every Monday and Thursday at 09:00",
		"@yearly":              "On the 1st in January at 00:00",
		"7 * * * *":            "Every hour, 7 min past",
		"*/7 3 * * *":          "By the cron expression",
		"1-10/3 2,5-9 * * TUE": "By the cron expression",
		"no sense":             "By the cron expression",
	} {
		if got := scheduleWords(schedule.Schedule{Cron: cron}); got != want {
			t.Errorf("%s: %q, want %q", cron, got, want)
		}
	}
	if got := scheduleWords(schedule.Schedule{Every: 90 * time.Minute}); got != "Every 90 minutes" {
		t.Errorf("an interval: %q", got)
	}
}

func TestNextRunsAreShownOnTheClocksOfTheScheduleAndOfTheVisitor(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	plan := schedule.Schedule{Cron: "30 2 * * *", Zone: "Europe/Berlin"}
	runs := scheduleRuns(plan, plan.Next(now, 2), time.UTC, now)
	if len(runs) != 2 || runs[0].There != "Sun 29 Mar 03:00 CEST" || runs[0].Here != "Sun 29 Mar 01:00 UTC" || runs[1].There != "Mon 30 Mar 02:30 CEST" {
		t.Errorf("%+v", runs)
	}
	berlin, err := zoneOf("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if runs := scheduleRuns(plan, plan.Next(now, 1), berlin, now); runs[0].Here != "" {
		t.Errorf("the same clock twice: %+v", runs)
	}
	every := schedule.Schedule{Every: time.Hour, CreatedAt: now}
	if runs := scheduleRuns(every, every.Next(now, 1), berlin, now); runs[0].There != "Sat 28 Mar 14:00 CET" || runs[0].Here != "" {
		t.Errorf("an interval: %+v", runs)
	}
}

func TestClockChangesAreAnnounced(t *testing.T) {
	spring, autumn := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		cron, zone string
		now        time.Time
		want       string
	}{
		{"30 2 * * *", "Europe/Berlin", spring, "On Sun 29 Mar 2026 02:30 does not exist in Europe/Berlin: the clock goes from 02:00 to 03:00. It runs once, at 03:00."},
		{"0,30 2 * * *", "Europe/Berlin", spring, "On Sun 29 Mar 2026 02:00 and 02:30 do not exist in Europe/Berlin: the clock goes from 02:00 to 03:00. One run makes up for them, at 03:00."},
		{"30 2 * * *", "Europe/Berlin", autumn, "On Sun 25 Oct 2026 02:30 comes twice in Europe/Berlin: the clock goes back from 03:00 to 02:00. It runs once, the first time."},
		{"*/10 2 * * *", "Europe/Berlin", autumn, "02:00, 02:10, 02:20 and others come twice"},
		{"0 3 * * *", "Europe/Berlin", spring, ""},
		{"30 * * * *", "Europe/Berlin", spring, ""},
		{"30 2 * * MON", "Europe/Berlin", spring, ""},
		{"30 2 * * *", "Europe/Berlin", spring.AddDate(0, 2, 0), ""},
		{"30 2 * * *", "", spring, ""},
	} {
		got := strings.Join(clockChanges(schedule.Schedule{Cron: c.cron, Zone: c.zone}, c.now), " ")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s in %q:\n got %q\nwant %q", c.cron, c.zone, got, c.want)
		}
	}
}
