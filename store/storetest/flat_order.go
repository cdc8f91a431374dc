package storetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// lineBase is how many jobs each queue has at the beginning, so that index trees have two levels.
const lineBase = 2000

// lineFactor is how much more a step may cost with all jobs: index trees have one more level then. A statement that reads a whole line, or all lines, costs several
// times as much.
const lineFactor = 1.5

// lineSteps is how many jobs a measured step enqueues, or runs one after the other.
const lineSteps = 50

// Lines checks that order keys cost claims nothing: it adds so many lines of one job each, and as many jobs in one line, and compares claims with those of jobs
// without order keys, and the work in the line, the enqueue into it and the sweep of lines with those in a short line.
func Lines(t *testing.T, m *BlockMeter, jobs int) {
	f := &flat{TB: t, BlockMeter: m, jobs: map[string][]holdfast.ID{}, held: map[string][]store.Lease{}}
	m.Run(func(s store.Store) {
		f.store = s
		f.put("plain", lineBase)
		f.putLines(lineBase)
		f.put("short", lineBase, inOneLine("short"))
	})
	m.Analyze()
	base := f.lineCosts("plain", "short")
	m.Run(func(s store.Store) {
		f.store = s
		for range jobs / lineBase {
			f.putLines(lineBase)
			f.put("long", lineBase, inOneLine("long"))
		}
	})
	for _, statistics := range []string{"from before", "collected"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			f.compareLines(t, "beside lines", f.lineCosts("plain", "short"), base)
			f.compareLines(t, "in lines", f.lineCosts("lines", "long"), base)
		})
		m.Analyze()
	}
}

func inOneLine(key string) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Order = key }
}

// putLines enqueues jobs of which each is alone in its line.
func (f *flat) putLines(n int) {
	f.Helper()
	f.put("lines", n, func(d *holdfast.Draft) { d.Order = fmt.Sprint("line-", d.ID) })
}

// A lineCost is how many blocks a step touches.
type lineCost struct {
	name   string
	blocks int
}

// lineCosts measures claims from one queue, and work in a queue whose jobs are in one line. The cheapest of three rounds counts.
func (f *flat) lineCosts(queue, line string) []lineCost {
	f.Helper()
	ctx := context.Background()
	costs := []lineCost{}
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"claim", func() { f.take(queue, 5, store.Claim{}) }},
		{"run one after the other", func() {
			for range lineSteps {
				leases := f.claim(line, 5, store.Claim{})
				if len(leases) != 1 {
					f.Fatalf("%d jobs of one line were claimed at the same time", len(leases))
				}
				f.end(completes(leases[0]))
			}
		}},
		{"enqueue", func() { f.put(line, lineSteps, inOneLine(line)) }},
		{"sweep a thousand lines", func() {
			_, err := f.store.AdvanceGroups(ctx, 1000)
			f.ok(err)
		}},
	} {
		least := math.MaxInt
		for range 3 {
			least = min(least, f.Run(func(s store.Store) { f.store = s; step.run() }))
		}
		costs = append(costs, lineCost{step.name, least})
	}
	if f.Vacuum != nil {
		f.Vacuum()
	}
	return costs
}

func (f *flat) compareLines(t *testing.T, where string, got, base []lineCost) {
	t.Helper()
	for i, one := range got {
		t.Logf("%-12s %-25s %6d blocks, %6d at the beginning", where, one.name, one.blocks, base[i].blocks)
		if most := int(lineFactor*float64(base[i].blocks)) + flatBlocks; one.blocks > most {
			t.Errorf("%s: %s touches %d blocks, and %d at the beginning, and %d are allowed: find the statement that reads more than it needs", where, one.name, one.blocks, base[i].blocks, most)
		}
	}
}
