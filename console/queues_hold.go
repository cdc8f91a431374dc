package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A holdRow is a hold as it is shown.
type holdRow struct {
	ops.Held
	Row     string // its name on the page
	Scope   string
	Name    string
	Pattern bool   // it stands for every name that begins so
	Lets    string // what it lets through, in words
	Keeper  string // who keeps it, in words
	Breaker string // the page of the breaker whose hold it is
	Lift    bool   // a person may lift it, and it stays lifted
	Jobs    string // finds the jobs behind it, when a search can say it
	Due     bool   // its keeper is about to decide about it anew
}

// holdKeepers say who keeps the holds of a source.
var holdKeepers = map[string]string{
	holdfast.SourceBreaker: "its breaker", holdfast.SourceBudget: "the retry budget", holdfast.SourceLimit: "a limit",
	holdfast.SourceWindow: "a window without retries", holdfast.SourceHandler: "a handler that was told to come back later",
}

// holdRow puts a hold into words.
func (q *ask) holdRow(h ops.Held, n int) holdRow {
	scope, name := h.On()
	row := holdRow{Held: h, Row: "hold-" + strconv.Itoa(n), Scope: scope, Name: name, Pattern: strings.HasSuffix(name, "*"), Keeper: holdKeepers[h.Source], Lets: holdLets(h.Hold), Due: !h.Expected.After(q.now)}
	if h.Source == holdfast.SourceBreaker {
		row.Breaker = q.link("/breakers/" + url.PathEscape(name))
	}
	row.Lift = slices.Contains([]string{"", holdfast.SourceOperator, holdfast.SourceLimit, holdfast.SourceHandler}, h.Source)
	if !row.Pattern {
		state := "state:queued"
		if h.Retries {
			state = "is:retrying"
		}
		row.Jobs = q.jobs(state, queryPart{scope, name}.String())
	}
	return row
}

// holdLets says what a hold lets through.
func holdLets(h holdfast.Hold) string {
	text := "nothing"
	switch {
	case h.AtMost > 0 && h.Rate != nil:
		text = fmt.Sprintf("%s at once, %s a second", num(h.AtMost), holdPace(h.Rate.PerSecond))
	case h.AtMost > 0:
		text = num(h.AtMost) + " at once"
	case h.Rate != nil:
		text = holdPace(h.Rate.PerSecond) + " a second"
	}
	if h.Retries {
		return "first attempts, and of retries " + text
	}
	return text
}

func holdPace(perSecond float64) string {
	return num(strconv.FormatFloat(perSecond, 'f', -1, 64))
}

// lasting reads how long something is to last; nothing said is until a person ends it.
func (q *ask) lasting() (time.Duration, error) {
	text := q.text("for")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, unfit("how long is %.40q? Say it as 90s, 15m or 24h, or leave it out", text)
	}
	return d, nil
}

// untilWords say how long a pause lasts.
func untilWords(lasting time.Duration) string {
	if lasting == 0 {
		return " until it is resumed"
	}
	return " for " + took(lasting)
}

// placeHold pauses something, or lets only so much of it through.
func placeHold(q *ask) (done, error) {
	h, err := q.holdMeant()
	if err != nil {
		return done{}, err
	}
	if h.Reason == "" {
		return done{}, unfit("nothing was held: say why, so that others understand it later")
	}
	if h.For, err = q.lasting(); err != nil {
		return done{}, err
	}
	if text := q.text("at_most"); text != "" {
		if h.AtMost, err = strconv.Atoi(text); err != nil || h.AtMost < 1 {
			return done{}, unfit("at most %.40q at once: give a whole number from 1, or leave it out to let nothing through", text)
		}
	}
	if text := q.text("rate"); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			return done{}, unfit("%.40q a second: give a number above 0, or leave it out", text)
		}
		h.Rate = &holdfast.Rate{PerSecond: rate, Burst: max(rate, 1), Level: max(rate, 1)}
	}
	h.Retries = q.text("retries") != ""
	scope, name := h.On()
	return done{text: holdSaid(h, scope, name)}, q.desk.Pause(q.ctx, h)
}

// holdSaid tells what a hold does from now on.
func holdSaid(h holdfast.Hold, scope, name string) string {
	text := fmt.Sprintf("The %s %s is paused: its jobs stay queued and spend nothing, and what is being processed goes on.", scope, cut(name, 100))
	if !h.Closed() || h.Retries {
		text = fmt.Sprintf("The hold on %s %s lets through: %s.", scope, cut(name, 100), holdLets(h))
	}
	if h.For > 0 {
		text += " It ends by itself in " + took(h.For) + "."
	}
	return text
}

// liftHold lets jobs go on.
func liftHold(q *ask) (done, error) {
	h, err := q.holdMeant()
	if err != nil {
		return done{}, err
	}
	h.Source = q.text("source")
	scope, name := h.On()
	return done{text: fmt.Sprintf("The hold on %s %s is lifted: its jobs are claimed again.", scope, cut(name, 100))}, q.desk.Resume(q.ctx, h)
}

// holdMeant reads what a hold is on.
func (q *ask) holdMeant() (holdfast.Hold, error) {
	scope, name := q.text("scope"), q.FormValue("name")
	if !slices.Contains([]string{"queue", "kind", "owner", "dependency", "tag"}, scope) {
		return holdfast.Hold{}, unfit("a hold on %.40q: choose queue, kind, owner, dependency or tag", scope)
	}
	if name == "" {
		return holdfast.Hold{}, unfit("a hold on no %s: name it", scope)
	}
	h := holdfast.Hold{}.Upon(scope, name)
	h.Actor, h.Reason = q.visitor.Name, q.text("reason")
	return h, nil
}

// setShare gives an owner a weight.
func setShare(q *ask) (done, error) {
	weight, err := strconv.ParseFloat(q.text("weight"), 64)
	if err != nil {
		return done{}, unfit("weight %.40q: give a number from 0.001 to 1000; 1 is what everybody has", q.text("weight"))
	}
	share := ops.Share{Owner: q.FormValue("owner"), Weight: weight}
	text := fmt.Sprintf("Owner %s has weight %v now.", cut(share.Owner, 100), weight)
	if weight == 1 {
		text = fmt.Sprintf("Owner %s has the weight that everybody has.", cut(share.Owner, 100))
	}
	return done{text: text}, q.desk.SetShare(q.ctx, share, q.by())
}
