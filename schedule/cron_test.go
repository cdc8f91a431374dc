package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

// made is a schedule that was prepared on New Year's Day of 2026, unless it says otherwise.
func made(t *testing.T, s Schedule) Schedule {
	t.Helper()
	s.Name, s.Draft.Kind = "report", "report"
	if s.CreatedAt.IsZero() {
		s.CreatedAt = at(t, "2026-01-01T00:00:00Z")
	}
	if err := s.Prepare(s.CreatedAt); err != nil {
		t.Fatal(err)
	}
	return s
}

// comes tells slots in a zone, for people.
func comes(t *testing.T, s Schedule, after string, n int) string {
	t.Helper()
	zone, err := location(s.Zone)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, slot := range s.Next(at(t, after), n) {
		words = append(words, slot.In(zone).Format("Jan 2 15:04 MST"))
	}
	return strings.Join(words, ", ")
}

func TestASlotInASkippedHourComesOnceAtTheMomentAfterTheGap(t *testing.T) {
	for _, c := range []struct{ zone, cron, after, want string }{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00Z", "Mar 28 02:30 CET, Mar 29 03:00 CEST, Mar 30 02:30 CEST"},
		{"Europe/Berlin", "*/10 2 * * *", "2026-03-28T02:00:00Z", "Mar 29 03:00 CEST, Mar 30 02:00 CEST"},
		{"Europe/Berlin", "0,30 2,3 * * *", "2026-03-28T12:00:00Z", "Mar 29 03:00 CEST, Mar 29 03:30 CEST, Mar 30 02:00 CEST"},
		{"Europe/Berlin", "0 2 * * *", "2026-03-29T00:59:59Z", "Mar 29 03:00 CEST, Mar 30 02:00 CEST"},
		{"Europe/Berlin", "30 2 * * *", "2026-03-29T01:00:00Z", "Mar 30 02:30 CEST"},
		{"Europe/Berlin", "30 1,3 * * *", "2026-03-28T23:00:00Z", "Mar 29 01:30 CET, Mar 29 03:30 CEST"},
		{"America/New_York", "30 2 * * *", "2026-03-07T00:00:00Z", "Mar 7 02:30 EST, Mar 8 03:00 EDT, Mar 9 02:30 EDT"},
		{"America/New_York", "15,45 2 8 3 *", "2026-03-01T00:00:00Z", "Mar 8 03:00 EDT"},
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00Z", "Nov 4 01:00 -02, Nov 5 00:00 -02"}, // midnight was skipped there
		{"Pacific/Apia", "0 9 * * *", "2011-12-29T12:00:00Z", "Dec 29 09:00 -10, Dec 31 00:00 +14, Dec 31 09:00 +14"},
	} {
		s := made(t, Schedule{Cron: c.cron, Zone: c.zone})
		if got := comes(t, s, c.after, strings.Count(c.want, ",")+1); got != c.want {
			t.Errorf("%s in %s after %s:\n got %s\nwant %s", c.cron, c.zone, c.after, got, c.want)
		}
	}
}

func TestASlotInADoubledHourComesOnceTheFirstTime(t *testing.T) {
	for _, c := range []struct{ zone, cron, after, want string }{
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", "Oct 25 02:30 CEST, Oct 26 02:30 CET"},
		{"Europe/Berlin", "*/30 2 * * *", "2026-10-24T12:00:00Z", "Oct 25 02:00 CEST, Oct 25 02:30 CEST, Oct 26 02:00 CET"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T01:10:00Z", "Oct 26 02:30 CET"}, // asked in the second of the two hours
		{"Europe/Berlin", "0 3 * * *", "2026-10-25T00:30:00Z", "Oct 25 03:00 CET, Oct 26 03:00 CET"},
		{"America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", "Nov 1 01:30 EDT, Nov 2 01:30 EST"},
		{"America/New_York", "0 1,2 * * *", "2026-10-31T12:00:00Z", "Nov 1 01:00 EDT, Nov 1 02:00 EST, Nov 2 01:00 EST"},
	} {
		s := made(t, Schedule{Cron: c.cron, Zone: c.zone})
		if got := comes(t, s, c.after, strings.Count(c.want, ",")+1); got != c.want {
			t.Errorf("%s in %s after %s:\n got %s\nwant %s", c.cron, c.zone, c.after, got, c.want)
		}
	}
}

func TestWhatNamesEveryHourGoesByTimePassedWhateverTheClockDoes(t *testing.T) {
	for _, c := range []struct{ zone, cron, after, want string }{
		{"Europe/Berlin", "0 * * * *", "2026-10-25T00:30:00Z", "Oct 25 02:00 CET, Oct 25 03:00 CET"},
		{"Europe/Berlin", "@hourly", "2026-10-24T23:30:00Z", "Oct 25 02:00 CEST, Oct 25 02:00 CET, Oct 25 03:00 CET"},
		{"Europe/Berlin", "0,30 0-23 * * *", "2026-03-29T00:00:00Z", "Mar 29 01:30 CET, Mar 29 03:00 CEST, Mar 29 03:30 CEST"},
		{"America/New_York", "*/20 * * * *", "2026-11-01T05:40:00Z", "Nov 1 01:00 EST, Nov 1 01:20 EST, Nov 1 01:40 EST, Nov 1 02:00 EST"},
		{"Australia/Lord_Howe", "15 * * * *", "2026-10-03T14:30:00Z", "Oct 4 01:15 +1030, Oct 4 03:15 +11"}, // half an hour is skipped there
	} {
		s := made(t, Schedule{Cron: c.cron, Zone: c.zone})
		if got := comes(t, s, c.after, strings.Count(c.want, ",")+1); got != c.want {
			t.Errorf("%s in %s after %s:\n got %s\nwant %s", c.cron, c.zone, c.after, got, c.want)
		}
	}
}

func TestAnExpressionMeansWhatCrontabSays(t *testing.T) {
	for _, c := range []struct{ cron, want string }{
		{"0 9 * * 1-5", "Jan 1 09:00 UTC, Jan 2 09:00 UTC, Jan 5 09:00 UTC"},
		{"0 0 13 * 5", "Jan 2 00:00 UTC, Jan 9 00:00 UTC, Jan 13 00:00 UTC, Jan 16 00:00 UTC"}, // the 13th, and Fridays
		{"0 0 L * *", "Jan 31 00:00 UTC, Feb 28 00:00 UTC"},
		{"0 0 * * FRI#L", "Jan 30 00:00 UTC, Feb 27 00:00 UTC"},
		{"@weekly", "Jan 4 00:00 UTC, Jan 11 00:00 UTC"},
		{"@daily", "Jan 2 00:00 UTC, Jan 3 00:00 UTC"},
		{"0 0 29 2 *", "Feb 29 00:00 UTC"},
		{"0 12 * * 7", "Jan 4 12:00 UTC"},
	} {
		if got := comes(t, made(t, Schedule{Cron: c.cron}), "2026-01-01T00:00:00Z", strings.Count(c.want, ",")+1); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.cron, got, c.want)
		}
	}
}

