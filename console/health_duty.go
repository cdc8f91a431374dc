package console

import (
	"fmt"
	"net/url"

	"github.com/holdfastdev/holdfast/duty"
)

// dutyTexts says what each duty does.
var dutyTexts = map[string]string{
	"artifacts": "expires artifacts", "breakers": "records calls for breakers and places their holds", "budget": "records the retry budget that owners use",
	"claim": "claims jobs", "deadline": "finds missed retry deadlines", "duties": "applies requests for duties and reports their state",
	"expire": "ends jobs that did not start in time", "group": "settles groups and starts members that waited for others", "learn": "learns which retries succeed",
	"policy": "loads the applied policy", "probes": "probes dependencies", "promote": "makes due jobs claimable", "reclaim": "reclaims jobs whose lease has expired",
	"redrive": "advances redrives", "relay": "creates deliveries for subscriptions", "renew": "renews leases", "retention": "purges ended jobs",
	"schedule": "enqueues the jobs of schedules", "sequence": "numbers events and extends the hash chain", "trickle": "claims jobs behind a hold that allows a few", "wake": "listens for new jobs",
	"watch": "stops attempts whose lease is lost",
}

// healthDuty returns the row of a duty.
func (q *request) healthDuty(s duty.Status) healthDuty {
	row := healthDuty{Status: s, Does: dutyTexts[s.Name], Pausable: duty.Pausable(s.Name), Act: q.link("/health/duties/" + url.PathEscape(s.Name)), StateBadge: stateBadge{"on time", "good", "complete"}}
	row.Failing = !s.ErrorAt.IsZero() && !s.ErrorAt.Before(s.Last)
	switch {
	case s.Paused:
		row.StateBadge = stateBadge{"paused", "paused", "held"}
	case s.Workers == 0:
		row.StateBadge = stateBadge{"no worker", "hold", "cancelled"}
	case s.Lag > lateAfter:
		row.StateBadge = stateBadge{"late", "bad", "failed"}
	case row.Failing:
		row.StateBadge = stateBadge{"failing", "hold", "failed"}
	}
	return row
}

func runHealthDuty(q *request) (actionResult, error) {
	name := q.PathValue("name")
	return actionResult{text: fmt.Sprintf("Duty %s runs once in every worker.", name)}, q.operator.RunDuty(q.ctx, name, q.by())
}

func pauseHealthDuty(q *request) (actionResult, error) {
	name := q.PathValue("name")
	lasting, err := q.durationField()
	if err != nil {
		return actionResult{}, err
	}
	return actionResult{text: fmt.Sprintf("Duty %s paused in every worker%s.", name, untilWords(lasting))}, q.operator.PauseDuty(q.ctx, name, lasting, q.by())
}

func resumeHealthDuty(q *request) (actionResult, error) {
	name := q.PathValue("name")
	return actionResult{text: fmt.Sprintf("Duty %s resumed.", name)}, q.operator.ResumeDuty(q.ctx, name, q.by())
}
