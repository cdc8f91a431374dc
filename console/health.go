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
	"github.com/holdfastdev/holdfast/store"
)

// mountHealth mounts the health page and its actions. The result of the last integrity check is kept in memory for all visitors.
func (c *Console) mountHealth() {
	checks := new(healthChecks)
	c.handlePage("/health", func(q *request) (page, error) { return healthScreen(q, checks) })
	c.handleAction("/health/check", apikey.Operator, checks.check)
	c.handleAction("/health/duties/{name}/run", apikey.Operator, runHealthDuty)
	c.handleAction("/health/duties/{name}/pause", apikey.Operator, pauseHealthDuty)
	c.handleAction("/health/duties/{name}/resume", apikey.Operator, resumeHealthDuty)
}

// A healthPage is the data of the health page: cheap figures, and the result of the last integrity check.
type healthPage struct {
	Tiles     []tile
	Duties    []healthDuty
	Late      int // number of late duties
	Retention ops.Retention
	Rules     []healthRule
	Purged    int
	NoRules   string // error of reading the rules
	Check     *healthCheck
	Busy      time.Time // start of a check in progress
	Lagging   []ops.SubscriptionStatus
}

// A healthDuty is a duty on the page.
type healthDuty struct {
	duty.Status
	Does       string
	StateBadge stateBadge
	Pausable   bool // the duty can be paused and run by hand
	Act        string
	Failing    bool // its last error is newer than its last successful run
}

// healthRank orders duties: those that need attention first.
var healthRank = map[string]int{"late": 1, "failing": 2, "no worker": 3, "paused": 4, "on time": 5}

// A healthRule is a retention rule in words.
type healthRule struct{ Name, Which, Keeps string }

// lateAfter is the delay after which a duty is late. Workers report their duties every five seconds.
const lateAfter = 5 * time.Second

func healthScreen(q *request, checks *healthChecks) (page, error) {
	shown := healthPage{}
	shown.Check, shown.Busy = checks.now()
	duties, err := q.operator.Duties(q.ctx)
	if err != nil {
		return page{}, err
	}
	for _, one := range duties {
		row := q.healthDuty(one)
		if row.StateBadge.Word == "late" {
			shown.Late++
		}
		shown.Duties = append(shown.Duties, row)
	}
	slices.SortStableFunc(shown.Duties, func(a, b healthDuty) int {
		return cmp.Compare(healthRank[a.StateBadge.Word], healthRank[b.StateBadge.Word])
	})
	q.healthRetention(&shown)
	if shown.Tiles, err = q.healthTiles(&shown); err != nil {
		return page{}, err
	}
	return page{name: "health", title: "Health", topics: []string{"workers", "feed"}, data: shown}, nil
}

// healthTiles returns the figures at the top of the page. All are cheap queries.
func (q *request) healthTiles(shown *healthPage) ([]tile, error) {
	asked := time.Now()
	jobs, _, err := q.operator.Jobs(q.ctx, store.Filter{Limit: 1})
	if err != nil {
		return nil, err
	}
	answered := time.Since(asked)
	workers, err := q.operator.Workers(q.ctx)
	if err != nil {
		return nil, err
	}
	latest, err := q.operator.LatestEvents(q.ctx, 1)
	if err != nil {
		return nil, err
	}
	subscribed, err := q.operator.Subscriptions(q.ctx)
	if err != nil {
		return nil, err
	}
	feed := tile{Title: "Feed", Value: num(latest.Head), Link: q.link("/audit"), Note: "No events yet"}
	if n := len(latest.Events); n > 0 {
		feed.Note = q.timeNote("Numbered events, last ", latest.Events[n-1].At)
	}
	return []tile{
		{Title: "Store response time", Value: formatDuration(max(answered, time.Microsecond)), Note: "One query, just now"},
		healthClock(jobs, asked.Add(answered/2), answered), healthWorkers(q, workers), healthLate(shown), feed, healthLag(q, subscribed, shown),
	}, nil
}

// healthClock compares the clock of the store with the clock of this server. Differences within the duration of the query are ignored.
func healthClock(jobs []holdfast.Job, at time.Time, within time.Duration) tile {
	t := tile{Title: "Clock difference", Value: "?", Note: "Unknown: the store has no jobs"}
	if len(jobs) == 0 || jobs[0].AsOf.IsZero() {
		return t
	}
	apart := jobs[0].AsOf.Sub(at).Abs()
	t.Note = "Store against this server"
	if apart <= max(within, 50*time.Millisecond) {
		t.Value, apart = "0 s", 0
	} else {
		t.Value = formatDuration(apart)
	}
	if apart > 2*time.Second {
		t.State, t.Note = "hold", "The clock of the store applies; correct this server's clock"
	}
	return t
}

func healthWorkers(q *request, workers []store.WorkerInfo) tile {
	t := tile{Title: "Workers alive", Value: num(len(workers)), Link: q.link("/workers"), Note: "Start a worker", State: "bad"}
	versions := map[string]bool{}
	for _, one := range workers {
		versions[one.Version] = true
	}
	switch {
	case len(workers) == 0:
	case len(versions) > 1:
		t.State, t.Note = "", plural(len(versions), "version")+" of the application"
	default:
		t.State, t.Note = "", "All on one version"
	}
	return t
}

func healthLate(shown *healthPage) tile {
	t := tile{Title: "Late duties", Value: num(shown.Late), Link: "#duties", Note: fmt.Sprintf("of %d duties", len(shown.Duties))}
	switch {
	case len(shown.Duties) == 0:
		t.State, t.Note = "hold", "No worker reports duties"
	case shown.Late > 0:
		t.State = "bad"
	}
	return t
}

func healthLag(q *request, subscribed []ops.SubscriptionStatus, shown *healthPage) tile {
	t := tile{Title: "Subscriptions behind", Value: "0", Link: q.link("/deliveries"), Note: "No subscriptions"}
	for _, one := range subscribed {
		if one.Lag > 1000 {
			shown.Lagging = append(shown.Lagging, one)
		}
	}
	if len(subscribed) > 0 {
		t.Value, t.Note = num(len(shown.Lagging)), fmt.Sprintf("of %d, by more than 1,000 events", len(subscribed))
	}
	if len(shown.Lagging) > 0 {
		t.State = "hold"
	}
	return t
}

// healthRetention sets the retention rules.
func (q *request) healthRetention(shown *healthPage) {
	var err error
	if shown.Retention, err = q.operator.Retention(q.ctx); err != nil {
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

// healthWhich returns which jobs a rule matches.
func healthWhich(r store.RetentionRule) string {
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
	case lasting == store.Forever:
		return "forever"
	case lasting == 0:
		return "deleted at once"
	}
	return formatDuration(lasting)
}
