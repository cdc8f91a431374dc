package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// mostOffered is how many values are offered at once.
const mostOffered = 20

// completeJobs offers values for a qualifier.
func (c *Console) completeJobs(w http.ResponseWriter, r *http.Request) {
	q, err := c.admit(w, r)
	var known []string
	if err == nil {
		known, err = q.values(q.text("name"))
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(map[string][]string{"values": offerValues(known, q.text("value"))}) // texts always marshal
	_, _ = w.Write(text)
}

// offerValues chooses among what is known: what begins with what was typed first, then what has it within.
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
	return all[:min(len(all), mostOffered)]
}

// values are those of a qualifier that are known without looking far.
func (q *ask) values(name string) (known []string, err error) {
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
		depths, err := q.desk.Depths(q.ctx)
		for _, one := range depths {
			known = append(known, one.Queue)
		}
		return known, err
	case "worker":
		workers, err := q.desk.Workers(q.ctx)
		for _, one := range workers {
			known = append(known, one.Worker)
		}
		return known, err
	case "redrive":
		redrives, err := q.desk.Redrives(q.ctx)
		for _, one := range redrives {
			known = append(known, one.ID.String())
		}
		return known, err
	case "code", "fingerprint":
		return q.troubleValues(name)
	case "dependency":
		breakers, err := q.desk.Breakers(q.ctx)
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

// troubleValues are those of error groups, and all codes that are registered.
func (q *ask) troubleValues(name string) (known []string, err error) {
	if name == "code" {
		codes, err := q.codes()
		if err != nil {
			return nil, err
		}
		for _, one := range codes {
			known = append(known, one.Code.Name)
		}
	}
	groups, _, err := q.desk.ErrorGroups(q.ctx, holdfast.ErrorFilter{Limit: 100})
	for _, one := range groups {
		if name == "code" {
			known = append(known, one.Code)
		} else {
			known = append(known, one.Fingerprint)
		}
	}
	return known, err
}

// recentValues are those of the newest jobs, of workers and of shares.
func (q *ask) recentValues(name string) (known []string, err error) {
	if name == "kind" {
		workers, err := q.desk.Workers(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range workers {
			known = append(known, one.Kinds...)
		}
	}
	if name == "owner" {
		shares, err := q.desk.Shares(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range shares {
			known = append(known, one.Owner)
		}
	}
	for _, f := range []holdfast.Filter{{Limit: 200}, {Limit: 100, DeadLetters: true}} {
		jobs, _, err := q.desk.Jobs(q.ctx, f)
		if err != nil {
			return nil, err
		}
		for _, job := range jobs {
			known = append(known, map[string][]string{"kind": {job.Kind}, "owner": {job.Owner}, "dependency": {job.Dependency}, "tag": job.Tags}[name]...)
		}
	}
	return known, nil
}
