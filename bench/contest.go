package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/holdfastdev/holdfast/bench/measure"
)

// run runs the entries in turns. Each round begins with another entry.
func (c *contest) run(ctx context.Context, g *environment, rounds int) {
	if err := g.fill(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if c.name == "flat" {
		rounds += 2 // its targets are close to 1, so it needs more rounds than a contest whose ratios are large
	}
	for round := range rounds {
		for i := range c.entries {
			e := c.entries[(i+round)%len(c.entries)]
			if g.builds.commands[e.program] == nil || e.minor && round >= max(1, rounds/2) {
				continue
			}
			if ctx.Err() != nil {
				return
			}
			e.once(ctx, g, c.name, round+1)
		}
	}
}

// once measures an entry in one round. A run during which other programs were busy says nothing about the entry, so it is discarded and repeated, for every
// contender alike; the last of maxTries counts in any case.
func (e *entry) once(ctx context.Context, g *environment, contest string, round int) {
	r, others, err := g.run(ctx, e)
	for try := 1; try < maxTries && others > maxOtherCores && ctx.Err() == nil; try++ {
		fmt.Fprintf(os.Stderr, "%-10s %-28s round %d is repeated: other programs used %.1f cores\n", contest, e.name, round, others)
		e.repeated++
		awaitQuiet(ctx)
		r, others, err = g.run(ctx, e)
	}
	if err == nil {
		e.others = append(e.others, others)
	}
	if err != nil {
		e.failures = append(e.failures, err.Error())
		fmt.Fprintf(os.Stderr, "%-10s %-28s round %d did not work: %v\n", contest, e.name, round, err)
		return
	}
	e.results = append(e.results, r)
	if e.workload == "pickup" {
		fmt.Fprintf(os.Stderr, "%-10s %-28s round %d: p50 %.2f ms, p99 %.2f ms\n", contest, e.name, round, r.P50, r.P99)
		return
	}
	fmt.Fprintf(os.Stderr, "%-10s %-28s round %d: %8.0f jobs/s, %4.0f + %.0f us/job\n", contest, e.name, round, rate(r), worker(r), server(r))
}

// maxTries is how often a round is measured until other programs leave the machine alone.
const maxTries = 4

// A figure computes one number of a run.
type figure func(measure.Result) float64

func rate(r measure.Result) float64   { return float64(r.Jobs) / r.Seconds }
func worker(r measure.Result) float64 { return r.CPU / float64(r.Jobs) * 1e6 }
func server(r measure.Result) float64 { return r.ServerCPU / float64(r.Jobs) * 1e6 }
func cpu(r measure.Result) float64    { return worker(r) + server(r) }
func wal(r measure.Result) float64    { return float64(r.WAL) / float64(r.Jobs) }
func memory(r measure.Result) float64 { return r.Peak - r.Idle }
func p50(r measure.Result) float64    { return r.P50 }
func p95(r measure.Result) float64    { return r.P95 }
func p99(r measure.Result) float64    { return r.P99 }

func (e *entry) sorted(of figure) []float64 {
	list := make([]float64, len(e.results))
	for i, r := range e.results {
		list[i] = of(r)
	}
	slices.Sort(list)
	return list
}

// median returns 0 if nothing was measured.
func (e *entry) median(of figure) float64 { return median(e.sorted(of)) }

func median(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// find returns the entry with a name, or nil.
func find(contests []*contest, name, entry string) *entry {
	for _, c := range contests {
		if c.name != name {
			continue
		}
		for _, e := range c.entries {
			if e.name == entry {
				return e
			}
		}
	}
	return nil
}
