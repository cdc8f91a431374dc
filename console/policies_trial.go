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
)

// A policiesCase is a failure that is tried out.
type policiesCase struct {
	set                           *policy.Set
	taxonomy                      *failure.Taxonomy
	kind, owner, code, text, rule string
	dependency                    string
	take, outage                  time.Duration
	now                           time.Time
	most                          int // attempts that are played
}

// A policiesTrial is what becomes of a job whose attempts all fail so, and of one whose trouble ends.
type policiesTrial struct {
	Code    failure.Code
	Strange bool   // the code is in no taxonomy
	Rule    string // by which rule a text was classified
	Words   string // all of it in a sentence
	Final   bool   // it is never retried
	Steps   []policiesStep
	Pillars []pillar
	Strip   template.HTML
	Whole   string // how long the strip is
	Left    int    // attempts that are not drawn
	Run     *policy.Trial
	RunEnd  string
}

// A policiesStep is one attempt, as early and as late as chance allows.
type policiesStep struct {
	Attempt     int
	First, Last time.Duration // when it starts, since the enqueue
	Wait        [2]time.Duration
	Why         string
}

// Waits is how long the attempt was waited for.
func (s policiesStep) Waits() string { return policiesBetween(s.Wait[0], s.Wait[1]) }

// Starts is when it starts.
func (s policiesStep) Starts() string { return policiesBetween(s.First, s.Last) }

// policiesBetween is a range in words. What differs by less than can be said is one.
func policiesBetween(least, most time.Duration) string {
	from, to := policiesTook(min(least, most)), policiesTook(max(least, most))
	if from != to {
		return from + " to " + to
	}
	return from
}

// policiesShort is a range in as few letters as fit above a pillar: 7–13 s.
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

// policiesTook is a duration without a fraction that says nothing.
func policiesTook(d time.Duration) string {
	return strings.Replace(took(d.Round(100*time.Millisecond)), ".0 s", " s", 1)
}

const (
	policiesDrawn = 24   // attempts that are drawn
	policiesTried = 1000 // attempts that are played
	policiesBrief = 50   // and of each line in a table
	policiesTake  = time.Second
)

// read takes over what the form says, or says what is wrong with it.
func (c *policiesCase) read(form *policiesForm) (wrong string) {
	var err error
	if c.take = policiesTake; form.Take != "" {
		if c.take, err = parseAge(form.Take); err != nil {
			return fmt.Sprintf("An attempt takes %q: that is no time. Use numbers with s, m, h or d, such as 30s or 5m.", cut(form.Take, 40))
		}
	}
	if form.Outage != "" {
		if c.outage, err = parseAge(form.Outage); err != nil {
			return fmt.Sprintf("The trouble lasts %q: that is no time. Use numbers with s, m, h or d, such as 10m or 2h.", cut(form.Outage, 40))
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
		return fmt.Sprintf("There is no code %q. The tab Codes lists all there are.", cut(c.code, 64))
	}
	return ""
}

// rules are what failure.Decide is asked with.
func (c *policiesCase) rules() failure.Rules {
	return failure.Rules{Taxonomy: c.taxonomy, Policy: c.set.For(c.kind, c.owner), Dependency: c.dependency}
}

// A policiesLife is one job's attempts when chance always falls the same way.
type policiesLife struct {
	starts []time.Duration
	waits  []time.Duration
	whys   []string
	end    time.Duration // when it was given up
	why    string
	ended  bool
}

// live plays a job whose attempts all fail. Every verdict is failure.Decide's own.
func (c *policiesCase) live(roll float64) (life policiesLife) {
	lease := holdfast.Lease{Job: holdfast.Job{Kind: c.kind, Owner: c.owner, Dependency: c.dependency}}
	rules, now, wait := c.rules(), time.Duration(0), time.Duration(0)
	for len(life.starts) < c.most {
		life.starts, life.waits = append(life.starts, now), append(life.waits, wait)
		now += c.take
		v := failure.Decide(rules, lease, failure.Outcome{Err: failure.WithCode(errors.New("simulated"), c.code), Took: c.take, Age: now, Roll: roll})
		life.whys = append(life.whys, v.Why)
		if v.To != holdfast.Queued {
			life.end, life.why, life.ended = now, v.Why, true
			return life
		}
		lease.Failures++
		wait = v.Delay
		now += wait
	}
	life.end = now
	return life
}

// try plays the job as early and as late as chance allows, draws it, and tells it in words.
func (c *policiesCase) try() policiesTrial {
	code, _ := c.taxonomy.Code(c.code)
	t := policiesTrial{Code: code, Rule: c.rule}
	early, late := c.live(0), c.live(1)
	for n := range max(len(early.starts), len(late.starts)) {
		step := policiesStep{Attempt: n + 1}
		for _, one := range []policiesLife{early, late} {
			if n >= len(one.starts) {
				continue // one is given up for its age before the other
			}
			if step.Why == "" {
				step.First, step.Last, step.Wait, step.Why = one.starts[n], one.starts[n], [2]time.Duration{one.waits[n], one.waits[n]}, one.whys[n]
			}
			step.First, step.Last = min(step.First, one.starts[n]), max(step.Last, one.starts[n]) // a promise turns chance around
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
	t.Pillars, t.Strip, t.Whole = policiesPillars(t.Steps), policiesStrip(t.Steps, whole), policiesTook(whole)
	c.run(&t)
	return t
}

// words tell what becomes of the job in a sentence.
func (c *policiesCase) words(early, late policiesLife) string {
	least, most := len(early.starts), len(late.starts)
	switch {
	case !early.ended || !late.ended:
		return fmt.Sprintf("It is tried again and again: after %s attempts and %s there is still no end.", num(c.most), took(late.end))
	case least == 1 && most == 1:
		return "The first failure is the last: the job is a dead letter at once."
	case least == most:
		return fmt.Sprintf("It is tried %d times and is a dead letter %s after it was enqueued.", least, policiesBetween(early.end, late.end))
	}
	return fmt.Sprintf("It is tried %d to %d times, as chance has it, and is a dead letter %s after it was enqueued.", min(least, most), max(least, most), policiesBetween(min(early.end, late.end), max(early.end, late.end)))
}

// run plays one job through trouble that ends, as 'holdfast policy simulate' does: with windows, and with the breaker of what it calls.
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
		t.RunEnd = fmt.Sprintf("The job completes on attempt %d, %s after it was enqueued.", trial.Attempts, took(trial.After))
	case holdfast.Queued:
		t.RunEnd = "The job has not ended by the time the simulation did."
	default:
		t.RunEnd = fmt.Sprintf("The job is a dead letter after %d attempts and %s: the trouble lasted longer than the policy's patience.", trial.Attempts, took(trial.After))
	}
}

// policiesPillars draws how long each attempt is waited for: what is certain, and what chance may add.
func policiesPillars(steps []policiesStep) (pillars []pillar) {
	top := time.Duration(1)
	for _, step := range steps {
		top = max(top, step.Wait[1])
	}
	for _, step := range steps[1:] {
		least, most := step.Wait[0], step.Wait[1]
		p := pillar{Name: fmt.Sprintf("Attempt %d", step.Attempt), Value: policiesShort(least, most), Words: fmt.Sprintf("attempt %d is waited for %s and starts %s after the enqueue", step.Attempt, step.Waits(), step.Starts())}
		p.Note = "after " + policiesShort(step.First, step.First)
		p.draw([]pillarPart{{"chart-accent", float64(least) / float64(top)}, {"chart-chance", float64(most-least) / float64(top)}}, false)
		pillars = append(pillars, p)
	}
	return pillars
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
