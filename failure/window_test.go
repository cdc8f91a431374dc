package failure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t *testing.T, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func minutes(t *testing.T, text string) int {
	if text == "24:00" {
		return minutesADay
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Hour()*60 + at.Minute()
}

// In Berlin the clock goes from 02:00 to 03:00 on Sunday, 29 March 2026, and from 03:00 back to 02:00 on Sunday, 25 October.
func TestAWindowFollowsLocalTime(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	workdays := []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}
	cases := []struct {
		name         string
		from, to     string
		days         []time.Weekday
		begins, ends string // in UTC
	}{
		{"in winter", "09:00", "17:00", nil, "2026-03-28T08:00:00Z", "2026-03-28T16:00:00Z"},
		{"on the day the clock goes forward", "09:00", "17:00", nil, "2026-03-29T07:00:00Z", "2026-03-29T15:00:00Z"},
		{"on the day the clock goes back", "09:00", "17:00", nil, "2026-10-25T08:00:00Z", "2026-10-25T16:00:00Z"},
		{"over midnight", "22:00", "06:00", nil, "2026-06-01T20:00:00Z", "2026-06-02T04:00:00Z"},
		{"over midnight, one hour short", "22:00", "06:00", nil, "2026-03-28T21:00:00Z", "2026-03-29T04:00:00Z"},
		{"over midnight, one hour longer", "22:00", "06:00", nil, "2026-10-24T20:00:00Z", "2026-10-25T05:00:00Z"},
		{"a start that does not exist", "02:30", "04:00", nil, "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"an end that does not exist", "01:00", "02:30", nil, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"},
		{"a start that comes twice", "02:30", "04:00", nil, "2026-10-25T00:30:00Z", "2026-10-25T03:00:00Z"},
		{"an end that comes twice", "01:00", "02:30", nil, "2026-10-24T23:00:00Z", "2026-10-25T01:30:00Z"},
		{"until midnight", "18:00", "24:00", nil, "2026-06-01T16:00:00Z", "2026-06-01T22:00:00Z"},
		{"until midnight, written as 00:00", "18:00", "00:00", nil, "2026-06-01T16:00:00Z", "2026-06-01T22:00:00Z"},
		{"on a workday", "09:00", "17:00", workdays, "2026-06-05T07:00:00Z", "2026-06-05T15:00:00Z"},
		{"from Friday into Saturday", "22:00", "06:00", workdays, "2026-06-05T20:00:00Z", "2026-06-06T04:00:00Z"},
	}
	for _, c := range cases {
		w := Window{From: minutes(t, c.from), To: minutes(t, c.to), Days: c.days, Zone: berlin}
		begins, _ := time.Parse(time.RFC3339, c.begins)
		ends, _ := time.Parse(time.RFC3339, c.ends)
		for at, want := range map[time.Time]bool{begins.Add(-1): false, begins: true, ends.Add(-1): true, ends: false} {
			end, inside := w.Until(at)
			if inside != want || inside && !end.Equal(ends) {
				t.Errorf("%s: at %v inside %v, until %v", c.name, at, inside, end.UTC())
			}
		}
	}
}

func TestAWindowThatTheClockSkipsDoesNotOpen(t *testing.T) {
	w := Window{From: 2*60 + 15, To: 2*60 + 45, Zone: zone(t, "Europe/Berlin")}
	for at := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC); at.Day() == 29; at = at.Add(time.Minute) {
		if _, inside := w.Until(at); inside {
			t.Fatalf("inside at %v", at)
		}
	}
	saturday := Window{From: 0, To: minutesADay, Days: []time.Weekday{time.Saturday}}
	if _, inside := saturday.Until(time.Date(2026, 6, 7, 0, 0, 0, 0, time.UTC)); inside {
		t.Error("Saturday lasts into Sunday")
	}
}

// byTheWall is the plain reading of a window: what does the clock show, and on what day?
func byTheWall(w Window, now time.Time) bool {
	local := now.In(w.Zone)
	minute := local.Hour()*60 + local.Minute()
	on := func(day time.Weekday) bool { return len(w.Days) == 0 || slices.Contains(w.Days, day) }
	if w.From < w.To {
		return on(local.Weekday()) && minute >= w.From && minute < w.To
	}
	return on(local.Weekday()) && minute >= w.From || on((local.Weekday()+6)%7) && minute < w.To
}

func TestAWindowAgreesWithLocalTimeExceptInRepeatedHours(t *testing.T) {
	var zones []*time.Location
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo", "Asia/Beirut", "America/Santiago",
		"Africa/Casablanca", "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Pago_Pago",
	} {
		zones = append(zones, zone(t, name))
	}
	rapid.Check(t, func(t *rapid.T) {
		w := Window{
			From: rapid.IntRange(0, minutesADay-1).Draw(t, "from"), To: rapid.IntRange(0, minutesADay).Draw(t, "to"), Zone: rapid.SampledFrom(zones).Draw(t, "zone"),
			Days: rapid.SliceOfN(rapid.SampledFrom([]time.Weekday{0, 1, 2, 3, 4, 5, 6}), 0, 4).Draw(t, "days"),
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 366*24*3600).Draw(t, "second")) * time.Second)
		if _, _, changes := changed(now, w.Zone); rapid.Bool().Draw(t, "near a change") && !changes.IsZero() {
			now = changes.Add(time.Duration(rapid.IntRange(-4*3600, 4*3600).Draw(t, "by")) * time.Second)
		}
		end, inside := w.Until(now)
		if wall := byTheWall(w, now); wall && !inside {
			t.Fatalf("%+v: the clock shows %v, and it is outside", w, now.In(w.Zone))
		} else if before, after, _ := changed(now.Add(-3*time.Hour), w.Zone); inside && !wall && before == after {
			t.Fatalf("%+v: the clock shows %v, and it is inside", w, now.In(w.Zone))
		}
		if inside && (!end.After(now) || end.Sub(now) > 25*time.Hour) {
			t.Fatalf("%+v: at %v it lasts until %v", w, now.In(w.Zone), end)
		}
	})
}

// changed is by how much the clock differs from UTC now and six hours later, and when it is next put forward or back.
func changed(now time.Time, zone *time.Location) (before, after int, at time.Time) {
	_, before = now.In(zone).Zone()
	_, after = now.Add(6 * time.Hour).In(zone).Zone()
	_, at = now.In(zone).ZoneBounds()
	return before, after, at
}

func TestAnInvalidWindowIsRefusedAndHarmless(t *testing.T) {
	bad := Window{From: -5, To: 99999, Days: []time.Weekday{9}}
	if err := bad.Check(); err == nil || strings.Count(err.Error(), "a window") != 3 {
		t.Error(err)
	}
	bad.Until(time.Date(2026, 6, 7, 0, 0, 0, 0, time.UTC))
	if err := (Window{From: 540, To: 1020}).Check(); err != nil {
		t.Error(err)
	}
	if end, inside := (Window{From: 540, To: 1020}).Until(time.Date(2026, 6, 7, 12, 0, 0, 0, time.UTC)); !inside || end.Hour() != 17 {
		t.Error("without a zone it is UTC")
	}
}
