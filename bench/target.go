package main

import "fmt"

// A target is a goal for one entry: a ratio to another entry of the same contest, or a plain figure.
type target struct {
	text    string
	contest string
	mine    string
	peers   []string // the best of them counts; none for a plain figure
	of      figure
	want    float64
	unit    string // of a plain figure
	atMost  bool   // less is better
}

// A verdict is a target with its result.
type verdict struct {
	target
	value float64
	state string
}

const (
	met         = "MET"
	missed      = "MISSED"
	notMeasured = "not measured"
)

// A targetList collects targets.
type targetList struct{ list []target }

func (d *targetList) atLeast(want float64, contest, mine string, peers ...string) {
	d.list = append(d.list, target{contest: contest, mine: mine, peers: peers, of: rate, want: want})
}

// pickup adds targets for p50 and p99 of pick-up.
func (d *targetList) pickup(want float64, mine string, peers ...string) {
	goal := target{text: "pickup p50", contest: "pickup", mine: mine, peers: peers, of: p50, want: want, atMost: true}
	d.list = append(d.list, goal)
	goal.text, goal.of = "pickup p99", p99
	d.list = append(d.list, goal)
}

// far adds targets for the cost of a server. In bulk both figures count: a machine with idle cores hides CPU time, and a slow disk hides all other costs.
func (d *targetList) far(mine, near string) {
	d.atLeast(0.5, "drain", mine, near)
	d.atLeast(1/1.5, "bulk", mine, near)
	d.list = append(d.list, target{text: "bulk, CPU per job", contest: "bulk", mine: mine, peers: []string{near}, of: cpu, want: 1.5, atMost: true})
}

func (d *targetList) plain(text string, of figure, mine string, want float64, unit string) {
	d.list = append(d.list, target{text: text, contest: "drain", mine: mine, of: of, want: want, unit: unit, atMost: true})
}

const (
	pg   = "holdfast postgres"
	lite = "holdfast sqlite"
)

// targets returns all targets.
func targets(quick bool) []target {
	d := &targetList{}
	d.atLeast(6, "drain", pg, "river")
	d.atLeast(4.5, "drain", pg, "river 2000")
	d.atLeast(30, "drain", lite, "river sqlite")
	d.atLeast(4, "drain", pg, "asynq everysec")
	d.atLeast(6, "drain", lite, "asynq everysec")
	d.atLeast(3, "bulk", pg, "river")
	d.atLeast(5, "bulk", lite, "river sqlite")
	d.atLeast(2.5, "bulk", pg, "asynq everysec")
	d.atLeast(2.5, "bulk", lite, "asynq everysec")
	d.atLeast(7, "enqueue16", pg, "river")
	d.atLeast(25, "enqueue16", lite, "river sqlite")
	d.atLeast(0.8, "enqueue16", pg, "asynq everysec")
	d.atLeast(1.2, "enqueue16", lite, "asynq everysec")
	d.atLeast(2.5, "enqueue1", pg, "river")
	d.atLeast(5, "enqueue1", lite, "river sqlite")
	d.atLeast(7, "failure", pg, "river")
	d.atLeast(18, "failure", lite, "river sqlite")
	d.atLeast(6, "failure", pg, "asynq everysec")
	d.atLeast(5, "failure", lite, "asynq everysec")
	d.pickup(0.6, pg, "river", "river same")
	d.pickup(0.05, pg, "river defaults")
	d.pickup(0.2, lite, "river sqlite", "river sqlite same")
	d.pickup(0.3, pg, "asynq everysec")
	d.pickup(0.3, lite, "asynq everysec")
	d.list = append(d.list, target{text: "pickup p50", contest: "pickup", mine: lite, peers: []string{"backlite"}, of: p50, want: 1, atMost: true})
	d.plain("CPU per job", cpu, pg, 45, "us")
	d.plain("CPU per job", cpu, lite, 30, "us")
	d.plain("WAL per job", wal, pg, 700, "bytes")
	d.plain("memory above idle while draining", memory, pg, 64, "MB")
	d.plain("memory above idle while draining", memory, lite, 64, "MB")
	for _, name := range flatNames(quick) {
		d.atLeast(0.85, "flat", pg+" "+name, pg)
		d.atLeast(0.85, "flat", lite+" "+name, lite)
	}
	d.atLeast(0.75, "fair", pg+" 5000 owners", pg)
	d.atLeast(0.75, "fair", lite+" 5000 owners", lite)
	d.atLeast(0.8, "events", pg+" told", pg)
	d.atLeast(0.8, "events", lite+" told", lite)
	for _, name := range []string{pg, lite} {
		d.far(name+" far", name)
	}
	d.atLeast(0.8, "snapshot", pg+" snapshot", pg)
	// "No slower", with a tolerance of 5 %.
	d.atLeast(0.95, "processes", pg+" 4", pg)
	d.atLeast(0.95, "processes", lite+" 4", lite)
	return d.list
}

// judge compares medians. A target whose entries were not measured is neither met nor missed.
func judge(contests []*contest, list []target) (verdicts []verdict) {
	for _, t := range list {
		value, ok := t.value(contests)
		v := verdict{target: t, value: value, state: missed}
		switch {
		case !ok:
			v.state = notMeasured
		case t.atMost && value <= t.want, !t.atMost && value >= t.want:
			v.state = met
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func (t target) value(contests []*contest) (float64, bool) {
	mine := find(contests, t.contest, t.mine)
	if mine == nil || len(mine.results) == 0 {
		return 0, false
	}
	if len(t.peers) == 0 {
		return mine.median(t.of), true
	}
	best := 0.0
	for _, name := range t.peers {
		peer := find(contests, t.contest, name)
		if peer == nil || len(peer.results) == 0 {
			return 0, false
		}
		if figure := peer.median(t.of); best == 0 || t.better(figure, best) {
			best = figure
		}
	}
	if best == 0 {
		return 0, false
	}
	return mine.median(t.of) / best, true
}

func (t target) better(a, b float64) bool { return (a < b) == t.atMost }

// what returns the name of the target.
func (t target) what() string {
	if t.text != "" {
		return t.text
	}
	return t.contest
}

// against returns the names of the entries that it is compared with.
func (t target) against() string {
	switch len(t.peers) {
	case 0:
		return "-"
	case 1:
		return t.peers[0]
	}
	return fmt.Sprintf("the better of %s and %s", t.peers[0], t.peers[1])
}

// wanted and reached return the values for people.
func (t target) wanted() string {
	sign := "at least "
	if t.atMost {
		sign = "at most "
	}
	return sign + t.amount(t.want)
}

func (v verdict) reached() string {
	if v.state == notMeasured {
		return "-"
	}
	return v.amount(v.value)
}

func (t target) amount(value float64) string {
	switch {
	case len(t.peers) == 0:
		return fmt.Sprintf("%.0f %s", value, t.unit)
	case value < 0.1:
		return fmt.Sprintf("%.3fx", value)
	case value < 10:
		return fmt.Sprintf("%.2fx", value)
	}
	return fmt.Sprintf("%.1fx", value)
}
