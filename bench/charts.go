package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// displayNames maps entries to their names in charts. Other entries keep their own name.
var displayNames = map[string]string{
	"holdfast postgres":          "Holdfast",
	"holdfast postgres same":     "Holdfast, one process",
	"holdfast postgres far":      "Holdfast over HTTP",
	"holdfast sqlite":            "Holdfast",
	"holdfast sqlite far":        "Holdfast over HTTP",
	"holdfast sqlite apart":      "Holdfast, two processes",
	"holdfast postgres same far": "Holdfast over HTTP, one process",
	"river":                      "River",
	"river 2000":                 "River, 2000 workers",
	"river same":                 "River, one process",
	"river defaults":             "River, its defaults",
	"river sqlite":               "River",
	"river sqlite same":          "River, one process",
	"asynq everysec":             "Asynq, fsync every second",
	"asynq always":               "Asynq, fsync always",
	"graphile-worker":            "Graphile Worker",
}

var databases = []struct {
	name string
	is   func(database string) bool
}{
	{"PostgreSQL", func(d string) bool { return d == onPostgres }},
	{"SQLite", func(d string) bool { return d == onSQLite }},
	{"Redis", func(d string) bool { return strings.HasPrefix(d, "redis") }},
}

// charts returns the charts of a benchmark, by file name.
func charts(contests []*contest, where string) map[string]chart {
	return map[string]chart{
		"drain.svg":   {title: "Draining no-op jobs", note: "jobs per second, median; the line shows the slowest and the fastest run; " + where, groups: byDatabase(contests, "drain", rateBar, true)},
		"bulk.svg":    {title: "Enqueueing in bulk", note: "jobs per second, median; the line shows the slowest and the fastest run; " + where, groups: byDatabase(contests, "bulk", rateBar, true)},
		"failure.svg": {title: "Every job fails once, then succeeds", note: "jobs per second, median; the line shows the slowest and the fastest run; " + where, groups: byDatabase(contests, "failure", rateBar, true)},
		"enqueue.svg": {title: "Enqueueing one by one", note: "jobs per second, median; " + where, groups: enqueues(contests)},
		"flat.svg":    {title: "Draining a store with other jobs in it", note: "jobs per second, median; the line shows the slowest and the fastest run; " + where, groups: flats(contests)},
		"pickup.svg": {title: "From enqueue to the start of the handler", note: "milliseconds on an idle worker, less is better; " + where, legend: []string{"p50", "p99"},
			groups: byDatabase(contests, "pickup", pickupBar, false)},
		"cpu.svg": {title: "CPU time per job", note: "microseconds per drained job, less is better; " + where, legend: []string{"worker", "database"},
			groups: byDatabase(contests, "drain", cpuBar, false)},
	}
}

// rateBar, cpuBar and pickupBar draw one entry.
func rateBar(e *entry) bar {
	list := e.sorted(rate)
	return bar{text: thousands(e.median(rate)), parts: []float64{e.median(rate)}, low: list[0], high: list[len(list)-1]}
}

func cpuBar(e *entry) bar {
	w, s := e.median(worker), e.median(server)
	if e.database == onSQLite {
		return bar{text: fmt.Sprintf("%.0f", w), parts: []float64{w}}
	}
	return bar{text: fmt.Sprintf("%.0f + %.0f", w, s), parts: []float64{w, s}}
}

func pickupBar(e *entry) bar {
	a, b := e.median(p50), e.median(p99)
	return bar{text: fmt.Sprintf("%s / %s", short(a), short(b)), parts: []float64{a, b - a}, cut: e.name == "river defaults" || e.name == "pg-boss"}
}

func short(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

func thousands(n float64) string {
	switch {
	case n >= 99_950:
		return fmt.Sprintf("%.0fk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", n/1000)
	}
	return fmt.Sprintf("%.0f", n)
}

func displayName(e *entry) string {
	if name := displayNames[e.name]; name != "" {
		return name
	}
	return e.name
}

// measured returns the entries of a contest that have results.
func measured(contests []*contest, name string) (list []*entry) {
	for _, c := range contests {
		for _, e := range c.entries {
			if c.name == name && len(e.results) > 0 {
				list = append(list, e)
			}
		}
	}
	return list
}

// byDatabase groups the entries of a contest: Holdfast first, then the others, the best first.
func byDatabase(contests []*contest, name string, draw func(*entry) bar, moreIsBetter bool) (groups []group) {
	for _, d := range databases {
		g := group{name: d.name}
		for _, e := range measured(contests, name) {
			if d.is(e.database) {
				b := draw(e)
				b.label, b.ours = displayName(e), e.program == "holdfast"
				g.bars = append(g.bars, b)
			}
		}
		if len(g.bars) > 0 {
			order(g.bars, moreIsBetter)
			groups = append(groups, g)
		}
	}
	return groups
}

// order sorts Holdfast first, then the others, the best first.
func order(bars []bar, moreIsBetter bool) {
	slices.SortStableFunc(bars, func(a, b bar) int {
		if a.ours != b.ours {
			if a.ours {
				return -1
			}
			return 1
		}
		if moreIsBetter {
			return cmp.Compare(b.sum(), a.sum())
		}
		return cmp.Compare(a.sum(), b.sum())
	})
}

// enqueues shows all databases together, because the time until the call returns is comparable.
func enqueues(contests []*contest) (groups []group) {
	for name, contest := range map[string]string{"1 goroutine": "enqueue1", "16 goroutines": "enqueue16"} {
		g := group{name: name}
		for _, e := range measured(contests, contest) {
			b := rateBar(e)
			b.label, b.ours = displayName(e), e.program == "holdfast"
			if e.program == "holdfast" || strings.HasPrefix(e.program, "river") {
				b.label += map[string]string{onPostgres: ", PostgreSQL", onSQLite: ", SQLite"}[e.database]
			}
			g.bars = append(g.bars, b)
		}
		if len(g.bars) > 0 {
			order(g.bars, true)
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(len(a.name), len(b.name)) })
	return groups
}

// flats shows the effect of a full store, and of a snapshot that is held open.
func flats(contests []*contest) (groups []group) {
	add := func(title string, list []*entry, label func(*entry) string) {
		g := group{name: title}
		for _, e := range list {
			b := rateBar(e)
			b.label, b.ours = label(e), e.program == "holdfast"
			g.bars = append(g.bars, b)
		}
		if len(g.bars) > 0 {
			groups = append(groups, g)
		}
	}
	on := func(database string) (list []*entry) {
		for _, e := range measured(contests, "flat") {
			if e.database == database {
				list = append(list, e)
			}
		}
		return list
	}
	beside := func(e *entry) string {
		if e.filled == "" {
			return "nothing else"
		}
		return e.filled + " jobs"
	}
	add("Holdfast on PostgreSQL", on(onPostgres), beside)
	add("Holdfast on SQLite", on(onSQLite), beside)
	add("A snapshot that is held open, PostgreSQL", measured(contests, "snapshot"), func(e *entry) string {
		name := "Holdfast"
		if e.program != "holdfast" {
			name = "River"
		}
		if e.base == "" {
			return name + ", none"
		}
		return name + ", held"
	})
	return groups
}
