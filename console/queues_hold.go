package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A holdRow is a hold on the page.
type holdRow struct {
	ops.HoldStatus
	Row     string // id of its row
	Scope   string
	Name    string
	Pattern bool   // its name ends in * and covers every name with that prefix
	Allows  string // what it allows, in words
	KeptBy  string // its source, in words; empty for an operator
	Breaker string // URL of the breaker, if it is the hold of one
	Lift    bool   // a person can lift it; other holds are placed again by their source
	Jobs    string // URL of the held jobs, if a search can select them
	Due     bool   // its source is about to change it
}

// holdSources are the sources of holds in words.
var holdSources = map[string]string{
	store.SourceBreaker: "its breaker", store.SourceBudget: "the retry budget", store.SourceLimit: "a limit",
	store.SourceWindow: "a time window", store.SourceHandler: "a handler that asked to wait",
}

// holdRow returns the row of a hold.
func (q *request) holdRow(h ops.HoldStatus, n int) holdRow {
	scope, name := h.Scope()
	row := holdRow{HoldStatus: h, Row: "hold-" + strconv.Itoa(n), Scope: scope, Name: name, Pattern: strings.HasSuffix(name, "*"), KeptBy: holdSources[h.Source], Allows: allowedText(h.Hold), Due: !h.Expected.After(q.now)}
	if h.Source == store.SourceBreaker {
		row.Breaker = q.link("/breakers/" + url.PathEscape(name))
	}
	row.Lift = slices.Contains([]string{"", store.SourceOperator, store.SourceLimit, store.SourceHandler}, h.Source)
	if !row.Pattern {
		state := "state:queued"
		if h.Retries {
			state = "is:retrying"
		}
		row.Jobs = q.jobs(state, queryPart{scope, name}.String())
	}
	return row
}

// allowedText says what a hold allows.
func allowedText(h store.Hold) string {
	text := "nothing"
	switch {
	case h.AtMost > 0 && h.Rate != nil:
		text = fmt.Sprintf("%s at once, %s per second", num(h.AtMost), rateText(h.Rate.PerSecond))
	case h.AtMost > 0:
		text = num(h.AtMost) + " at once"
	case h.Rate != nil:
		text = rateText(h.Rate.PerSecond) + " per second"
	}
	if h.Retries {
		return "first attempts; retries: " + text
	}
	return text
}

func rateText(perSecond float64) string {
	return num(strconv.FormatFloat(perSecond, 'f', -1, 64))
}

// durationField reads the duration in the field "for". Zero means until a person ends it.
func (q *request) durationField() (time.Duration, error) {
	text := q.text("for")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, invalid("duration %.40q is invalid: use 90s, 15m or 24h, or leave it empty", text)
	}
	return d, nil
}

// untilWords returns how long a pause lasts, in words.
func untilWords(lasting time.Duration) string {
	if lasting == 0 {
		return " until it is resumed"
	}
	return " for " + formatDuration(lasting)
}

// placeHold pauses something or limits it. It needs a reason.
func placeHold(q *request) (actionResult, error) {
	h, err := q.holdTarget()
	if err != nil {
		return actionResult{}, err
	}
	if h.Reason == "" {
		return actionResult{}, invalid("nothing was held: give a reason")
	}
	if h.For, err = q.durationField(); err != nil {
		return actionResult{}, err
	}
	if text := q.text("at_most"); text != "" {
		if h.AtMost, err = strconv.Atoi(text); err != nil || h.AtMost < 1 {
			return actionResult{}, invalid("at most %.40q at once: use a whole number from 1, or leave it empty to pause", text)
		}
	}
	if text := q.text("rate"); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			return actionResult{}, invalid("%.40q per second: use a number above 0, or leave it empty", text)
		}
		h.Rate = &store.Rate{PerSecond: rate, Burst: max(rate, 1), Level: max(rate, 1)}
	}
	h.Retries = q.text("retries") != ""
	scope, name := h.Scope()
	return actionResult{text: holdMessage(h, scope, name)}, q.operator.Pause(q.ctx, h)
}

// holdMessage returns the message for a new hold.
func holdMessage(h store.Hold, scope, name string) string {
	text := fmt.Sprintf("%s %s paused. Its jobs stay queued at no cost; running jobs continue.", title(scope), truncate(name, 100))
	if !h.Closed() || h.Retries {
		text = fmt.Sprintf("Hold placed on %s %s. It allows: %s.", scope, truncate(name, 100), allowedText(h))
	}
	if h.For > 0 {
		text += " It ends automatically in " + formatDuration(h.For) + "."
	}
	return text
}

// liftHold removes a hold.
func liftHold(q *request) (actionResult, error) {
	h, err := q.holdTarget()
	if err != nil {
		return actionResult{}, err
	}
	h.Source = q.text("source")
	scope, name := h.Scope()
	return actionResult{text: fmt.Sprintf("Hold on %s %s lifted. Its jobs can be claimed again.", scope, truncate(name, 100))}, q.operator.Resume(q.ctx, h)
}

// holdTarget reads what a hold is on.
func (q *request) holdTarget() (store.Hold, error) {
	scope, name := q.text("scope"), q.FormValue("name")
	if !slices.Contains([]string{"queue", "kind", "owner", "dependency", "tag"}, scope) {
		return store.Hold{}, invalid("a hold on %.40q: choose queue, kind, owner, dependency or tag", scope)
	}
	if name == "" {
		return store.Hold{}, invalid("a hold needs the name of a %s", scope)
	}
	h := store.Hold{}.WithScope(scope, name)
	h.Actor, h.Reason = q.visitor.Name, q.text("reason")
	return h, nil
}

// setShare sets the weight of an owner.
func setShare(q *request) (actionResult, error) {
	weight, err := strconv.ParseFloat(q.text("weight"), 64)
	if err != nil {
		return actionResult{}, invalid("weight %.40q: use a number from 0.001 to 1000; the default is 1", q.text("weight"))
	}
	share := ops.Share{Owner: q.FormValue("owner"), Weight: weight}
	text := fmt.Sprintf("Owner %s now has weight %v.", truncate(share.Owner, 100), weight)
	if weight == 1 {
		text = fmt.Sprintf("Owner %s now has the default weight.", truncate(share.Owner, 100))
	}
	return actionResult{text: text}, q.operator.SetShare(q.ctx, share, q.by())
}
