package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// mountSchedules mounts the page of what is enqueued by the clock.
func (c *Console) mountSchedules() {
	c.see("/schedules", schedulesScreen)
	c.do("/schedules/{name}/pause", apikey.Operator, pauseSchedule)
	c.do("/schedules/{name}/resume", apikey.Operator, moveSchedule("goes on. The slots of the pause are not made up for.", ops.Desk.ResumeSchedule))
	c.do("/schedules/{name}/run", apikey.Operator, moveSchedule("makes a job out of turn: a worker does it within seconds.", ops.Desk.RunSchedule))
	c.do("/schedules/{name}/remove", apikey.Operator, moveSchedule("is forgotten. Jobs it has made go on.", ops.Desk.RemoveSchedule))
}

const (
	schedulesShown = 20  // on a page
	runsAhead      = 5   // of each
	runsLookedAt   = 500 // of the jobs of its kind, to find those that it made
	runsBehind     = 3   // that are shown
)

// A schedulePage is a page of schedules, by name.
type schedulePage struct {
	Find    string
	Cards   []scheduleCard
	Many    bool   // so many that somebody may look for a name
	Problem string // what is wrong with those that cannot be read
	Pager   struct{ First, Next string }
}

// A scheduleCard is one schedule: when, what, and how it went.
type scheduleCard struct {
	ops.Scheduled
	Anchor  string
	Self    string // what its actions begin with
	Sign    sign
	Says    string // when it is due, in words
	Where   string // the zone, where one matters
	Runs    []scheduleRun
	Notes   []string
	Made    []holdfast.Job // the newest jobs it has made
	Missed  string
	Halted  bool
	Ordered int // runs out of turn that no worker has made yet
	Total   int // jobs it has made
}

// schedulesScreen shows what is enqueued by the clock.
func schedulesScreen(q *ask) (page, error) {
	shown := schedulePage{Find: q.text("name")}
	all, err := q.desk.Schedules(q.ctx, runsAhead)
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

// scheduleCard puts a schedule into words.
func (q *ask) scheduleCard(s ops.Scheduled) (card scheduleCard, err error) {
	card = scheduleCard{
		Scheduled: s, Anchor: "s-" + s.Name, Self: q.link("/schedules/" + url.PathEscape(s.Name)), Sign: sign{"on", "good", "complete"}, Says: scheduleWords(s.Schedule),
		Runs: scheduleRuns(s.Schedule, s.Next, q.prefs.clock().zone, q.now), Notes: clockChanges(s.Schedule, q.now), Missed: missedWords[s.Missed], Halted: s.Halted(q.now),
		Ordered: max(s.RunNow-s.Ran, 0), Total: s.Schedule.Runs,
	}
	if s.Cron != "" {
		card.Where = zoneOfSchedule(s.Schedule).String()
	}
	if card.Halted {
		card.Sign = sign{"paused", "paused", "held"}
	}
	if card.Total > 0 {
		card.Made, err = q.madeBy(s.Schedule)
	}
	return card, err
}

var missedWords = map[schedule.Missed]string{
	schedule.Skip: "are skipped", schedule.One: "are made up for by one job", schedule.All: "are made up for, each by a job",
}

// madeBy finds the newest jobs that a schedule has made, by the key that it gives them. It looks among the newest jobs of the kind, and no further.
func (q *ask) madeBy(s schedule.Schedule) (made []holdfast.Job, err error) {
	jobs, _, err := q.desk.Jobs(q.ctx, holdfast.Filter{Kind: s.Draft.Kind, Queue: s.Draft.Queue, Owner: s.Draft.Owner, Look: runsLookedAt, Limit: 50})
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

func pauseSchedule(q *ask) (done, error) {
	lasting, err := q.lasting()
	if err != nil {
		return done{}, err
	}
	name := q.PathValue("name")
	if q.text("reason") == "" {
		return done{}, unfit("nothing was paused: say why, so that others understand it later")
	}
	return done{text: "The schedule " + cut(name, 100) + " is paused" + untilWords(lasting) + ". Its slots pass by, and are not made up for."}, q.desk.PauseSchedule(q.ctx, name, lasting, q.by())
}

// moveSchedule is a person's word on a schedule.
func moveSchedule(text string, do func(d ops.Desk, ctx context.Context, name string, by ops.By) error) deed {
	return func(q *ask) (done, error) {
		name := q.PathValue("name")
		return done{text: "The schedule " + cut(name, 100) + " " + text}, do(q.desk, q.ctx, name, q.by())
	}
}