func TestAZoneOrAnIntervalWrittenIntoTheExpressionIsMovedToItsPlace(t *testing.T) {
	s := made(t, Schedule{Cron: "TZ=Europe/Berlin 0 9 * * *"})
	if s.Zone != "Europe/Berlin" || s.Cron != "0 9 * * *" {
		t.Errorf("%q in %q", s.Cron, s.Zone)
	}
	if s := made(t, Schedule{Cron: "@every 90m"}); s.Every != 90*time.Minute || s.Cron != "" {
		t.Errorf("%q, every %v", s.Cron, s.Every)
	}
}

func TestWhatMakesNoSenseIsRefusedAndSaysWhatToDo(t *testing.T) {
	for cron, zone := range map[string]string{
		"":                                   "",
		"TZ=":                                "",
		"TZ= 0 9 * * *":                      "",
		"TZ=Europe/Berlin":                   "",
		"TZ=Nowhere/Land 0 9 * * *":          "",
		"CRON_TZ=../../etc/passwd 0 * * * *": "",
		"TZ=UTC TZ=UTC 0 9 * * *":            "",
		"TZ=Europe/Berlin 0 9 * * * ":        "America/New_York",
		"0 9 * * *":                          "Local",
		"1 9 * * *":                          "/etc/localtime",
		"0 9 * *":                            "",
		"0 0 9 * * *":                        "",
		"60 9 * * *":                         "",
		"0 0 30 2 *":                         "",
		"@reboot":                            "",
		"@every":                             "",
		"@every never":                       "",
		"@every 10ms":                        "",
		"H 9 * * *":                          "",
		"\x00 * * * *":                       "",
		strings.Repeat("*", 5000):            "",
	} {
		s := Schedule{Name: "x", Cron: cron, Zone: zone, Draft: holdfast.Draft{Kind: "x"}}
		if err := s.Prepare(at(t, "2026-01-01T00:00:00Z")); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("cron %.40q in zone %q: %v", cron, zone, err)
		}
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	s := Schedule{Name: "a b", Cron: "nonsense", Zone: "Moon/Base", Missed: "maybe", Most: -1, Draft: holdfast.Draft{IdempotencyKey: "k"}}
	err := s.Prepare(at(t, "2026-01-01T00:00:00Z"))
	for _, word := range []string{"schedule name", "Moon/Base", "missed slots", "at most -1", "idempotency key", "kind"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

// Slots only depend on the clock on the wall and on what came before: wherever one begins to look, the same ones come.
func FuzzAnExpressionNeverPanicsAndItsSlotsDoNotDependOnWhereOneBegins(f *testing.F) {
	for _, cron := range []string{"0 9 * * *", "*/7 * * * *", "30 2 * * *", "TZ=", "@daily", "@every 1h", "0 0 L * FRI#3", "TZ=Europe/Berlin * 1-3 * * *", "0 0 29 2 1"} {
		for _, zone := range []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Nowhere"} {
			f.Add(cron, zone, int64(1774746000), uint16(600))
			f.Add(cron, zone, int64(1325235600), uint16(60_000))
		}
	}
	f.Fuzz(func(t *testing.T, cron, zone string, from int64, step uint16) {
		begin := time.Unix(from%4_000_000_000, 0).UTC()
		s := Schedule{Name: "x", Cron: cron, Zone: zone, Draft: holdfast.Draft{Kind: "x"}, CreatedAt: begin}
		if s.Prepare(begin) != nil {
			return
		}
		slots := s.Next(begin, 20)
		for i, slot := range slots {
			before := begin
			if i > 0 {
				before = slots[i-1]
			}
			if !slot.After(before) {
				t.Fatalf("%q in %q: slot %v does not come after %v", cron, zone, slot, before)
			}
			if part := before.Add(time.Duration(step) * time.Second); part.Before(slot) {
				if again := s.Next(part, 1); len(again) != 1 || !again[0].Equal(slot) {
					t.Fatalf("%q in %q: after %v comes %v, after %v comes %v", cron, zone, before, slot, part, again)
				}
			}
		}
	})
}
