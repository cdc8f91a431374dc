package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A span is how much of the past a chart shows, and how finely.
type span struct {
	Name   string
	within time.Duration
	step   time.Duration
}

// spans are what can be chosen. The first is what a store that has just begun shows, the second is the usual one.
var spans = []span{
	{"15m", 15 * time.Minute, time.Minute}, {"1h", time.Hour, time.Minute}, {"6h", 6 * time.Hour, 5 * time.Minute},
	{"24h", 24 * time.Hour, 20 * time.Minute}, {"7d", 7 * 24 * time.Hour, 2 * time.Hour},
}

// long is a span in words.
func (s span) long() string {
	switch {
	case s.within < time.Hour:
		return plural(int(s.within.Minutes()), "minute")
	case s.within == time.Hour:
		return "hour"
	case s.within <= 24*time.Hour:
		return plural(int(s.within.Hours()), "hour")
	}
	return plural(int(s.within.Hours()/24), "day")
}

// troubleSpans are what can be chosen where error groups are shown: they are tallied in steps of five minutes.
var troubleSpans = []span{
	{"1h", time.Hour, 5 * time.Minute}, {"6h", 6 * time.Hour, 15 * time.Minute}, {"24h", 24 * time.Hour, time.Hour}, {"7d", 7 * 24 * time.Hour, 6 * time.Hour},
}

// chosenSpan is the span that the address names, or the usual one.
func (q *ask) chosenSpan(known []span, usual string) (span, error) {
	name := q.text("span")
	if name == "" {
		name = usual
	}
	var names []string
	for _, one := range known {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return span{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("span %.20q: use one of %s", name, strings.Join(names, ", "))}
}

// A choice is one of several ways to see a page, in its address.
type choice struct {
	Title string
	Link  string
	Here  bool
}

// spanChoices are the spans as choices: the same page, seen otherwise.
func (q *ask) spanChoices(known []span, at span) (choices []choice) {
	for _, one := range known {
		choices = append(choices, choice{one.Name, q.otherwise("span", one.Name, "cursor", ""), one == at})
	}
	return choices
}

// otherwise is the address of this page with other values in its query; an empty one is left out.
func (q *ask) otherwise(pairs ...string) string {
	query := q.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Del(pairs[i])
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	path := q.link(q.URL.EscapedPath())
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// A bar is what ended within one step, of all queues.
type bar struct {
	At                        time.Time
	Complete, Failed, Retried int
}

// bars are the trends of a span, one for each step, also for those in which nothing ended.
func (s span) bars(trends []holdfast.Trend, now time.Time) []bar {
	first := now.Add(-s.within).Truncate(s.step).Add(s.step)
	all := make([]bar, int(s.within/s.step))
	for i := range all {
		all[i].At = first.Add(time.Duration(i) * s.step)
	}
	for _, one := range trends {
		if i := int(one.Step.Sub(first) / s.step); i >= 0 && i < len(all) && !one.Step.Before(first) {
			all[i].Complete += one.Complete
			all[i].Failed += one.Failed
			all[i].Retried += one.Retried
		}
	}
	return all
}

// sum adds the bars up.
func sum(all []bar) (whole bar) {
	for _, one := range all {
		whole.Complete += one.Complete
		whole.Failed += one.Failed
		whole.Retried += one.Retried
	}
	return whole
}

// A chart is a picture with what stands around it: numbers beside it, times below it, and the same in words for those who read it as a table.
type chart struct {
	Picture template.HTML
	Axis    template.HTML
	Feet    []string // times below it, from left to right
	Lines   []chartLine
	Heads   []string // of the table: what the numbers of a line are
	Legend  []part
}

// A chartLine is one step in words, with a number for each head.
type chartLine struct {
	When    string
	Numbers []int
}

const (
	chartWide, chartTall = 960, 200
	axisWide             = 44
	chartFeet            = 5
)

// hit makes a place in a chart say its words, wherever it is pointed at.
func (d *drawing) hit(box [4]float64, words string) {
	words = template.HTMLEscapeString(words)
	fmt.Fprintf(&d.out, `<rect class="chart-hit" x="%.2f" y="%.2f" width="%.2f" height="%.2f" data-readout="%s"><title>%s</title></rect>`, box[0], box[1], box[2], box[3], words, words)
}

// stamp is when a step begins, as short as the span allows.
func (c clock) stamp(at time.Time, within time.Duration) string {
	if within > 24*time.Hour {
		return at.In(c.zone).Format("Mon 2 Jan 15:04")
	}
	return at.In(c.zone).Format("15:04")
}

// feet are times below a chart, evenly apart: of the first step, and of the last one's end.
func (c clock) feet(first time.Time, within time.Duration) (feet []string) {
	layout := "15:04"
	if within > 36*time.Hour {
		layout = "Mon 2"
	}
	for i := range chartFeet {
		feet = append(feet, first.Add(within*time.Duration(i)/(chartFeet-1)).In(c.zone).Format(layout))
	}
	return feet
}

// axis writes numbers beside a chart, each at its height.
func axis(heights []float64, numbers []int) template.HTML {
	d := draw("axis", axisWide, chartTall, "")
	for i, n := range numbers {
		d.text("axis-number", axisWide-8, heights[i], brief(n))
	}
	return d.done()
}

// brief is a number that fits beside a chart.
func brief(n int) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1_000)
	}
	return num(n)
}

