package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// mountSchedules mounts the schedules page and its actions.
func (c *Console) mountSchedules() {
	c.handlePage("/schedules", schedulesScreen)
	c.handleAction("/schedules/{name}/pause", apikey.Operator, pauseSchedule)
	c.handleAction("/schedules/{name}/resume", apikey.Operator, scheduleAction("resumed. Slots missed during the pause are skipped.", ops.Operator.ResumeSchedule))
	c.handleAction("/schedules/{name}/run", apikey.Operator, scheduleAction("will create a job within seconds.", ops.Operator.RunSchedule))
	c.handleAction("/schedules/{name}/remove", apikey.Operator, scheduleAction("removed. Jobs that it created continue.", ops.Operator.RemoveSchedule))
}

const (
	schedulesShown = 20  // schedules on a page
	runsAhead      = 5   // next runs shown for each
	runsLookedAt   = 500 // jobs of its kind that are examined to find its own
	runsBehind     = 3   // last runs shown for each
)

// A schedulePage is the data of the schedules page.
type schedulePage struct {
	Find    string
	Cards   []scheduleCard
	Many    bool   // there are enough for a search field
	Problem string // error of schedules that cannot be read
	Pager   struct{ First, Next string }
}

// A scheduleCard is a schedule with its next and last runs.
type scheduleCard struct {
	ops.ScheduleStatus
	Anchor     string
	Self       string // URL prefix of its actions
	StateBadge stateBadge
	When       string // its times in words
	Where      string // time zone of a cron expression
	Runs       []scheduleRun
	Notes      []string
	Made       []holdfast.Job // the newest jobs it created
	Missed     string
	Halted     bool
	Ordered    int // requested runs that no worker has created yet
	Total      int // jobs it created
}

// schedulesScreen renders the schedules page.
func schedulesScreen(q *request) (page, error) {
	shown := schedulePage{Find: q.text("name")}
	all, err := q.operator.Schedules(q.ctx, runsAhead)
	shown.Many = shown.Find != "" || len(all) > 6
	if err != nil && len(all) == 0 {
		return page{}, err
	} else if err != nil {
		shown.Problem = sentence(err)
	}
	from := q.text("from")
	for _, one := range all {
		if !strings.Contains(strings.ToLower(one.Name), strings.ToLower(shown.Find)) {
			continue
		}
		if one.Name < from {
			continue
		}
		if len(shown.Cards) == schedulesShown {
			if shown.Pager.Next == "" {
				shown.Pager.Next, _ = link(q.link("/schedules"), "name", shown.Find, "from", one.Name) // pairs
			}
			continue
		}
		card, err := q.scheduleCard(one)
		if err != nil {
			return page{}, err
		}
		shown.Cards = append(shown.Cards, card)
	}
	if from != "" {
		shown.Pager.First, _ = link(q.link("/schedules"), "name", shown.Find) // pairs
	}
	return page{name: "schedules", title: "Schedules", topics: []string{"jobs", "feed"}, data: shown}, nil
}

// scheduleCard returns the card of a schedule.
func (q *request) scheduleCard(s ops.ScheduleStatus) (card scheduleCard, err error) {
	card = scheduleCard{
		ScheduleStatus: s, Anchor: "s-" + s.Name, Self: q.link("/schedules/" + url.PathEscape(s.Name)), StateBadge: stateBadge{"on", "good", "complete"}, When: scheduleWords(s.Schedule),
		Runs: scheduleRuns(s.Schedule, s.Next, q.prefs.clock().zone, q.now), Notes: clockChanges(s.Schedule, q.now), Missed: missedWords[s.Missed], Halted: s.PausedAt(q.now),
		Ordered: max(s.RunNow-s.Ran, 0), Total: s.Schedule.Runs,
	}
	if s.Cron != "" {
		card.Where = zoneOfSchedule(s.Schedule).String()
	}
	if card.Halted {
		card.StateBadge = stateBadge{"paused", "paused", "held"}
	}
	if card.Total > 0 {
		card.Made, err = q.jobsOf(s.Schedule)
	}
	return card, err
}

var missedWords = map[schedule.Missed]string{
	schedule.Skip: "are skipped", schedule.One: "are replaced by one job", schedule.All: "get one job each",
}

// jobsOf returns the newest jobs that a schedule created, by their idempotency key. It examines only the newest jobs of the kind.
func (q *request) jobsOf(s schedule.Schedule) (made []holdfast.Job, err error) {
	jobs, _, err := q.operator.Jobs(q.ctx, store.Filter{Kind: s.Draft.Kind, Queue: s.Draft.Queue, Owner: s.Draft.Owner, MaxScan: runsLookedAt, Limit: 50})
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		if strings.HasPrefix(job.IdempotencyKey, "schedule/"+s.Name+"/") && len(made) < runsBehind {
			made = append(made, job)
		}
	}
	return made, nil
}

func pauseSchedule(q *request) (actionResult, error) {
	lasting, err := q.durationField()
	if err != nil {
		return actionResult{}, err
	}
	name := q.PathValue("name")
	if q.text("reason") == "" {
		return actionResult{}, invalid("nothing was paused: give a reason")
	}
	return actionResult{text: "Schedule " + truncate(name, 100) + " paused" + untilWords(lasting) + ". Its slots are skipped meanwhile."}, q.operator.PauseSchedule(q.ctx, name, lasting, q.by())
}

// scheduleAction returns an action on a schedule.
func scheduleAction(text string, do func(d ops.Operator, ctx context.Context, name string, by ops.Actor) error) actionFunc {
	return func(q *request) (actionResult, error) {
		name := q.PathValue("name")
		return actionResult{text: "Schedule " + truncate(name, 100) + " " + text}, do(q.operator, q.ctx, name, q.by())
	}
}
