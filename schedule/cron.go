package schedule

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // every process knows the same zones, also where the machine knows none

	"github.com/netresearch/go-cron"
)

// searchYears is how far ahead a slot is looked for: the 29th of February falls on a given weekday again after forty years at most.
const searchYears = 40

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom).
	WithMaxSearchYears(searchYears)

// A plan is an expression that was understood.
type plan struct {
	spec   *cron.SpecSchedule // on the wall: its location is UTC, and stands for any zone
	zone   *time.Location
	hourly bool // it names every hour
}

// unfold moves a zone and an interval that are written into the expression to where they belong.
func (s *Schedule) unfold() error {
	s.Cron = strings.TrimSpace(s.Cron)
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		rest, ok := strings.CutPrefix(s.Cron, prefix)
		if !ok {
			continue
		}
		zone, expression, _ := strings.Cut(rest, " ")
		if zone == "" || s.Zone != "" && s.Zone != zone {
			return refuse("cron %.80q names zone %.40q and the schedule %.40q: say the zone once", s.Cron, zone, s.Zone)
		}
		s.Zone, s.Cron = zone, strings.TrimSpace(expression)
		if s.Cron == "" {
			return refuse("a zone, %.40q, and nothing after it: write the fields of the cron expression", zone)
		}
		break
	}
	interval, ok := strings.CutPrefix(s.Cron, "@every ")
	if !ok || s.Every != 0 {
		return nil
	}
	every, err := time.ParseDuration(strings.TrimSpace(interval))
	if err != nil || every == 0 {
		return refuse("cron %.80q: write the interval like 90s, 5m or 1h30m", s.Cron)
	}
	s.Cron, s.Every = "", every
	return nil
}

// plan understands the expression and the zone.
func (s *Schedule) plan() (plan, error) {
	zone, err := location(s.Zone)
	if err != nil {
		return plan{}, err
	}
	if strings.ContainsRune(s.Cron, '=') { // the parser would take a zone of its own from it
		return plan{}, refuse("cron %.80q: say the zone beside the expression", s.Cron)
	}
	parsed, err := parser.Parse(s.Cron)
	if err != nil {
		return plan{}, refuse("cron %.80q makes no sense: %v; write minute, hour, day, month and weekday, like 0 9 * * 1-5", s.Cron, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return plan{}, refuse("cron %.80q is an interval: give it as one", s.Cron)
	}
	spec.Location = time.UTC
	const allHours = 1<<24 - 1
	return plan{spec: spec, zone: zone, hourly: spec.Hour&allHours == allHours}, nil
}

// zones remembers those that were looked up: reading one takes longer than everything else together.
var zones sync.Map

func location(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") { // local is another place for every process
		return nil, refuse("zone %.60q is not known: use a name like Europe/Berlin", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// next is the first slot after an instant; zero when there is none.
func (p *plan) next(after time.Time) time.Time {
	if p.hourly {
		return p.nextPassed(after)
	}
	shown := wall(after.In(p.zone))
	for {
		shown = p.spec.Next(shown)
		if shown.IsZero() {
			return shown
		}
		if slot := first(shown, p.zone); slot.After(after) {
			return slot
		}
	}
}

// nextPassed goes by time passed: within a stretch of one offset the wall is as good as any clock.
func (p *plan) nextPassed(after time.Time) time.Time {
	for {
		here := after.In(p.zone)
		_, end := here.ZoneBounds()
		shown := wall(here)
		next := p.spec.Next(shown)
		if next.IsZero() {
			return next
		}
		slot := after.Add(next.Sub(shown))
		if end.IsZero() || slot.Before(end) {
			return slot.UTC()
		}
		if p.shows(wall(end.In(p.zone))) {
			return end.UTC()
		}
		after = end
	}
}

// shows reports whether a reading of the clock is one of the expression's.
func (p *plan) shows(reading time.Time) bool {
	return p.spec.Next(reading.Add(-time.Nanosecond)).Equal(reading)
}

// wall is what the clock on the wall shows, written down as if it were UTC.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return time.Date(year, month, day, hour, minute, second, t.Nanosecond(), time.UTC)
}

// first is the instant at which a clock shows that for the first time; if it never does, the moment after the gap. A later
// reading is never an earlier instant.
func first(shown time.Time, zone *time.Location) time.Time {
	year, month, day := shown.Date()
	hour, minute, second := shown.Clock()
	t := time.Date(year, month, day, hour, minute, second, 0, zone)
	start, end := t.ZoneBounds()
	switch there := wall(t); {
	case there.After(shown):
		return start.UTC()
	case there.Before(shown):
		return end.UTC()
	}
	if !start.IsZero() {
		_, before := start.Add(-time.Second).Zone()
		if earlier := shown.Add(-time.Duration(before) * time.Second); earlier.Before(start) {
			return earlier
		}
	}
	return t.UTC()
}
