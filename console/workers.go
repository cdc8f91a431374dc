package console

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/key"
	"github.com/holdfastdev/holdfast/ops"
)

// mountWorkers mounts the page of workers and of what they do on a beat.
func (c *Console) mountWorkers() {
	c.see("/workers", workersScreen)
	c.do("/workers/duties/{name}/pause", key.Operator, pauseDuty)
	c.do("/workers/duties/{name}/resume", key.Operator, orderDuty("goes on in every worker.", ops.Desk.ResumeDuty))
	c.do("/workers/duties/{name}/run", key.Operator, orderDuty("is performed once by every worker, within seconds.", ops.Desk.RunDuty))
}

// mostWorkersAsked is of how many workers the page counts what they have in their hands.
const mostWorkersAsked = 100

// A workerPage is who works, on what, and how it goes.
type workerPage struct {
	Rows     []workerRow
	Slots    int
	Used     int
	Silent   int
	Versions []string
	Alone    []workerAlone
	Slow     []slowRow
	Odd      []dutyRow // duties that are paused, late, in trouble or nobody's
	Duties   []dutyRow // the others
	Late     int
}

// A workerAlone is a queue in which jobs wait and that nobody works on.
type workerAlone struct{ Queue, Link string }

// A workerRow is one worker.
type workerRow struct {
	holdfast.Presence
	Sign  sign
	Host  string // the first part of its name
	Rest  string // what tells it from others there
	Used  int    // slots in use; -1 where nobody counted
	Parts []part
	Jobs  string // finds what it has in its hands
}

// A dutyRow is something that workers do on a beat.
type dutyRow struct {
	duty.Standing
	Sign  sign
	About string
	Self  string    // what its actions begin with
	Rests bool      // it can be paused
	Soon  time.Time // the next round, when it is to come
}

// workersScreen shows who works.
func workersScreen(q *ask) (page, error) {
	workers, err := q.desk.Workers(q.ctx)
	if err != nil {
		return page{}, err
	}
	var shown workerPage
	versions := map[string]bool{}
	for n, one := range workers {
		row := workerRow{Presence: one, Used: -1, Sign: signOfWorker(one, q.now), Jobs: q.jobs("state:processing", queryPart{"worker", one.Worker}.String())}
		row.Host, row.Rest, _ = strings.Cut(one.Worker, "/")
		if n < mostWorkersAsked {
			if row.Used, err = q.desk.Count(q.ctx, holdfast.Filter{State: holdfast.Processing, Worker: one.Worker, Look: lookedAt}); err != nil {
				return page{}, err
			}
			row.Parts = []part{{min(row.Used, one.Slots), "accent", num(row.Used) + " in use"}, {max(one.Slots-row.Used, 0), "none", "free"}}
			shown.Used += row.Used
		}
		if shown.Slots += one.Slots; row.Sign.Word == "silent" {
			shown.Silent++
		}
		if one.Version != "" {
			versions[one.Version] = true
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.Versions = slices.Sorted(maps.Keys(versions))
	depths, err := q.desk.Depths(q.ctx)
	if err != nil {
		return page{}, err
	}
	var seen overview
	if err := q.manned(&seen, depths); err != nil {
		return page{}, err
	}
	shown.Slow = seen.Slow
	for _, name := range seen.Unmanned {
		shown.Alone = append(shown.Alone, workerAlone{name, q.queue(name)})
	}
	if err := q.duties(&shown); err != nil {
		return page{}, err
	}
	return page{name: "workers", title: "Workers", topics: []string{"workers", "jobs"}, data: shown}, nil
}

// signOfWorker says whether a worker was heard of lately. It is believed to be alive for a while after each report, and reports several times within
// that while.
func signOfWorker(w holdfast.Presence, now time.Time) sign {
	if believed := w.Until.Sub(w.SeenAt); now.Sub(w.SeenAt) > believed*2/3 {
		return sign{"silent", "warn", "partial"}
	}
	return sign{"alive", "good", "complete"}
}

// duties tells what workers do on a beat.
func (q *ask) duties(shown *workerPage) error {
	all, err := q.desk.Duties(q.ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		row := dutyRow{Standing: one, Sign: signOfDuty(one), About: dutyWords[one.Name], Rests: duty.Pausable(one.Name), Self: q.link("/workers/duties/" + url.PathEscape(one.Name))}
		if one.Next.After(q.now) {
			row.Soon = one.Next
		}
		if row.Sign.Tone == "bad" {
			shown.Late++
		}
		if row.Sign.Tone != "good" {
			shown.Odd = append(shown.Odd, row)
			continue
		}
		shown.Duties = append(shown.Duties, row)
	}
	return nil
}

// dutyLate is how far behind a duty is noticed: one round that takes a little longer is nobody's concern.
const dutyLate = 30 * time.Second

func signOfDuty(d duty.Standing) sign {
	switch {
	case d.Paused:
		return sign{"paused", "paused", "held"}
	case d.Workers == 0:
		return sign{"nobody", "queued", "queued"}
	case d.Lag > dutyLate:
		return sign{took(d.Lag) + " late", "bad", "failed"}
	case d.Error != "" && !d.ErrorAt.Before(d.Last):
		return sign{"trouble", "bad", "failed"}
	}
	return sign{"on time", "good", "complete"}
}

// dutyWords say what duties are for.
var dutyWords = map[string]string{
	"claim": "takes jobs into workers’ hands", "wake": "hears of new jobs at once", "renew": "keeps the leases of what is processing", "watch": "stops handlers that take too long",
	"breakers": "opens and closes breakers", "trickle": "claims often while a hold lets a few through", "duties": "hears what people order",
	"promote": "makes jobs claimable when they are due", "reclaim": "takes over from workers that went silent", "expire": "ends what could not start in time",
	"sequence": "numbers the feed", "group": "settles groups", "schedule": "enqueues by the clock", "retention": "purges what was kept long enough", "artifacts": "lets files expire",
	"redrive": "sends dead letters round again", "budget": "holds retries of owners who have used up their budget", "learn": "looks at what became of retries", "policy": "follows the policy",
	"deadline": "notices attempts that start later than promised", "probes": "asks whether dependencies are back", "relay": "tells subscriptions",
}

func pauseDuty(q *ask) (done, error) {
	lasting, err := q.lasting()
	if err != nil {
		return done{}, err
	}
	name := q.PathValue("name")
	if q.text("reason") == "" {
		return done{}, unfit("nothing was paused: say why, so that others understand it later")
	}
	return done{text: "Every worker leaves the duty " + cut(name, 60) + " alone" + untilWords(lasting) + "."}, q.desk.PauseDuty(q.ctx, name, lasting, q.by())
}

// untilWords say how long a pause lasts.
func untilWords(lasting time.Duration) string {
	if lasting == 0 {
		return " until it is resumed"
	}
	return " for " + took(lasting)
}

// orderDuty is a person's word on a duty.
func orderDuty(text string, order func(ops.Desk, context.Context, string, ops.By) error) deed {
	return func(q *ask) (done, error) {
		name := q.PathValue("name")
		return done{text: "The duty " + cut(name, 60) + " " + text}, order(q.desk, q.ctx, name, q.by())
	}
}
