package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A span is the time range of a chart and the length of its steps.
type span struct {
	Name   string
	within time.Duration
	step   time.Duration
}

// spans are the ranges to choose from. The second is the default; the first is used for a store whose first attempt is younger.
var spans = []span{
	{"15m", 15 * time.Minute, time.Minute}, {"1h", time.Hour, time.Minute}, {"6h", 6 * time.Hour, 5 * time.Minute},
	{"24h", 24 * time.Hour, 20 * time.Minute}, {"7d", 7 * 24 * time.Hour, 2 * time.Hour},
}

// inWords returns the range, such as "24 hours".
func (s span) inWords() string {
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

// errorGroupSpans are the ranges for error groups, which are counted in steps of five minutes.
var errorGroupSpans = []span{
	{"1h", time.Hour, 5 * time.Minute}, {"6h", 6 * time.Hour, 15 * time.Minute}, {"24h", 24 * time.Hour, time.Hour}, {"7d", 7 * 24 * time.Hour, 6 * time.Hour},
}

// chosenSpan returns the span that the URL names, or the default.
func (q *request) chosenSpan(known []span, fallback string) (span, error) {
	name := q.text("span")
	if name == "" {
		name = fallback
	}
	var names []string
	for _, one := range known {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return span{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("span %.20q: use one of %s", name, strings.Join(names, ", "))}
}

// A choice is a link to another view of a page.
type choice struct {
	Title string
	Link  string
	Here  bool
}

// spanChoices returns a link to this page for each span.
func (q *request) spanChoices(known []span, at span) (choices []choice) {
	for _, one := range known {
		choices = append(choices, choice{one.Name, q.withQuery("span", one.Name, "cursor", ""), one == at})
	}
	return choices
}

// withQuery returns the URL of this page with other query values. An empty value removes its parameter.
func (q *request) withQuery(pairs ...string) string {
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

// A bar counts the attempts of all queues that ended within one step.
type bar struct {
	At                        time.Time
	Complete, Failed, Retried int
}

// bars returns one bar for each step of the span, also for steps without attempts.
func (s span) bars(trends []store.Trend, now time.Time) []bar {
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

// sum returns the sum of the bars.
func sum(all []bar) (whole bar) {
	for _, one := range all {
		whole.Complete += one.Complete
		whole.Failed += one.Failed
		whole.Retried += one.Retried
	}
	return whole
}

// A chart is a picture with its axis, its times, its legend and the same data as a table.
type chart struct {
	Picture template.HTML
	Axis    template.HTML
	Ticks   []string // times below the picture, from left to right
	Lines   []chartLine
	Columns []string // column headings of the table
	Legend  []part
}

// A chartLine is one row of the table, with a number for each column.
type chartLine struct {
	When    string
	Numbers []int
}

const (
	chartWide, chartTall = 960, 200
	axisWide             = 44
	chartTicks           = 5
)

// hoverArea draws an invisible box that shows a text while the pointer is over it.
func (d *drawing) hoverArea(box [4]float64, words string) {
	words = template.HTMLEscapeString(words)
	fmt.Fprintf(&d.out, `<rect class="chart-hit" x="%.2f" y="%.2f" width="%.2f" height="%.2f" data-readout="%s"><title>%s</title></rect>`, box[0], box[1], box[2], box[3], words, words)
}

// stamp formats the start of a step, as short as the range allows.
func (c clock) stamp(at time.Time, within time.Duration) string {
	if within > 24*time.Hour {
		return at.In(c.zone).Format("Mon 2 Jan 15:04")
	}
	return at.In(c.zone).Format("15:04")
}

// axisTimes returns evenly spaced times from the start to the end of the range.
func (c clock) axisTimes(first time.Time, within time.Duration) (times []string) {
	layout := "15:04"
	if within > 36*time.Hour {
		layout = "Mon 2"
	}
	for i := range chartTicks {
		times = append(times, first.Add(within*time.Duration(i)/(chartTicks-1)).In(c.zone).Format(layout))
	}
	return times
}

// axis draws numbers beside a chart, each at its height.
func axis(heights []float64, numbers []int) template.HTML {
	d := draw("axis", axisWide, chartTall, "")
	for i, n := range numbers {
		d.text("axis-number", axisWide-8, heights[i], compactNumber(n))
	}
	return d.done()
}

// compactNumber formats a number so that it fits beside a chart.
func compactNumber(n int) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1_000)
	}
	return num(n)
}

// ceiling returns the next round number, the top of an axis.
func ceiling(n int) int {
	for ten := 1; ; ten *= 10 {
		for _, step := range []int{1, 2, 4, 5, 8, 10} {
			if n <= step*ten {
				return step * ten
			}
		}
	}
}

// failuresChart draws successes above and failures below a base line, both to the same scale. The base line is placed in proportion to the largest of each.
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
	made := chart{Columns: []string{"Complete", "Retried", "Failed for good"}}
	for i, one := range all {
		x := float64(i) * wide
		words := fmt.Sprintf("%s to %s: %s complete, %s retried, %s failed for good", c.stamp(one.At, s.within), one.At.Add(s.step).In(c.zone).Format("15:04"), num(one.Complete), num(one.Retried), num(one.Failed))
		d.stack(x, wide, middle, []float64{scale * float64(one.Complete), scale * float64(one.Retried), scale * float64(one.Failed)})
		d.hoverArea([4]float64{x, 0, wide, chartTall}, words)
		if one.Complete+one.Failed+one.Retried > 0 {
			made.Lines = append([]chartLine{{c.stamp(one.At, s.within), []int{one.Complete, one.Retried, one.Failed}}}, made.Lines...)
		}
	}
	d.line("chart-base", 0, middle, chartWide, middle)
	made.Picture, made.Axis = d.done(), axis([]float64{top, middle, bottom}, []int{up, 0, down})
	made.Legend = []part{{whole.Complete, "good", "Complete"}, {whole.Retried, "hold", "Failed, retried"}, {whole.Failed, "bad", "Failed for good"}}
	if len(all) > 0 {
		made.Ticks = c.axisTimes(all[0].At, s.within)
	}
	return made
}

