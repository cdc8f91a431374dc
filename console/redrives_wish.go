package console

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
)

// A wish is what a visitor has told the wizard so far. All of it is in the address, so that going back and loading again work.
type wish struct {
	Pick    pick
	Jobs    []holdfast.ID // only these, whatever the pick says
	All     bool          // everything, when nothing is picked
	Discard bool

	PerSecond float64
	Canary    int
	StopAbove float64 // percent
	StopAfter int
	InFlight  int
	Limit     int // 0: all
	To        string
	Reason    string

	Problem string // what cannot be read, as a sentence
	at      string // the step that can mend it
}

// usualCanary is how many go first unless somebody says otherwise: enough to see whether it still fails, few enough not to hurt.
const usualCanary = 5

// mostJobs bounds how many jobs may be named one by one; more are selected by what they have in common.
const mostJobs = 200

// wishOf reads a wish from a request. What cannot be read is told, and the usual is taken instead.
func wishOf(q *ask) wish {
	w := wish{Pick: pickOf(q), All: q.text("all") == "true", Discard: q.text("discard") == "true", To: q.text("to"), Reason: q.text("reason")}
	_, err := w.Pick.filter()
	w.complain("select", err)
	switch {
	case q.text("matching") == "true": // of the list of dead letters: not those on its page, but all
		w.All = w.Pick.Empty()
	case q.text("from") == "list" && len(q.Form["job"]) == 0:
		w.complain("select", unfit("no job was chosen: go back and choose some, or name here what you mean"))
	default:
		w.name(q.Form["job"])
	}
	w.PerSecond = w.number(q, "rate", "the rate", redrive.DefaultPerSecond)
	w.StopAbove = w.number(q, "stop", "the share that may fail again", redrive.DefaultStopAbove*100)
	w.StopAfter = w.whole(q, "after", "how many are judged", redrive.DefaultStopAfter)
	w.InFlight = w.whole(q, "flight", "how many may be under way", redrive.DefaultInFlight)
	w.Limit = w.whole(q, "limit", "the limit", 0)
	if canary := w.whole(q, "canary", "the canary", usualCanary); !w.Discard {
		w.Canary = canary
	}
	if w.Selects() {
		w.complain("pace", w.order(q).Check())
	}
	return w
}

// name reads jobs that are named one by one.
func (w *wish) name(jobs []string) {
	for _, text := range jobs {
		id, err := holdfast.ParseID(text)
		if err != nil {
			w.complain("select", unfit("the job %q is no id: choose the jobs in the list", cut(text, 60)))
			continue
		}
		if !slices.Contains(w.Jobs, id) {
			w.Jobs = append(w.Jobs, id)
		}
	}
	if len(w.Jobs) > mostJobs {
		w.complain("select", unfit("these are %d jobs: choose at most %d one by one, or select them by what they have in common", len(w.Jobs), mostJobs))
		w.Jobs = w.Jobs[:mostJobs]
	}
}

// complain keeps the first thing that is wrong.
func (w *wish) complain(step string, err error) {
	if err == nil || w.Problem != "" {
		return
	}
	w.Problem, w.at = sentence(err), step
}

func (w *wish) number(q *ask, name, what string, usual float64) float64 {
	text := q.text(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n <= 0 {
		w.complain("pace", unfit("%s %q is no number above 0", what, cut(text, 20)))
		return usual
	}
	return n
}

func (w *wish) whole(q *ask, name, what string, usual int) int {
	text := q.text(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		w.complain("pace", unfit("%s %q is no whole number", what, cut(text, 20)))
		return usual
	}
	return n
}

// Selects reports whether it is said which dead letters are meant.
func (w wish) Selects() bool { return len(w.Jobs) > 0 || w.All || !w.Pick.Empty() }

// Verb is what happens to them.
func (w wish) Verb() string {
	if w.Discard {
		return "discard"
	}
	return "redrive"
}

// order is the wish as the desk takes it. Its jobs are not in it: those are named one by one.
func (w wish) order(q *ask) redrive.Order {
	o := redrive.Order{
		PerSecond: w.PerSecond, Canary: w.Canary, StopAbove: w.StopAbove / 100, StopAfter: w.StopAfter, InFlight: w.InFlight, Limit: w.Limit, Queue: w.To,
		Discard: w.Discard, Actor: q.visitor.Name, Reason: w.Reason, Request: q.request,
	}
	if o.Discard && o.Reason == "" {
		o.Reason = "not said yet" // it is asked for at the end; whoever leaves it out then is refused
	}
	o.Filter, _ = w.Pick.filter() // was complained about
	o.All = w.Pick.Empty()
	return o
}

// values are the parameters of a wish. What is usual is left out.
func (w wish) values() url.Values {
	query := w.Pick.values()
	if len(w.Jobs) > 0 {
		query = url.Values{}
	}
	for _, id := range w.Jobs {
		query.Add("job", id.String())
	}
	set := func(name, value, usual string) {
		if value != usual {
			query.Set(name, value)
		}
	}
	set("all", strconv.FormatBool(w.All && len(query) == 0), "false")
	set("discard", strconv.FormatBool(w.Discard), "false")
	set("rate", plainNumber(w.PerSecond), plainNumber(redrive.DefaultPerSecond))
	set("stop", plainNumber(w.StopAbove), plainNumber(redrive.DefaultStopAbove*100))
	set("after", strconv.Itoa(w.StopAfter), strconv.Itoa(redrive.DefaultStopAfter))
	set("flight", strconv.Itoa(w.InFlight), strconv.Itoa(redrive.DefaultInFlight))
	set("limit", strconv.Itoa(w.Limit), "0")
	if !w.Discard {
		set("canary", strconv.Itoa(w.Canary), strconv.Itoa(usualCanary))
	}
	set("to", w.To, "")
	set("reason", w.Reason, "")
	return query
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// hidden are the parameters that a form carries on beside its own fields.
func (w wish) hidden(own ...string) (fields []pickedField) {
	query := w.values()
	for _, name := range own {
		query.Del(name)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			fields = append(fields, pickedField{name, value})
		}
	}
	return fields
}

// confirmed refuses a wish whose visitor has not said why, or has not typed the number that would go now.
func (w wish) confirmed(q *ask, going int) error {
	typed, err := strconv.Atoi(strings.NewReplacer(",", "", " ", "", ".", "", "'", "", "_", "").Replace(q.text("count")))
	switch {
	case w.Problem != "":
		return unfit("nothing was done: %s", w.Problem)
	case w.Reason == "":
		return unfit("nothing was done: say why, so that others understand it later")
	case going == 0:
		return &holdfast.Error{Kind: holdfast.ErrConflict, Message: "nothing was done: there is nothing left to " + w.Verb() + ". Look at the preview again"}
	case err != nil:
		return unfit("nothing was done: type the number %d to confirm", going)
	case typed != going:
		return &holdfast.Error{Kind: holdfast.ErrConflict, Message: "nothing was done: you confirmed " + num(typed) + ", and it would be " + num(going) + " now. Look again, and type " + strconv.Itoa(going) + " if that is right"}
	}
	return nil
}
