package main

import (
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/bench/measure"
)

// A contest is a workload whose entries are compared with each other and take turns.
type contest struct {
	name    string
	entries []*entry
}

// An entry is one contender on one database, with one setting.
type entry struct {
	name     string
	program  string
	database string
	workload string
	jobs     int
	flags    []string
	filled   string // the filled store that it runs on; empty: a new, empty store
	base     string // the entry that it is compared with
	minor    bool   // it has no target, so it runs fewer rounds
	results  []measure.Result
	others   []float64 // cores that other programs used, run by run
	repeated int       // runs that were discarded because other programs were busy
	failures []string
}

// The databases. Redis counts once for each of its fsync settings.
const (
	onPostgres = "postgres"
	onSQLite   = "sqlite"
	onEverysec = "redis everysec"
	onAlways   = "redis always"
)

// fillings are the filled stores that every round uses, with the flags that fill them.
var fillings = map[string][]string{
	"1M future":     {"-scheduled", "1000000"},
	"5M future":     {"-scheduled", "5000000"},
	"1M held":       {"-held", "1000000"},
	"1M broken":     {"-broken", "1000000"},
	"1M retained":   {"-retained", "1000000"},
	"200k future":   {"-scheduled", "200000"},
	"200k held":     {"-held", "200000"},
	"200k broken":   {"-broken", "200000"},
	"200k retained": {"-retained", "200000"},
}

// A planner creates entries. The numbers of jobs are chosen so that a run takes a few seconds; rates are compared.
type planner struct{ quick bool }

