package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// table prints the medians. On a shared machine, CPU time is more reliable than the rate.
func table(to io.Writer, contests []*contest) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tcontender\ton\tjobs\truns\tjobs/s\tmin - max\tCPU us/job: worker + database\tWAL B/job\tMB idle > peak\tms a call: p50, p99\tholdfast is")
	for _, c := range contests {
		if c.name == "pickup" {
			continue
		}
		for _, e := range c.entries {
			list := e.sorted(rate)
			if len(list) == 0 {
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t0\t%s\n", c.name, e.name, e.database, e.jobs, e.absent())
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%.0f\t%.0f - %.0f\t%s\t%s\t%s\t%s\t%s\n", c.name, e.name, e.database, e.jobs, len(list), e.median(rate), list[0], list[len(list)-1],
				e.cost(), dash("%.0f", e.median(wal)), e.memoryRange(), e.calls(), c.comparison(e))
		}
	}
	w.Flush()
	pickups(to, contests)
}

func pickups(to io.Writer, contests []*contest) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, c := range contests {
		if c.name != "pickup" {
			continue
		}
		fmt.Fprintln(w, "\nidle pick-up\ton\tjobs\truns\tp50 ms\tp95 ms\tp99 ms\tp50 min - max\tp99 min - max")
		for _, e := range c.entries {
			a, b := e.sorted(p50), e.sorted(p99)
			if len(a) == 0 {
				fmt.Fprintf(w, "%s\t%s\t%d\t0\t%s\n", e.name, e.database, e.jobs, e.absent())
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f - %.2f\t%.2f - %.2f\n", e.name, e.database, e.jobs, len(a), e.median(p50), e.median(p95), e.median(p99),
				a[0], a[len(a)-1], b[0], b[len(b)-1])
		}
	}
	w.Flush()
}

func (e *entry) absent() string {
	if len(e.failures) > 0 {
		return "did not work"
	}
	return "left out"
}

func (e *entry) cost() string {
	if e.database == onSQLite {
		return fmt.Sprintf("%.0f", e.median(worker))
	}
	return fmt.Sprintf("%.0f + %.0f", e.median(worker), e.median(server))
}

func (e *entry) memoryRange() string {
	if len(e.results) == 0 || e.results[0].Peak == 0 {
		return "-"
	}
	last := e.results[len(e.results)-1]
	return fmt.Sprintf("%.0f > %.0f", last.Idle, last.Peak)
}

// calls returns the duration of single calls, if they were timed.
func (e *entry) calls() string {
	if e.median(p99) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f, %.2f", e.median(p50), e.median(p99))
}

// comparison returns how much faster Holdfast is than another contender, or the ratio of an entry to its base.
func (c *contest) comparison(e *entry) string {
	ratio := func(name string) string {
		ours := find([]*contest{c}, c.name, name)
		if ours == nil || len(ours.results) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2fx", ours.median(rate)/e.median(rate))
	}
	switch {
	case e.base != "":
		base := find([]*contest{c}, c.name, e.base)
		if base == nil || len(base.results) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f of %s", e.median(rate)/base.median(rate), e.base)
	case e.program == "holdfast":
		return ""
	case strings.HasPrefix(e.database, "redis"):
		return fmt.Sprintf("%s (postgres), %s (sqlite)", ratio(pg), ratio(lite))
	case e.database == onSQLite:
		return ratio(lite)
	}
	return ratio(pg)
}

func dash(format string, value float64) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

// printTargets prints the targets and returns how many are missed.
func printTargets(to io.Writer, verdicts []verdict) (missing int) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ntarget\tof\tagainst\twanted\treached\t")
	count := map[string]int{}
	for _, v := range verdicts {
		count[v.state]++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.what(), v.mine, v.against(), v.wanted(), v.reached(), v.state)
	}
	w.Flush()
	fmt.Fprintf(to, "\n%d targets met, %d missed, %d not measured. Four processes against one are evaluated with a tolerance of 5 %%.\n", count[met], count[missed], count[notMeasured])
	return count[missed]
}

// otherLoad describes the load of other programs during the runs.
func otherLoad(contests []*contest) string {
	var all []float64
	repeated := 0
	for _, c := range contests {
		for _, e := range c.entries {
			all, repeated = append(all, e.others...), repeated+e.repeated
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	text := fmt.Sprintf("Cores used by other programs: %.1f (median), %.1f (maximum). Rounds repeated because they used more than %.1f: %d.", median(all), all[len(all)-1], maxOtherCores, repeated)
	if median(all) > maxOtherCores {
		text += " THE MACHINE WAS BUSY: repeat this when it is idle."
	}
	return text
}

// maxOtherCores is how many cores other programs may use before rates become unreliable.
const maxOtherCores = 0.3

// printSettings prints the settings of every contender, once.
func printSettings(to io.Writer, contests []*contest) {
	fmt.Fprintln(to, "\nsettings")
	seen := map[string]bool{}
	for _, c := range contests {
		for _, e := range c.entries {
			if len(e.results) == 0 {
				continue
			}
			line := fmt.Sprintf("%s: %s", e.name, e.results[0].Settings)
			if e.base == "" && !seen[line] {
				fmt.Fprintln(to, "  "+line)
			}
			seen[line] = true
		}
	}
}
