package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/bench/measure"
)

func TestTheMedianIsTheMiddleOrTheMeanOfTheTwoMiddles(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{1, 3}, 2}, {[]float64{1, 2, 9}, 2}, {[]float64{1, 2, 4, 9}, 3}} {
		if got := median(c.list); got != c.want {
			t.Errorf("the median of %v is %v, not %v", c.list, got, c.want)
		}
	}
}

// measuredAt gives an entry results with these rates.
func measuredAt(contests []*contest, name, entry string, rates ...float64) {
	e := find(contests, name, entry)
	for _, r := range rates {
		e.results = append(e.results, measure.Result{Jobs: 1000, Seconds: 1000 / r, CPU: 1 / r, P50: r, P99: r})
	}
}

func TestARatioIsJudgedByMedians(t *testing.T) {
	all := plan(false)
	measuredAt(all, "drain", pg, 10, 60, 61)
	measuredAt(all, "drain", "river", 9, 10, 99)
	list := []target{
		{contest: "drain", mine: pg, peers: []string{"river"}, of: rate, want: 5.9},
		{contest: "drain", mine: pg, peers: []string{"river"}, of: rate, want: 6.1},
		{contest: "drain", mine: pg, peers: []string{"river 2000"}, of: rate, want: 1},
		{contest: "drain", mine: lite, of: cpu, want: 1, atMost: true},
	}
	var got []string
	for _, v := range judge(all, list) {
		got = append(got, v.state)
	}
	if want := []string{met, missed, notMeasured, notMeasured}; !slices.Equal(got, want) {
		t.Fatalf("judged %q, want %q", got, want)
	}
}

func TestTheBetterOfTwoPeersCounts(t *testing.T) {
	all := plan(false)
	measuredAt(all, "pickup", pg, 1)
	measuredAt(all, "pickup", "river", 10)
	measuredAt(all, "pickup", "river same", 2)
	soon := target{contest: "pickup", mine: pg, peers: []string{"river", "river same"}, of: p50, want: 0.6, atMost: true}
	v := judge(all, []target{soon})[0]
	if v.value != 0.5 || v.state != met {
		t.Fatalf("reached %v, %s; want 0.5 of the better one, met", v.value, v.state)
	}
}

func TestEveryTargetNamesEntriesOfThePlan(t *testing.T) {
	for _, quick := range []bool{false, true} {
		all := plan(quick)
		for _, c := range targets(quick) {
			for _, name := range append([]string{c.mine}, c.peers...) {
				e := find(all, c.contest, name)
				if e == nil {
					t.Fatalf("no entry %q in %s", name, c.contest)
				}
				if e.minor {
					t.Errorf("%s in %s decides about a target and must run all rounds", name, c.contest)
				}
			}
		}
	}
}

func TestEveryEntryOfThePlanCanRun(t *testing.T) {
	for _, c := range append(plan(false), plan(true)...) {
		for _, e := range c.entries {
			known := slices.ContainsFunc(programs, func(p program) bool { return p.name == e.program })
			if !known || e.jobs == 0 || e.workload == "" {
				t.Errorf("%s of %s cannot run: %+v", e.name, c.name, e)
			}
			if e.filled != "" && fillings[e.filled] == nil {
				t.Errorf("there is no filling %q", e.filled)
			}
			if e.base != "" && find([]*contest{c}, c.name, e.base) == nil {
				t.Errorf("%s is compared with %q, which is not there", e.name, e.base)
			}
		}
	}
}

func TestWordsChooseContestsContendersAndDatabases(t *testing.T) {
	for words, want := range map[string]string{
		"enqueue1 river":      "enqueue1: river, river sqlite",
		"enqueue1":            "enqueue1",
		"flat 5M sqlite":      "flat: holdfast sqlite, holdfast sqlite 5M future",
		"postgres drain boss": "drain: pg-boss",
		"unknown":             "",
	} {
		got := choose(plan(false), strings.Fields(words))
		chosen := ""
		for _, c := range got {
			chosen += c.name
			if strings.Contains(want, ":") {
				var names []string
				for _, e := range c.entries {
					names = append(names, e.name)
				}
				chosen += ": " + strings.Join(names, ", ")
			}
		}
		if chosen != want {
			t.Errorf("-only %q chose %q, want %q", words, chosen, want)
		}
	}
}

func TestAChartIsWellFormedWhateverItsWordsAre(t *testing.T) {
	c := chart{title: `<b> & "x"`, note: "a < b", legend: []string{"one", "two & more"}, groups: []group{{"g>", []bar{
		{label: "<script>", text: "1 & 2", parts: []float64{1, 2}, ours: true},
		{label: "far", text: "900", parts: []float64{900, 1}, cut: true},
		{label: "nothing", parts: []float64{0}, low: 0, high: 3},
	}}}}
	text := c.draw()
	if strings.Contains(text, "<script>") {
		t.Fatal("a label became an element")
	}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

func TestABarThatIsCutDoesNotSetTheScale(t *testing.T) {
	c := chart{groups: []group{{"", []bar{{parts: []float64{2, 3}}, {parts: []float64{900}, cut: true}, {parts: []float64{1}, high: 6}}}}}
	if c.longest() != 6 {
		t.Fatalf("the longest is %v, not 6", c.longest())
	}
}

func TestResultsCanBeReadAndDrawnAgain(t *testing.T) {
	r := &benchmark{contests: plan(true), quick: true, env: &environment{builds: &buildSet{}}}
	for _, c := range r.contests {
		for _, e := range c.entries {
			measuredAt(r.contests, c.name, e.name, 100, 200, 300)
		}
	}
	r.verdicts = judge(r.contests, targets(true))
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	names := []string{"drain.svg", "bulk.svg", "enqueue.svg", "failure.svg", "flat.svg", "pickup.svg", "cpu.svg"}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	var output strings.Builder
	if err := redraw(filepath.Join(dir, "results.json"), &output); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if strings.Contains(output.String(), notMeasured+"\n") {
		t.Errorf("figures got lost:\n%s", output.String())
	}
	var d document
	text, _ := os.ReadFile(filepath.Join(dir, "results.json"))
	if err := json.Unmarshal(text, &d); err != nil || len(d.Targets) != len(targets(true)) {
		t.Fatalf("%d targets were written (%v)", len(d.Targets), err)
	}
}