func (b planner) jobs(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

func (b planner) entry(name string, full, quick int, flags ...string) *entry {
	e := &entry{name: name, jobs: b.jobs(full, quick), flags: flags}
	word, _, _ := strings.Cut(name, " ")
	e.program, e.database = word, onPostgres
	switch {
	case word == "asynq" && strings.Contains(name, "always"):
		e.database = onAlways
	case word == "asynq":
		e.database = onEverysec
	case word == "goqite" || word == "backlite" || strings.Contains(name, "sqlite"):
		e.database = onSQLite
	}
	if strings.HasPrefix(name, "river sqlite") {
		e.program = "riversqlite"
	}
	return e
}

// far returns an entry that goes through a server and is compared with the same entry without one.
func (b planner) far(base string, full, quick int, flags ...string) *entry {
	e := b.entry(base+" far", full, quick, slices.Concat(flags, []string{"-far"})...)
	e.base = base
	return e
}

// minor returns an entry without a target.
func (b planner) minor(name string, full, quick int, flags ...string) *entry {
	e := b.entry(name, full, quick, flags...)
	e.minor = true
	return e
}

// plan returns everything that is measured.
func plan(quick bool) []*contest {
	b := planner{quick}
	all := []*contest{b.drain(), b.bulk(), b.enqueue1(), b.enqueue16(), b.failure(), b.pickup(), b.processes(), b.flat(), b.fair(), b.events(), b.snapshot()}
	workload := map[string]string{"enqueue1": "enqueue", "enqueue16": "enqueue", "processes": "drain", "flat": "drain", "fair": "drain", "events": "drain", "snapshot": "drain"}
	for _, c := range all {
		for _, e := range c.entries {
			e.workload = c.name
			if w := workload[c.name]; w != "" {
				e.workload = w
			}
		}
	}
	return all
}

func (b planner) drain() *contest {
	return &contest{"drain", []*entry{
		b.entry("holdfast postgres", 200_000, 100_000),
		b.far("holdfast postgres", 200_000, 100_000),
		b.entry("river", 100_000, 40_000),
		b.entry("river 2000", 100_000, 40_000, "-slots", "2000"),
		b.entry("holdfast sqlite", 200_000, 100_000),
		b.far("holdfast sqlite", 200_000, 100_000),
		b.entry("river sqlite", 20_000, 8_000),
		b.entry("asynq everysec", 50_000, 20_000),
		b.minor("asynq always", 20_000, 10_000),
		b.minor("goqite", 4_000, 1_500),
		b.minor("backlite", 3_000, 1_500),
		b.minor("graphile-worker", 50_000, 20_000),
		b.minor("pg-boss", 20_000, 10_000),
	}}
}

func (b planner) bulk() *contest {
	return &contest{"bulk", []*entry{
		b.entry("holdfast postgres", 200_000, 100_000),
		b.far("holdfast postgres", 200_000, 100_000),
		b.entry("river", 200_000, 100_000),
		b.entry("holdfast sqlite", 200_000, 100_000),
		b.far("holdfast sqlite", 200_000, 100_000),
		b.entry("river sqlite", 50_000, 20_000),
		b.entry("asynq everysec", 50_000, 40_000),
		b.minor("asynq always", 30_000, 10_000),
		b.minor("goqite", 20_000, 10_000),
		b.minor("backlite", 50_000, 20_000),
		b.minor("graphile-worker", 50_000, 20_000),
		b.minor("pg-boss", 50_000, 20_000),
	}}
}

func (b planner) enqueue1() *contest {
	one := []string{"-goroutines", "1"}
	return &contest{"enqueue1", []*entry{
		b.entry("holdfast postgres", 10_000, 5_000, one...),
		b.far("holdfast postgres", 10_000, 5_000, one...),
		b.entry("river", 4_000, 2_000, one...),
		b.entry("holdfast sqlite", 15_000, 8_000, one...),
		b.far("holdfast sqlite", 15_000, 8_000, one...),
		b.entry("river sqlite", 3_000, 1_500, one...),
		b.minor("asynq everysec", 20_000, 10_000, one...),
		b.minor("asynq always", 5_000, 2_000, one...),
		b.minor("goqite", 5_000, 2_000, one...),
		b.minor("backlite", 10_000, 4_000, one...),
		b.minor("graphile-worker", 2_000, 1_000, one...),
		b.minor("pg-boss", 1_000, 500, one...),
	}}
}

func (b planner) enqueue16() *contest {
	return &contest{"enqueue16", []*entry{
		b.entry("holdfast postgres", 50_000, 25_000),
		b.far("holdfast postgres", 50_000, 25_000),
		b.entry("river", 10_000, 5_000),
		b.entry("holdfast sqlite", 50_000, 25_000),
		b.far("holdfast sqlite", 50_000, 25_000),
		b.entry("river sqlite", 3_000, 1_500),
		b.entry("asynq everysec", 50_000, 25_000),
		b.minor("asynq always", 20_000, 10_000),
		b.minor("goqite", 5_000, 2_000),
		b.minor("backlite", 10_000, 4_000),
		b.minor("graphile-worker", 3_000, 1_500),
		b.minor("pg-boss", 3_000, 1_500),
	}}
}

func (b planner) failure() *contest {
	return &contest{"failure", []*entry{
		b.entry("holdfast postgres", 60_000, 30_000),
		b.entry("river", 20_000, 8_000),
		b.entry("holdfast sqlite", 60_000, 30_000),
		b.entry("river sqlite", 6_000, 3_000),
		b.entry("asynq everysec", 15_000, 6_000),
		b.minor("asynq always", 8_000, 4_000),
		b.minor("goqite", 1_000, 400),
		b.minor("backlite", 1_500, 600),
		b.minor("graphile-worker", 15_000, 6_000),
		b.minor("pg-boss", 8_000, 4_000),
	}}
}

// pickup measures contenders on SQLite with both ends in one process, which is how SQLite is normally used. River is measured both ways, and the better figure counts.
func (b planner) pickup() *contest {
	return &contest{"pickup", []*entry{
		b.entry("holdfast postgres", 200, 100),
		b.entry("river", 200, 100),
		b.entry("river same", 200, 100, "-same"),
		b.entry("river defaults", 50, 20, "-defaults"),
		b.entry("holdfast sqlite", 200, 100, "-same"),
		b.entry("river sqlite", 200, 100),
		b.entry("river sqlite same", 200, 100, "-same"),
		b.entry("backlite", 200, 100, "-same"),
		b.entry("asynq everysec", 200, 100),
		b.minor("holdfast postgres same", 200, 100, "-same"),
		b.far("holdfast postgres same", 200, 100, "-same"),
		b.far("holdfast sqlite", 200, 100, "-same"),
		b.minor("holdfast sqlite apart", 200, 100),
		b.minor("goqite", 200, 100, "-same"),
		b.minor("graphile-worker", 200, 100),
		b.minor("pg-boss", 20, 10),
	}}
}

func (b planner) processes() *contest {
	list := []*entry{
		b.entry("holdfast postgres", 100_000, 50_000),
		b.entry("holdfast postgres 4", 100_000, 50_000, "-processes", "4"),
		b.entry("holdfast sqlite", 100_000, 50_000),
		b.entry("holdfast sqlite 4", 100_000, 50_000, "-processes", "4"),
	}
	list[1].base, list[3].base = list[0].name, list[2].name
	return &contest{"processes", list}
}

// flatNames returns the fillings of flat. A quick run has smaller ones.
func flatNames(quick bool) []string {
	if quick {
		return []string{"200k future", "200k held", "200k broken", "200k retained"}
	}
	return []string{"1M future", "5M future", "1M held", "1M broken", "1M retained"}
}

// flat compares an otherwise empty store with stores that contain many other jobs.
func (b planner) flat() *contest {
	c := &contest{name: "flat"}
	for _, base := range []string{"holdfast postgres", "holdfast sqlite"} {
		c.entries = append(c.entries, b.entry(base, 300_000, 50_000)) // its targets are close to 1, so its runs are long
		for _, name := range flatNames(b.quick) {
			e := b.entry(base+" "+name, 300_000, 50_000)
			e.filled, e.base = name, base
			c.entries = append(c.entries, e)
		}
	}
	return c
}

// fair compares one owner with five thousand owners.
func (b planner) fair() *contest {
	c := &contest{name: "fair"}
	for _, base := range []string{"holdfast postgres", "holdfast sqlite"} {
		many := b.entry(base+" 5000 owners", 100_000, 50_000, "-owners", "5000")
		many.base = base
		c.entries = append(c.entries, b.entry(base, 100_000, 50_000, "-owners", "1"), many)
	}
	return c
}

// events compares a feed without listeners with one that contains every transition of every job.
func (b planner) events() *contest {
	c := &contest{name: "events"}
	for _, base := range []string{"holdfast postgres", "holdfast sqlite"} {
		withEvents := b.entry(base+" told", 200_000, 100_000, "-told")
		withEvents.base = base
		c.entries = append(c.entries, b.entry(base, 200_000, 100_000), withEvents)
	}
	return c
}

func (b planner) snapshot() *contest {
	list := []*entry{
		b.entry("holdfast postgres", 200_000, 100_000),
		b.entry("holdfast postgres snapshot", 200_000, 100_000, "-snapshot"),
		b.minor("river", 30_000, 15_000),
		b.minor("river snapshot", 30_000, 15_000, "-snapshot"),
	}
	list[1].base, list[3].base = list[0].name, list[2].name
	return &contest{"snapshot", list}
}

// choose keeps the entries that match every word, and the entries that they are compared with. A word that is the name of a contest selects that contest; any other word
// may be part of any name.
func choose(all []*contest, words []string) (chosen []*contest) {
	named := func(word string) bool {
		return slices.ContainsFunc(all, func(c *contest) bool { return c.name == word })
	}
	matches := func(c *contest, e *entry) bool {
		return !slices.ContainsFunc(words, func(word string) bool {
			if named(word) {
				return c.name != word
			}
			return !strings.Contains(c.name+" "+e.name+" "+e.database, word)
		})
	}
	for _, c := range all {
		keep := map[string]bool{}
		for _, e := range c.entries {
			if matches(c, e) {
				keep[e.name], keep[e.base] = true, true
			}
		}
		list := slices.DeleteFunc(slices.Clone(c.entries), func(e *entry) bool { return !keep[e.name] })
		if len(list) > 0 {
			chosen = append(chosen, &contest{c.name, list})
		}
	}
	return chosen
}
