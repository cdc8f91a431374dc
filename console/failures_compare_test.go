package console

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

func TestDifferencesBetweenTextsAreFound(t *testing.T) {
	c := compareTexts([]string{"host a gave 503 twice", "host b gave 503 twice", "host a gave 500 twice", "something else"})
	var text []string
	for _, one := range c.Pieces {
		text = append(text, one.Text)
	}
	if got := strings.Join(text, "|"); got != "host||gave||twice" || c.Of != 3 || len(c.Gaps) != 2 {
		t.Errorf("%q of %d with %+v", got, c.Of, c.Gaps)
	}
	if first := c.Gaps[0]; first.Distinct != 2 || first.Values[0] != (gapValue{"a", 2}) {
		t.Errorf("the first gap: %+v", first)
	}
	for _, same := range [][]string{nil, {"one"}, {"same words", "same words"}, {"", ""}, {"one", "two words"}} {
		if c := compareTexts(same); len(c.Gaps) != 0 {
			t.Errorf("%q differ in %+v", same, c.Gaps)
		}
	}
	var long []string
	for range 100 {
		long = append(long, "x")
	}
	if c := compareTexts([]string{strings.Join(long, "a "), strings.Join(long, "b ")}); len(c.Gaps) > maxGaps || len(c.Pieces) > 2*maxGaps+2 {
		t.Errorf("%d gaps, %d pieces", len(c.Gaps), len(c.Pieces))
	}
}

func TestAChartHasABarForEveryStepAndForgetsNothing(t *testing.T) {
	now := time.Date(2026, 3, 29, 1, 30, 20, 0, time.UTC)
	for _, s := range spans {
		all := s.bars([]store.Trend{
			{Step: now.Truncate(s.step), Queue: "a", Complete: 3, Failed: 1}, {Step: now.Truncate(s.step), Queue: "b", Retried: 2}, {Step: now.Add(-9 * 24 * time.Hour).Truncate(s.step), Complete: 7},
			{Step: now.Add(time.Hour), Complete: 9}, // by a clock that is ahead
		}, now)
		last := all[len(all)-1]
		if len(all) != int(s.within/s.step) || last.Complete != 3 || last.Failed != 1 || last.Retried != 2 || sum(all).Complete != 3 {
			t.Errorf("%s: %d bars, the last %+v, in all %+v", s.Name, len(all), last, sum(all))
		}
		made := clock{zone: time.UTC}.failuresChart(s, all)
		if n := strings.Count(string(made.Picture), "data-readout="); n != len(all) || len(made.Lines) != 1 || len(made.Ticks) != chartTicks {
			t.Errorf("%s: %d readouts, lines %v, ticks %v", s.Name, n, made.Lines, made.Ticks)
		}
	}
	if got := []int{ceiling(0), ceiling(3), ceiling(11), ceiling(99), ceiling(1001)}; got[0] != 1 || got[1] != 4 || got[2] != 20 || got[3] != 100 || got[4] != 2000 {
		t.Errorf("ends of axes: %v", got)
	}
}
