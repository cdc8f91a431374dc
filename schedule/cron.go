package schedule

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // all processes use the same zones, also on machines without zone data

	"github.com/netresearch/go-cron"
)

// searchYears is how far ahead next searches for a slot: the 29th of February falls on a given weekday again after forty years at most.
const searchYears = 40

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom).
	WithMaxSearchYears(searchYears)

// A plan is a parsed expression.
type plan struct {
	spec   *cron.SpecSchedule // in local time: its location is UTC, which stands for the zone
	zone   *time.Location
	hourly bool // it names every hour
}

// unfold moves a zone or an interval from the expression into Zone or Every.
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

// plan parses the expression and the zone.
func (s *Schedule) plan() (plan, error) {
	zone, err := location(s.Zone)
	if err != nil {
		return plan{}, err
	}
	if strings.ContainsRune(s.Cron, '=') { // the parser would read a zone from it
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

// zones caches loaded zones: loading one takes longer than the rest of the computation.
var zones sync.Map

func location(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") { // "local" can be a different zone in each process
		return nil, refuse("zone %.60q is not known: use a name like Europe/Berlin", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// next returns the first slot after a time, or zero if there is none.
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

// nextPassed follows elapsed time. While the zone's offset does not change, local time advances like elapsed time.
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

// shows reports whether the expression matches a local time.
func (p *plan) shows(reading time.Time) bool {
	return p.spec.Next(reading.Add(-time.Nanosecond)).Equal(reading)
}

// wall returns the local time of a zone, written as if it were UTC.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return time.Date(year, month, day, hour, minute, second, t.Nanosecond(), time.UTC)
}

// first returns the first point in time with a given local time; if the clock skips it, the first moment after the gap. The result
// never decreases when the local time increases.
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
