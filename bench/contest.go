package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdfastdev/holdfast/bench/measure"
)

// A contest is one workload on one database. The first entry is judged by its ratio to the second.
type contest struct {
	name     string
	database string
	workload string
	floor    float64 // what the ratio must reach; 0 when nobody promised anything
	entries  []entry
}

// An entry is one contender, or one setting of it. The entries of a contest do the same work.
type entry struct {
	name    string
	program string
	jobs    int
	waiting int
	results []measure.Result
}

func plan(only string, quick bool) []contest {
	ours := func(jobs int) entry { return entry{name: "holdfast", program: "holdfast", jobs: jobs} }
	river := func(jobs int) entry { return entry{name: "river", program: "river", jobs: jobs} }
	riverLite := func(jobs int) entry { return entry{name: "river", program: "riversqlite", jobs: jobs} }
	million := entry{name: "1M scheduled", program: "holdfast", jobs: 50_000, waiting: 1_000_000}
	none := entry{name: "none scheduled", program: "holdfast", jobs: 50_000}
	all := []contest{
		{"postgres drain", "postgres", "drain", 4, []entry{ours(200_000), river(200_000)}},
		{"postgres enqueue x16", "postgres", "enqueue", 0, []entry{ours(20_000), river(20_000)}},
		{"postgres bulk", "postgres", "bulk", 0, []entry{ours(100_000), river(100_000)}},
		{"postgres backlog", "postgres", "drain", 0.8, []entry{million, none}},
		{"sqlite drain", "sqlite", "drain", 15, []entry{ours(50_000), riverLite(50_000)}},
		{"sqlite enqueue x16", "sqlite", "enqueue", 0, []entry{ours(10_000), riverLite(10_000)}},
		{"sqlite bulk", "sqlite", "bulk", 0, []entry{ours(50_000), riverLite(50_000)}},
		{"sqlite backlog", "sqlite", "drain", 0.8, []entry{million, none}},
	}
	chosen := slices.DeleteFunc(all, func(c contest) bool { return !strings.Contains(c.name, only) })
	for _, c := range chosen {
		for i := range c.entries {
			c.entries[i].results = nil
			if quick {
				c.entries[i].jobs /= 2
				c.entries[i].waiting /= 10
				c.entries[i].name = strings.Replace(c.entries[i].name, "1M", "100k", 1)
			}
		}
	}
	return chosen
}

// run lets the entries take turns, and changes who begins with every round.
func (c *contest) run(ctx context.Context, g *ground, rounds int) (failed int) {
	for round := range rounds {
		for i := range c.entries {
			e := &c.entries[(i+round)%len(c.entries)]
			r, err := g.run(ctx, c.database, c.workload, *e)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed++
				continue
			}
			e.results = append(e.results, r)
			fmt.Fprintf(os.Stderr, "%-22s %-15s round %d: %9.0f jobs/s\n", c.name, e.name, round+1, rate(r))
		}
	}
	return failed
}

func rate(r measure.Result) float64   { return float64(r.Jobs) / r.Seconds }
func worker(r measure.Result) float64 { return r.CPU / float64(r.Jobs) * 1e6 }
func server(r measure.Result) float64 { return r.ServerCPU / float64(r.Jobs) * 1e6 }

func (e entry) sorted(of func(measure.Result) float64) []float64 {
	list := make([]float64, len(e.results))
	for i, r := range e.results {
		list[i] = of(r)
	}
	slices.Sort(list)
	return list
}

func (e entry) median(of func(measure.Result) float64) float64 {
	list := e.sorted(of)
	if len(list) == 0 {
		return 0
	}
	return (list[len(list)/2] + list[(len(list)-1)/2]) / 2
}

// table prints medians. CPU time tells more than the rate when the machine is shared.
func table(to io.Writer, contests []contest) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nworkload\tcontender\tjobs\tjobs/s (median)\tmin - max\tCPU us/job: worker + server\tratio\tfloor")
	for _, c := range contests {
		for i, e := range c.entries {
			list := e.sorted(rate)
			if len(list) == 0 {
				fmt.Fprintf(w, "%s\t%s\t%d\tdid not work\n", c.name, e.name, e.jobs)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.0f - %.0f\t%.0f + %.0f\t%s\n", c.name, e.name, e.jobs, e.median(rate), list[0], list[len(list)-1],
				e.median(worker), e.median(server), c.judgement(i))
		}
	}
	w.Flush()
}

// judgement is the ratio of medians, and whether it reaches the floor.
func (c contest) judgement(i int) string {
	base := c.entries[1].median(rate)
	if i != 0 || base == 0 {
		return "\t"
	}
	ratio := c.entries[0].median(rate) / base
	switch {
	case c.floor == 0:
		return fmt.Sprintf("%.2fx\t-", ratio)
	case ratio >= c.floor:
		return fmt.Sprintf("%.2fx\t%gx met", ratio, c.floor)
	}
	return fmt.Sprintf("%.2fx\t%gx MISSED", ratio, c.floor)
}
