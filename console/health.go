package console

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/ops"
)

// mountHealth mounts how the store and those who look after it are. What the last check found is remembered here, by whichever visitor
// it was asked for.
func (c *Console) mountHealth() {
	memo := new(healthMemo)
	c.see("/health", func(q *ask) (page, error) { return healthScreen(q, memo) })
	c.do("/health/check", apikey.Operator, memo.check)
	c.do("/health/duties/{name}/run", apikey.Operator, runHealthDuty)
	c.do("/health/duties/{name}/pause", apikey.Operator, pauseHealthDuty)
	c.do("/health/duties/{name}/resume", apikey.Operator, resumeHealthDuty)
}

// A healthPage is what is known without reading the whole store, and what the last check found.
type healthPage struct {
	Tiles     []tile
	Duties    []healthDuty
	Late      int // duties
	Retention ops.Retention
	Rules     []healthRule
	Purged    int
	NoRules   string // why there are none to show
	Check     *healthCheck
	Busy      time.Time // a check is under way since
	Lagging   []ops.Subscribed
}

// A healthDuty is a duty as the page shows it.
type healthDuty struct {
	duty.Standing
	Does    string
	Look    sign
	CanWait bool // it can be paused
	Act     string
	Clash   bool // its last error is newer than its last good round
}

// healthRank puts duties that need somebody first.
var healthRank = map[string]int{"late": 1, "troubled": 2, "nobody": 3, "paused": 4, "on time": 5}

// A healthRule is a rule of retention in words.
type healthRule struct{ Name, Which, Keeps string }

// healthPatience is how late a duty may be before it is called late: beats are reported every five seconds.
const healthPatience = 5 * time.Second

func healthScreen(q *ask, memo *healthMemo) (page, error) {
	shown := healthPage{}
	shown.Check, shown.Busy = memo.now()
	duties, err := q.desk.Duties(q.ctx)
	if err != nil {
		return page{}, err
	}
	for _, one := range duties {
		row := q.healthDuty(one)
		if row.Look.Word == "late" {
			shown.Late++
		}
		shown.Duties = append(shown.Duties, row)
	}
	slices.SortStableFunc(shown.Duties, func(a, b healthDuty) int { return cmp.Compare(healthRank[a.Look.Word], healthRank[b.Look.Word]) })
	q.healthRetention(&shown)
	if shown.Tiles, err = q.healthTiles(&shown); err != nil {
		return page{}, err
	}
	return page{name: "health", title: "Health", topics: []string{"workers", "feed"}, data: shown}, nil
}

// healthTiles are the figures at the top. Each is cheap to ask for.
func (q *ask) healthTiles(shown *healthPage) ([]tile, error) {
	asked := time.Now()
	jobs, _, err := q.desk.Jobs(q.ctx, holdfast.Filter{Limit: 1})
	if err != nil {
		return nil, err
	}
	answered := time.Since(asked)
	workers, err := q.desk.Workers(q.ctx)
	if err != nil {
		return nil, err
	}
	latest, err := q.desk.Latest(q.ctx, 1)
	if err != nil {
		return nil, err
	}
	subscribed, err := q.desk.Subscriptions(q.ctx)
	if err != nil {
		return nil, err
	}
	feed := tile{Title: "Feed", Value: num(latest.Head), Link: q.link("/audit"), Note: "Nothing was told yet"}
	if n := len(latest.Events); n > 0 {
		feed.Note = q.note("Numbered events, the last ", latest.Events[n-1].At)
	}
	return []tile{
		{Title: "The store answers in", Value: took(max(answered, time.Microsecond)), Note: "One question, asked just now"},
		healthClock(jobs, asked.Add(answered/2), answered), healthCrew(q, workers), healthLate(shown), feed, healthLag(q, subscribed, shown),
	}, nil
}

// healthClock compares the store's clock with this server's. A question takes a while, so a small difference is none.
func healthClock(jobs []holdfast.Job, at time.Time, within time.Duration) tile {
	t := tile{Title: "Clocks differ by", Value: "?", Note: "Not known: the store has no job to ask about"}
	if len(jobs) == 0 || jobs[0].AsOf.IsZero() {
		return t
	}
	apart := jobs[0].AsOf.Sub(at).Abs()
	t.Note = "The store's against this server's"
	if apart <= max(within, 50*time.Millisecond) {
		t.Value, apart = "0 s", 0
	} else {
		t.Value = took(apart)
	}
	if apart > 2*time.Second {
		t.State, t.Note = "hold", "The store's clock is the one that counts; set this server's right"
	}
	return t
}

func healthCrew(q *ask, workers []holdfast.Presence) tile {
	t := tile{Title: "Workers alive", Value: num(len(workers)), Link: q.link("/workers"), Note: "Nobody works: start a worker", State: "bad"}
	versions := map[string]bool{}
	for _, one := range workers {
		versions[one.Version] = true
	}
	switch {
	case len(workers) == 0:
	case len(versions) > 1:
		t.State, t.Note = "", plural(len(versions), "version")+" of the application"
	default:
		t.State, t.Note = "", "All of one version"
	}
	return t
}

func healthLate(shown *healthPage) tile {
	t := tile{Title: "Duties late", Value: num(shown.Late), Link: "#duties", Note: fmt.Sprintf("Of %d that workers perform", len(shown.Duties))}
	switch {
	case len(shown.Duties) == 0:
		t.State, t.Note = "hold", "No worker reports any"
	case shown.Late > 0:
		t.State = "bad"
	}
	return t
}

func healthLag(q *ask, subscribed []ops.Subscribed, shown *healthPage) tile {
	t := tile{Title: "Subscriptions behind", Value: "0", Link: q.link("/deliveries"), Note: "Nobody is subscribed"}
	for _, one := range subscribed {
		if one.Lag > 1000 {
			shown.Lagging = append(shown.Lagging, one)
		}
	}
	if len(subscribed) > 0 {
		t.Value, t.Note = num(len(shown.Lagging)), fmt.Sprintf("Of %d, by more than 1,000 events", len(subscribed))
	}
	if len(shown.Lagging) > 0 {
		t.State = "hold"
	}
	return t
}

// healthRetention says how long ended jobs are kept.
func (q *ask) healthRetention(shown *healthPage) {
	var err error
	if shown.Retention, err = q.desk.Retention(q.ctx); err != nil {
		shown.NoRules = sentence(err)
		return
	}
	for _, count := range shown.Retention.Counts {
		shown.Purged += count.Jobs
	}
	for _, rule := range shown.Retention.Rules {
		shown.Rules = append(shown.Rules, healthRule{rule.Name, healthWhich(rule), healthKeeps(rule.For)})
	}
}

// healthWhich says which jobs a rule is about.
func healthWhich(r holdfast.Retain) string {
	words := ""
	for _, one := range [][2]string{{"state", string(r.State)}, {"kind", r.Kind}, {"owner", r.Owner}, {"code", r.Code}, {"group", string(r.Group)}} {
		if one[1] != "" {
			words += one[0] + " " + one[1] + ", "
		}
	}
	if words == "" {
		return "every ended job"
	}
	return words[:len(words)-2]
}

func healthKeeps(lasting time.Duration) string {
	switch {
	case lasting == holdfast.Forever:
		return "for ever"
	case lasting == 0:
		return "not at all"
	}
	return took(lasting)
}
