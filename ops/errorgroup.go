package ops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// An ErrorGroupDetail is the full description of an error group: its status, its jobs, and what they have in common.
type ErrorGroupDetail struct {
	Group  store.ErrorGroup  `json:"group"`
	Code   failure.Code      `json:"code"`
	Jobs   []holdfast.Job    `json:"jobs"`   // jobs whose last failure belongs to the group, the newest first, at most twenty; the search is limited
	Dead   int               `json:"dead"`   // dead letters of the group, up to 10,000
	Varies []Variation       `json:"varies"` // what differs between those jobs, the one with the most values first
	Same   map[string]string `json:"same"`   // what is equal in all of them
	Story  []store.Event     `json:"story"`  // changes of status and notes, the newest first
}

// A Variation is a property that differs between the jobs of an error group.
type Variation struct {
	Name     string  `json:"name"`     // a key of the failure's context; or owner, queue, kind, worker
	Distinct int     `json:"distinct"` // number of different values
	Values   []Value `json:"values"`   // the most frequent ones, at most five
}

// A Value is one value of a Variation, with the number of jobs that have it.
type Value struct {
	Value string `json:"value"`
	Jobs  int    `json:"jobs"`
}

// maxSamples is the number of jobs of a group that are examined.
const maxSamples = 20

// ErrorGroups returns the error groups that match, the last seen first. The cursor is for the next page and empty on the last.
func (s *Service) ErrorGroups(ctx context.Context, f store.ErrorFilter) (groups []store.ErrorGroup, cursor string, err error) {
	return s.store.ErrorGroups(ctx, f)
}

// Triage changes the status of an error group, or adds a note to it.
func (s *Service) Triage(ctx context.Context, t store.Triage) error { return s.store.Triage(ctx, t) }

// ErrorGroup returns one error group. An unknown fingerprint is ErrNotFound.
func (s *Service) ErrorGroup(ctx context.Context, fingerprint string) (ErrorGroupDetail, error) {
	if fingerprint == "" {
		return ErrorGroupDetail{}, invalid("no fingerprint: name the error group")
	}
	groups, _, err := s.store.ErrorGroups(ctx, store.ErrorFilter{Fingerprint: fingerprint, Limit: 1})
	if err != nil {
		return ErrorGroupDetail{}, err
	}
	if len(groups) == 0 {
		return ErrorGroupDetail{}, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no error group %.80q: check the fingerprint", fingerprint)}
	}
	known, err := s.taxonomy(ctx)
	if err != nil {
		return ErrorGroupDetail{}, err
	}
	t := ErrorGroupDetail{Group: groups[0], Code: codeOf(known, &holdfast.Failure{Code: groups[0].Code, Category: groups[0].Category, Message: groups[0].Message})}
	if t.Jobs, err = s.sample(ctx, fingerprint); err != nil {
		return ErrorGroupDetail{}, err
	}
	if t.Dead, err = s.store.Count(ctx, store.Filter{Fingerprint: fingerprint, DeadLetters: true}, MaxCounted); err != nil {
		return ErrorGroupDetail{}, err
	}
	t.Varies, t.Same = compareJobs(t.Jobs)
	t.Story, err = s.store.Events(ctx, "error/"+fingerprint, 50)
	return t, err
}

// sample returns jobs of an error group. Jobs that failed for good are found by an index; the search for others is limited
// to maxScan jobs.
func (s *Service) sample(ctx context.Context, fingerprint string) ([]holdfast.Job, error) {
	jobs, cursor, err := s.store.Jobs(ctx, store.Filter{Fingerprint: fingerprint, Limit: maxSamples, MaxScan: maxScan})
	if err != nil || cursor == "" || len(jobs) == maxSamples {
		return jobs, err
	}
	failed, _, err := s.store.Jobs(ctx, store.Filter{Fingerprint: fingerprint, State: holdfast.Failed, Limit: maxSamples, MaxScan: maxScan})
	for _, job := range failed { // the jobs found first are newer, because the search stopped before these
		if len(jobs) < maxSamples && !slices.ContainsFunc(jobs, func(j holdfast.Job) bool { return j.ID == job.ID }) {
			jobs = append(jobs, job)
		}
	}
	return jobs, err
}

// maxScan is the number of jobs that are examined for one page when no index leads to the matches.
const maxScan = 10_000

// maxPage is the longest page that a store returns.
const maxPage = 200

// compareJobs returns what differs between failed jobs and what is equal in all of them. A key that only some of them have
// differs too.
func compareJobs(jobs []holdfast.Job) (varies []Variation, same map[string]string) {
	seen := map[string]map[string]int{}
	for _, job := range jobs {
		for name, value := range features(job) {
			if seen[name] == nil {
				seen[name] = map[string]int{}
			}
			seen[name][value]++
		}
	}
	same = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		values, total := seen[name], 0
		for _, n := range values {
			total += n
		}
		if absent := len(jobs) - total; absent > 0 {
			values[""] += absent
		}
		if len(values) > 1 {
			varies = append(varies, Variation{Name: name, Distinct: len(values), Values: topValues(values)})
			continue
		}
		for value := range values {
			same[name] = value
		}
	}
	slices.SortStableFunc(varies, func(a, b Variation) int { return cmp.Compare(b.Distinct, a.Distinct) })
	return varies, same
}

// features returns the properties that may differ between jobs of one error group.
func features(job holdfast.Job) map[string]string {
	all := map[string]string{"queue": job.Queue, "kind": job.Kind}
	if job.Owner != "" {
		all["owner"] = job.Owner
	}
	if job.Worker != "" {
		all["worker"] = job.Worker
	}
	if job.LastFailure != nil {
		maps.Copy(all, job.LastFailure.Context)
	}
	return all
}

// topValues returns the five most frequent values.
func topValues(values map[string]int) (list []Value) {
	for value, jobs := range values {
		list = append(list, Value{value, jobs})
	}
	slices.SortFunc(list, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Value, b.Value))
	})
	return list[:min(len(list), 5)]
}