// ceiling is the next round number: what an axis ends with.
func ceiling(n int) int {
	for ten := 1; ; ten *= 10 {
		for _, step := range []int{1, 2, 4, 5, 8, 10} {
			if n <= step*ten {
				return step * ten
			}
		}
	}
}

// failuresChart draws successes upwards and failures downwards from one line, both to the same scale, so that they can be compared. The line
// stands where both have room.
func (c clock) failuresChart(s span, all []bar) chart {
	up, down := 1, 1
	for _, one := range all {
		up, down = max(up, one.Complete), max(down, one.Failed+one.Retried)
	}
	up, down = ceiling(up), ceiling(down)
	middle := min(max(float64(chartTall)*float64(up)/float64(up+down), 0.3*chartTall), 0.74*chartTall)
	scale := min((middle-6)/float64(up), (chartTall-middle-6)/float64(down))
	whole := sum(all)
	d := draw("chart", chartWide, chartTall, fmt.Sprintf("Attempts over time: %s complete, %s failed and retried, %s failed for good.", num(whole.Complete), num(whole.Retried), num(whole.Failed)))
	top, bottom := middle-scale*float64(up), middle+scale*float64(down)
	for _, y := range []float64{top, (top + middle) / 2, bottom} {
		d.line("chart-rule", 0, y, chartWide, y)
	}
	wide := float64(chartWide) / float64(max(len(all), 1))
	made := chart{Heads: []string{"Complete", "Retried", "Failed for good"}}
	for i, one := range all {
		x := float64(i) * wide
		words := fmt.Sprintf("%s to %s: %s complete, %s retried, %s failed for good", c.stamp(one.At, s.within), one.At.Add(s.step).In(c.zone).Format("15:04"), num(one.Complete), num(one.Retried), num(one.Failed))
		d.pile(x, wide, middle, []float64{scale * float64(one.Complete), scale * float64(one.Retried), scale * float64(one.Failed)})
		d.hit([4]float64{x, 0, wide, chartTall}, words)
		if one.Complete+one.Failed+one.Retried > 0 {
			made.Lines = append([]chartLine{{c.stamp(one.At, s.within), []int{one.Complete, one.Retried, one.Failed}}}, made.Lines...)
		}
	}
	d.line("chart-base", 0, middle, chartWide, middle)
	made.Picture, made.Axis = d.done(), axis([]float64{top, middle, bottom}, []int{up, 0, down})
	made.Legend = []part{{whole.Complete, "good", "Complete"}, {whole.Retried, "hold", "Failed, retried"}, {whole.Failed, "bad", "Failed for good"}}
	if len(all) > 0 {
		made.Feet = c.feet(all[0].At, s.within)
	}
	return made
}

// pile draws what is complete above the line, and below it what was retried and what failed for good.
func (d *drawing) pile(x, wide, middle float64, tall []float64) {
	inset := min(wide*0.15, 1.5)
	box := func(class string, y, tall float64) {
		d.rect(class, [4]float64{x + inset, y, max(wide-2*inset, 1), tall}, "")
	}
	for i := range tall {
		if tall[i] > 0 {
			tall[i] = max(tall[i], 2) // a single failure among thousands is seen
		}
	}
	if tall[0] > 0 {
		box("chart-good", middle-tall[0], tall[0])
	}
	if tall[1] > 0 {
		box("chart-hold", middle, tall[1])
	}
	if tall[2] > 0 {
		box("chart-bad", middle+tall[1], tall[2])
	}
}

// troubleChart draws the failures of one error group, a bar for each step that ends now.
func (c clock) troubleChart(s span, numbers []int, now time.Time) chart {
	top, whole := 1, 0
	for _, n := range numbers {
		top, whole = max(top, n), whole+n
	}
	top = ceiling(top)
	const tall = chartTall - 12
	d := draw("chart", chartWide, chartTall, fmt.Sprintf("Failed attempts of this error group over time: %s in all.", num(whole)))
	for _, y := range []float64{6, 6 + tall/2.0} {
		d.line("chart-rule", 0, y, chartWide, y)
	}
	first := now.Truncate(s.step).Add(-time.Duration(len(numbers)-1) * s.step)
	wide := float64(chartWide) / float64(max(len(numbers), 1))
	made := chart{Heads: []string{"Failed attempts"}, Legend: []part{{whole, "bad", "Failed attempts"}}}
	for i, n := range numbers {
		at, x, high := first.Add(time.Duration(i)*s.step), float64(i)*wide, float64(n)/float64(top)*tall
		if n > 0 {
			high = max(high, 2)
			inset := min(wide*0.15, 2)
			d.rect("chart-bad", [4]float64{x + inset, 6 + tall - high, max(wide-2*inset, 1), high}, "")
			made.Lines = append([]chartLine{{c.stamp(at, s.within), []int{n}}}, made.Lines...)
		}
		d.hit([4]float64{x, 0, wide, chartTall}, fmt.Sprintf("%s to %s: %s", c.stamp(at, s.within), at.Add(s.step).In(c.zone).Format("15:04"), plural(n, "failed attempt")))
	}
	d.line("chart-base", 0, 6+tall, chartWide, 6+tall)
	made.Picture, made.Axis = d.done(), axis([]float64{6, 6 + tall/2.0, 6 + tall}, []int{top, top / 2, 0})
	if len(numbers) > 0 {
		made.Feet = c.feet(first, time.Duration(len(numbers))*s.step)
	}
	return made
}
