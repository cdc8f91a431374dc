package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// maxCompletions is the number of values in one answer.
const maxCompletions = 20

// completeJobs answers with the values of a qualifier as JSON.
func (c *Console) completeJobs(w http.ResponseWriter, r *http.Request) {
	q, err := c.authenticate(w, r)
	var known []string
	if err == nil {
		known, err = q.values(q.text("name"))
	}
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(map[string][]string{"values": offerValues(known, q.text("value"))}) // strings always marshal
	_, _ = w.Write(text)
}

// offerValues returns the known values that contain what was typed, those that begin with it first.
func offerValues(known []string, typed string) []string {
	typed = strings.ToLower(typed)
	slices.Sort(known)
	begin, within := []string{}, []string{}
	for _, one := range slices.Compact(known) {
		switch at := strings.Index(strings.ToLower(one), typed); {
		case one == "" || len(one) > 200 || at < 0:
		case at == 0:
			begin = append(begin, one)
		default:
			within = append(within, one)
		}
	}
	all := append(begin, within...)
	return all[:min(len(all), maxCompletions)]
}

// values returns the values of a qualifier that cheap queries find.
func (q *request) values(name string) (known []string, err error) {
	switch name {
	case "state":
		return []string{"queued", "processing", "complete", "failed", "cancelled"}, nil
	case "is":
		return []string{"dead", "retrying"}, nil
	case "age":
		return []string{">1h", ">1d", "<15m"}, nil
	case "category":
		return failure.Categories(), nil
	case "queue":
		depths, err := q.operator.Depths(q.ctx)
		for _, one := range depths {
			known = append(known, one.Queue)
		}
		return known, err
	case "worker":
		workers, err := q.operator.Workers(q.ctx)
		for _, one := range workers {
			known = append(known, one.Worker)
		}
		return known, err
	case "redrive":
		redrives, err := q.operator.Redrives(q.ctx)
		for _, one := range redrives {
			known = append(known, one.ID.String())
		}
		return known, err
	case "code", "fingerprint":
		return q.errorGroupValues(name)
	case "dependency":
		breakers, err := q.operator.Breakers(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range breakers {
			known = append(known, one.Dependency)
		}
		recent, err := q.recentValues(name)
		return append(known, recent...), err
	case "kind", "owner", "tag":
		return q.recentValues(name)
	}
	return nil, nil
}

// errorGroupValues returns the values of recent error groups, and for codes all registered codes.
func (q *request) errorGroupValues(name string) (known []string, err error) {
	if name == "code" {
		codes, err := q.codes()
		if err != nil {
			return nil, err
		}
		for _, one := range codes {
			known = append(known, one.Code.Name)
		}
	}
	groups, _, err := q.operator.ErrorGroups(q.ctx, store.ErrorFilter{Limit: 100})
	for _, one := range groups {
		if name == "code" {
			known = append(known, one.Code)
		} else {
			known = append(known, one.Fingerprint)
		}
	}
	return known, err
}

// recentValues returns the values of the newest jobs, and of workers (kinds) or shares (owners).
func (q *request) recentValues(name string) (known []string, err error) {
	if name == "kind" {
		workers, err := q.operator.Workers(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range workers {
			known = append(known, one.Kinds...)
		}
	}
	if name == "owner" {
		shares, err := q.operator.Shares(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range shares {
			known = append(known, one.Owner)
		}
	}
	for _, f := range []store.Filter{{Limit: 200}, {Limit: 100, DeadLetters: true}} {
		jobs, _, err := q.operator.Jobs(q.ctx, f)
		if err != nil {
			return nil, err
		}
		for _, job := range jobs {
			known = append(known, map[string][]string{"kind": {job.Kind}, "owner": {job.Owner}, "dependency": {job.Dependency}, "tag": job.Tags}[name]...)
		}
	}
	return known, nil
}
