package console

import (
	"fmt"
	"net/url"

	"github.com/holdfastdev/holdfast/duty"
)

// healthDoes says what each duty is there for.
var healthDoes = map[string]string{
	"artifacts": "has artifacts expire whose time is up", "breakers": "tells breakers what was called, and holds what they do not let through", "budget": "writes down what owners' retries use up",
	"claim": "claims jobs", "deadline": "finds promises of a next attempt that were not kept", "duties": "hears what people order of duties, and reports",
	"expire": "ends jobs that could not start in time", "group": "settles groups, and starts members that waited for others", "learn": "learns what became of retries",
	"policy": "follows the policy that was applied", "probes": "asks dependencies how they are", "promote": "makes jobs claimable whose time has come", "reclaim": "takes over what lost workers left behind",
	"redrive": "takes redrives a step further", "relay": "makes deliveries of what subscriptions want to know", "renew": "renews leases", "retention": "purges ended jobs whose time is up",
	"schedule": "makes the jobs of schedules", "sequence": "numbers the feed and seals what was told", "trickle": "claims where a hold lets a few through", "wake": "hears of new work at once",
	"watch": "stops attempts whose lease is lost",
}

// healthDuty judges a duty.
func (q *ask) healthDuty(s duty.Standing) healthDuty {
	row := healthDuty{Standing: s, Does: healthDoes[s.Name], CanWait: duty.Pausable(s.Name), Act: q.link("/health/duties/" + url.PathEscape(s.Name)), Look: sign{"on time", "good", "complete"}}
	row.Clash = !s.ErrorAt.IsZero() && !s.ErrorAt.Before(s.Last)
	switch {
	case s.Paused:
		row.Look = sign{"paused", "paused", "held"}
	case s.Workers == 0:
		row.Look = sign{"nobody", "hold", "cancelled"}
	case s.Lag > healthPatience:
		row.Look = sign{"late", "bad", "failed"}
	case row.Clash:
		row.Look = sign{"troubled", "hold", "failed"}
	}
	return row
}

func runHealthDuty(q *ask) (done, error) {
	name := q.PathValue("name")
	return done{text: fmt.Sprintf("Every worker performs the duty %s once, out of turn.", name)}, q.desk.RunDuty(q.ctx, name, q.by())
}

func pauseHealthDuty(q *ask) (done, error) {
	name := q.PathValue("name")
	lasting, err := q.lasting()
	if err != nil {
		return done{}, err
	}
	return done{text: fmt.Sprintf("The duty %s rests in every worker%s.", name, untilWords(lasting))}, q.desk.PauseDuty(q.ctx, name, lasting, q.by())
}

func resumeHealthDuty(q *ask) (done, error) {
	name := q.PathValue("name")
	return done{text: fmt.Sprintf("The duty %s goes on.", name)}, q.desk.ResumeDuty(q.ctx, name, q.by())
}
