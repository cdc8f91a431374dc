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

// A redriveForm is the input of the wizard so far. All of it is in the URL, so that going back and reloading work.
type redriveForm struct {
	Filter  deadLetterFilter
	Jobs    []holdfast.ID // only these jobs; the filter is ignored
	All     bool          // every dead letter, if the filter is empty
	Discard bool

	PerSecond float64
	Canary    int
	StopAbove float64 // percent
	StopAfter int
	InFlight  int
	Limit     int // 0: all
	To        string
	Reason    string

	Problem     string // what is invalid, as a sentence
	problemStep string // the step where it can be corrected
}

// defaultCanary is the default number of canary jobs: enough to see whether they still fail, and few enough to do no harm.
const defaultCanary = 5

// maxJobs is the number of jobs that can be selected one by one. More are selected with a filter.
const maxJobs = 200

// redriveFormOf reads the form from a request. For an invalid value it sets Problem and uses the default.
func redriveFormOf(q *request) redriveForm {
	w := redriveForm{Filter: deadLetterFilterOf(q), All: q.text("all") == "true", Discard: q.text("discard") == "true", To: q.text("to"), Reason: q.text("reason")}
	_, err := w.Filter.storeFilter()
	w.addProblem("select", err)
	switch {
	case q.text("matching") == "true": // from the dead letters page: all matches, not only the ticked ones
		w.All = w.Filter.Empty()
	case q.text("from") == "list" && len(q.Form["job"]) == 0:
		w.addProblem("select", invalid("no job was selected: go back and select some, or fill in a field here"))
	default:
		w.name(q.Form["job"])
	}
	w.PerSecond = w.number(q, "rate", "the rate", redrive.DefaultPerSecond)
	w.StopAbove = w.number(q, "stop", "the stop limit", redrive.DefaultStopAbove*100)
	w.StopAfter = w.whole(q, "after", "the number of ended jobs", redrive.DefaultStopAfter)
	w.InFlight = w.whole(q, "flight", "the number of jobs in progress", redrive.DefaultInFlight)
	w.Limit = w.whole(q, "limit", "the limit", 0)
	if canary := w.whole(q, "canary", "the canary", defaultCanary); !w.Discard {
		w.Canary = canary
	}
	if w.Selects() {
		w.addProblem("pace", w.order(q).Check())
	}
	return w
}

// name reads jobs that were selected one by one.
func (w *redriveForm) name(jobs []string) {
	for _, text := range jobs {
		id, err := holdfast.ParseID(text)
		if err != nil {
			w.addProblem("select", invalid("job %q is not an id: select jobs in the list", truncate(text, 60)))
			continue
		}
		if !slices.Contains(w.Jobs, id) {
			w.Jobs = append(w.Jobs, id)
		}
	}
	if len(w.Jobs) > maxJobs {
		w.addProblem("select", invalid("%d jobs are selected: select at most %d one by one, or use a filter", len(w.Jobs), maxJobs))
		w.Jobs = w.Jobs[:maxJobs]
	}
}

// addProblem records the first problem.
func (w *redriveForm) addProblem(step string, err error) {
	if err == nil || w.Problem != "" {
		return
	}
	w.Problem, w.problemStep = sentence(err), step
}

func (w *redriveForm) number(q *request, name, what string, fallback float64) float64 {
	text := q.text(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n <= 0 {
		w.addProblem("pace", invalid("%s %q is not a number above 0", what, truncate(text, 20)))
		return fallback
	}
	return n
}

func (w *redriveForm) whole(q *request, name, what string, fallback int) int {
	text := q.text(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		w.addProblem("pace", invalid("%s %q is not a whole number", what, truncate(text, 20)))
		return fallback
	}
	return n
}

// Selects reports whether dead letters are selected.
func (w redriveForm) Selects() bool { return len(w.Jobs) > 0 || w.All || !w.Filter.Empty() }

// Verb returns redrive or discard.
func (w redriveForm) Verb() string {
	if w.Discard {
		return "discard"
	}
	return "redrive"
}

// order returns the redrive order for the operator. Jobs that were selected one by one are not in it.
func (w redriveForm) order(q *request) redrive.Spec {
	o := redrive.Spec{
		PerSecond: w.PerSecond, Canary: w.Canary, StopAbove: w.StopAbove / 100, StopAfter: w.StopAfter, InFlight: w.InFlight, Limit: w.Limit, Queue: w.To,
		Discard: w.Discard, Actor: q.visitor.Name, Reason: w.Reason, Request: q.requestID,
	}
	if o.Discard && o.Reason == "" {
		o.Reason = "not given yet" // the last step asks for it, and confirmed refuses an empty one
	}
	o.Filter, _ = w.Filter.storeFilter() // redriveFormOf has reported the error
	o.All = w.Filter.Empty()
	return o
}

// values returns the query parameters. Default values are left out.
func (w redriveForm) values() url.Values {
	query := w.Filter.values()
	if len(w.Jobs) > 0 {
		query = url.Values{}
	}
	for _, id := range w.Jobs {
		query.Add("job", id.String())
	}
	set := func(name, value, fallback string) {
		if value != fallback {
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
		set("canary", strconv.Itoa(w.Canary), strconv.Itoa(defaultCanary))
	}
	set("to", w.To, "")
	set("reason", w.Reason, "")
	return query
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// hidden returns the parameters that a form passes on besides its own fields.
func (w redriveForm) hidden(own ...string) (fields []formField) {
	query := w.values()
	for _, name := range own {
		query.Del(name)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			fields = append(fields, formField{name, value})
		}
	}
	return fields
}

// confirmed returns an error if the reason is missing, or if the typed number is not the number of jobs that would be taken now.
func (w redriveForm) confirmed(q *request, going int) error {
	typed, err := strconv.Atoi(strings.NewReplacer(",", "", " ", "", ".", "", "'", "", "_", "").Replace(q.text("count")))
	switch {
	case w.Problem != "":
		return invalid("nothing was changed: %s", w.Problem)
	case w.Reason == "":
		return invalid("nothing was changed: give a reason")
	case going == 0:
		return &holdfast.Error{Err: holdfast.ErrConflict, Message: "nothing was changed: there is nothing left to " + w.Verb() + ". See the preview"}
	case err != nil:
		return invalid("nothing was changed: type %d to confirm", going)
	case typed != going:
		return &holdfast.Error{Err: holdfast.ErrConflict, Message: "nothing was changed: you confirmed " + num(typed) + ", but " + num(going) + " match now. Check the preview, then type " + strconv.Itoa(going) + " to confirm"}
	}
	return nil
}
