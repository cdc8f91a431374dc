package console

import (
	"errors"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

// A policiesCase is a failure to simulate.
type policiesCase struct {
	set                           *policy.Set
	taxonomy                      *failure.Taxonomy
	kind, owner, code, text, rule string
	dependency                    string
	take, outage                  time.Duration
	now                           time.Time
	most                          int // maximum number of attempts
}

// A policiesTrial is the result for a job whose attempts all fail, and for a job whose outage ends.
type policiesTrial struct {
	Code    failure.Code
	Strange bool   // the code is unknown
	Rule    string // the rule that classified an error text
	Words   string // the result in a sentence
	Final   bool   // it is never retried
	Steps   []policiesStep
	Bars    []chartBar
	Strip   template.HTML
	Whole   string // duration of the strip
	Left    int    // attempts not drawn
	Run     *policy.Simulation
	RunEnd  string
}

// A policiesStep is one attempt, with its earliest and latest start. They differ because backoff has random jitter.
type policiesStep struct {
	Attempt     int
	First, Last time.Duration // when it starts, since the enqueue
	Wait        [2]time.Duration
	Why         string
}

// Waits returns the wait before the attempt.
func (s policiesStep) Waits() string { return policiesBetween(s.Wait[0], s.Wait[1]) }

// Starts returns when the attempt starts.
func (s policiesStep) Starts() string { return policiesBetween(s.First, s.Last) }

// policiesBetween formats a range, or one value if both round to the same.
func policiesBetween(least, most time.Duration) string {
	from, to := policiesDuration(min(least, most)), policiesDuration(max(least, most))
	if from != to {
		return from + " to " + to
	}
	return from
}

// policiesShort formats a range so that it fits above a bar: 7–13 s.
func policiesShort(least, most time.Duration) string {
	least, most = min(least, most), max(least, most)
	unit, name := time.Second, "s"
	for _, one := range []struct {
		from, unit time.Duration
		name       string
	}{{90 * time.Second, time.Minute, "min"}, {90 * time.Minute, time.Hour, "h"}, {48 * time.Hour, 24 * time.Hour, "d"}} {
		if most >= one.from || least >= one.unit {
			unit, name = one.unit, one.name
		}
	}
	count := func(d time.Duration) string {
		n := float64(d) / float64(unit)
		if n >= 10 {
			return strconv.FormatFloat(n, 'f', 0, 64)
		}
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	}
	if from, to := count(least), count(most); from != to {
		return from + "–" + to + " " + name
	}
	return count(most) + " " + name
}

// policiesDuration formats a duration without a zero fraction.
func policiesDuration(d time.Duration) string {
	return strings.Replace(formatDuration(d.Round(100*time.Millisecond)), ".0 s", " s", 1)
}

const (
	policiesDrawn = 24   // attempts drawn
	policiesTried = 1000 // attempts simulated
	policiesBrief = 50   // attempts simulated for a row of a table
	policiesTake  = time.Second
)

// read reads the form and returns what is wrong with it.
func (c *policiesCase) read(form *policiesForm) (wrong string) {
	var err error
	if c.take = policiesTake; form.Take != "" {
		if c.take, err = parseAge(form.Take); err != nil {
			return fmt.Sprintf("Attempt duration %q is invalid. Use numbers with s, m, h or d, such as 30s or 5m.", truncate(form.Take, 40))
		}
	}
	if form.Outage != "" {
		if c.outage, err = parseAge(form.Outage); err != nil {
			return fmt.Sprintf("Outage duration %q is invalid. Use numbers with s, m, h or d, such as 10m or 2h.", truncate(form.Outage, 40))
		}
	}
	if c.text != "" {
		class, known := failure.DefaultRule(errors.New(c.text))
		if c.code, c.rule = class.Code, class.Rule; !known {
			c.code, c.rule = "UNKNOWN", "the default, because no rule matches"
		}
	}
	if c.code == "" {
		c.code = "DEPENDENCY_DOWN"
	}
	if _, known := c.taxonomy.Code(c.code); !known {
		return fmt.Sprintf("There is no code %q. The tab Codes lists all codes.", truncate(c.code, 64))
	}
	return ""
}

// rules returns the rules for failure.Decide.
func (c *policiesCase) rules() failure.Rules {
	return failure.Rules{Taxonomy: c.taxonomy, Policy: c.set.For(c.kind, c.owner), Dependency: c.dependency}
}

// A policiesRun is one simulated job with a fixed jitter.
type policiesRun struct {
	starts []time.Duration
	waits  []time.Duration
	whys   []string
	end    time.Duration // when it became a dead letter
	why    string
	ended  bool
}

// simulate runs a job whose attempts all fail, with a fixed jitter. Every decision comes from failure.Decide.
func (c *policiesCase) simulate(roll float64) (run policiesRun) {
	lease := store.Lease{Job: holdfast.Job{Kind: c.kind, Owner: c.owner, Dependency: c.dependency}}
	rules, now, wait := c.rules(), time.Duration(0), time.Duration(0)
	for len(run.starts) < c.most {
		run.starts, run.waits = append(run.starts, now), append(run.waits, wait)
		now += c.take
		v := failure.Decide(rules, lease, failure.Outcome{Err: failure.WithCode(errors.New("simulated"), c.code), Took: c.take, Age: now, Roll: roll})
		run.whys = append(run.whys, v.Why)
		if v.To != holdfast.Queued {
			run.end, run.why, run.ended = now, v.Why, true
			return run
		}
		lease.Failures++
		wait = v.Delay
		now += wait
	}
	run.end = now
	return run
}

// try simulates the job with the least and the most jitter and returns the pictures and the text.
func (c *policiesCase) try() policiesTrial {
	code, _ := c.taxonomy.Code(c.code)
	t := policiesTrial{Code: code, Rule: c.rule}
	early, late := c.simulate(0), c.simulate(1)
	for n := range max(len(early.starts), len(late.starts)) {
		step := policiesStep{Attempt: n + 1}
		for _, one := range []policiesRun{early, late} {
			if n >= len(one.starts) {
				continue // one run ends earlier because of the maximum age
			}
			if step.Why == "" {
				step.First, step.Last, step.Wait, step.Why = one.starts[n], one.starts[n], [2]time.Duration{one.waits[n], one.waits[n]}, one.whys[n]
			}
			step.First, step.Last = min(step.First, one.starts[n]), max(step.Last, one.starts[n]) // with a retry deadline more jitter can mean an earlier start
			step.Wait = [2]time.Duration{min(step.Wait[0], one.waits[n]), max(step.Wait[1], one.waits[n])}
		}
		if len(t.Steps) == policiesDrawn {
			t.Left++
			continue
		}
		t.Steps = append(t.Steps, step)
	}
	t.Final = len(early.starts) == 1 && len(late.starts) == 1
	t.Words = c.words(early, late)
	whole := max(early.end, late.end)
	t.Bars, t.Strip, t.Whole = policiesBars(t.Steps), policiesStrip(t.Steps, whole), policiesDuration(whole)
	c.run(&t)
	return t
}

// words returns the result in a sentence.
func (c *policiesCase) words(early, late policiesRun) string {
	least, most := len(early.starts), len(late.starts)
	switch {
	case !early.ended || !late.ended:
		return fmt.Sprintf("It keeps being retried: after %s attempts and %s it has not ended.", num(c.most), formatDuration(late.end))
	case least == 1 && most == 1:
		return "The first failure is final: the job becomes a dead letter."
	case least == most:
		return fmt.Sprintf("It is tried %d times and is a dead letter %s after it was enqueued.", least, policiesBetween(early.end, late.end))
	}
	return fmt.Sprintf("It is tried %d to %d times, depending on jitter, and is a dead letter %s after it was enqueued.", min(least, most), max(least, most), policiesBetween(min(early.end, late.end), max(early.end, late.end)))
}

// run simulates one job through an outage that ends, as 'holdfast policy simulate' does: with time windows and with the breaker of its dependency.
func (c *policiesCase) run(t *policiesTrial) {
	if c.outage <= 0 {
		return
	}
	trial := policy.Simulate(c.set, policy.Scenario{
		Kind: c.kind, Owner: c.owner, Dependency: c.dependency, Code: c.code, Take: c.take, Outage: policy.Outage{To: c.outage},
		Breaker: c.dependency != "", Traffic: 5, At: c.now, Seed: 1,
	})
	trial.Lines = trial.Lines[:min(len(trial.Lines), 200)]
	t.Run = &trial
	switch trial.End {
	case holdfast.Complete:
		t.RunEnd = fmt.Sprintf("The job completes on attempt %d, %s after it was enqueued.", trial.Attempts, formatDuration(trial.After))
	case holdfast.Queued:
		t.RunEnd = "The job has not ended when the simulation ends."
	default:
		t.RunEnd = fmt.Sprintf("The job is a dead letter after %d attempts and %s: the outage lasted longer than the policy retries.", trial.Attempts, formatDuration(trial.After))
	}
}

// policiesBars draws the wait before each attempt: the minimum, and the jitter on top.
func policiesBars(steps []policiesStep) (bars []chartBar) {
	top := time.Duration(1)
	for _, step := range steps {
		top = max(top, step.Wait[1])
	}
	for _, step := range steps[1:] {
		least, most := step.Wait[0], step.Wait[1]
		p := chartBar{Name: fmt.Sprintf("Attempt %d", step.Attempt), Value: policiesShort(least, most), Words: fmt.Sprintf("attempt %d: waits %s, starts %s after the enqueue", step.Attempt, step.Waits(), step.Starts())}
		p.Note = "after " + policiesShort(step.First, step.First)
		p.draw([]barSegment{{"chart-accent", float64(least) / float64(top)}, {"chart-jitter", float64(most-least) / float64(top)}}, false)
		bars = append(bars, p)
	}
	return bars
}

// policiesStrip draws the attempts over time, each from its earliest to its latest start.
func policiesStrip(steps []policiesStep, whole time.Duration) template.HTML {
	const wide, tall = 960, 28
	d := draw("policy-strip", wide, tall, "")
	d.rect("chart-none", [4]float64{0, 11, wide, 6}, "")
	for _, step := range steps {
		from, to := float64(step.First)/float64(max(whole, 1))*wide, float64(step.Last)/float64(max(whole, 1))*wide
		d.rect("chart-accent", [4]float64{min(from, wide-4), 4, max(to-from, 4), 20}, fmt.Sprintf("attempt %d starts after %s", step.Attempt, step.Starts()))
	}
	d.rect("chart-bad", [4]float64{wide - 3, 0, 3, tall}, "dead letter")
	return d.done()
}