// stack draws one step: complete above the base line, retried and failed for good below it.
func (d *drawing) stack(x, wide, middle float64, tall []float64) {
	inset := min(wide*0.15, 1.5)
	box := func(class string, y, tall float64) {
		d.rect(class, [4]float64{x + inset, y, max(wide-2*inset, 1), tall}, "")
	}
	for i := range tall {
		if tall[i] > 0 {
			tall[i] = max(tall[i], 2) // a single failure among thousands stays visible
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

// errorGroupChart draws the failures of one error group, one bar for each step up to now.
func (c clock) errorGroupChart(s span, numbers []int, now time.Time) chart {
	top, whole := 1, 0
	for _, n := range numbers {
		top, whole = max(top, n), whole+n
	}
	top = ceiling(top)
	const tall = chartTall - 12
	d := draw("chart", chartWide, chartTall, fmt.Sprintf("Failed attempts of this error group over time: %s in total.", num(whole)))
	for _, y := range []float64{6, 6 + tall/2.0} {
		d.line("chart-rule", 0, y, chartWide, y)
	}
	first := now.Truncate(s.step).Add(-time.Duration(len(numbers)-1) * s.step)
	wide := float64(chartWide) / float64(max(len(numbers), 1))
	made := chart{Columns: []string{"Failed attempts"}, Legend: []part{{whole, "bad", "Failed attempts"}}}
	for i, n := range numbers {
		at, x, high := first.Add(time.Duration(i)*s.step), float64(i)*wide, float64(n)/float64(top)*tall
		if n > 0 {
			high = max(high, 2)
			inset := min(wide*0.15, 2)
			d.rect("chart-bad", [4]float64{x + inset, 6 + tall - high, max(wide-2*inset, 1), high}, "")
			made.Lines = append([]chartLine{{c.stamp(at, s.within), []int{n}}}, made.Lines...)
		}
		d.hoverArea([4]float64{x, 0, wide, chartTall}, fmt.Sprintf("%s to %s: %s", c.stamp(at, s.within), at.Add(s.step).In(c.zone).Format("15:04"), plural(n, "failed attempt")))
	}
	d.line("chart-base", 0, 6+tall, chartWide, 6+tall)
	made.Picture, made.Axis = d.done(), axis([]float64{6, 6 + tall/2.0, 6 + tall}, []int{top, top / 2, 0})
	if len(numbers) > 0 {
		made.Ticks = c.axisTimes(first, time.Duration(len(numbers))*s.step)
	}
	return made
}
