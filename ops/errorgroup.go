package ops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// A Trouble is all about one error group: what it is, what people made of it, and where to look.
type Trouble struct {
	Group  holdfast.ErrorGroup `json:"group"`
	Code   failure.Code        `json:"code"`
	Jobs   []holdfast.Job      `json:"jobs"`   // whose last failure was of this group, the newest first, at most twenty, as far as it is worth looking
	Dead   int                 `json:"dead"`   // dead letters of this group, up to MostCounted
	Varies []Variation         `json:"varies"` // what differs between those jobs, what differs most first
	Same   map[string]string   `json:"same"`   // what is the same in all of them
	Story  []holdfast.Event    `json:"story"`  // what was said of it, the newest first
}

// A Variation is something that differs between the jobs of an error group.
type Variation struct {
	Name     string  `json:"name"`     // a key of the failure's context; or owner, queue, kind, worker
	Distinct int     `json:"distinct"` // so many values in all
	Values   []Value `json:"values"`   // the most frequent ones, at most five
}

// A Value is one of them, with the number of jobs that have it.
type Value struct {
	Value string `json:"value"`
	Jobs  int    `json:"jobs"`
}

// samples is how many jobs of a group are looked at.
const samples = 20

// ErrorGroups lists what goes wrong, the last seen first. The cursor leads to the next page and is empty on the last.
func (s *Service) ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) (groups []holdfast.ErrorGroup, cursor string, err error) {
	return s.store.ErrorGroups(ctx, f)
}

// Triage keeps a person's word on an error group, or a note.
func (s *Service) Triage(ctx context.Context, t holdfast.Triage) error { return s.store.Triage(ctx, t) }

// ErrorGroup tells all about one error group.
func (s *Service) ErrorGroup(ctx context.Context, fingerprint string) (Trouble, error) {
	if fingerprint == "" {
		return Trouble{}, invalid("no fingerprint: say which error group")
	}
	groups, _, err := s.store.ErrorGroups(ctx, holdfast.ErrorFilter{Fingerprint: fingerprint, Limit: 1})
	if err != nil {
		return Trouble{}, err
	}
	if len(groups) == 0 {
		return Trouble{}, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no error group %.80q: check the fingerprint", fingerprint)}
	}
	known, err := s.taxonomy(ctx)
	if err != nil {
		return Trouble{}, err
	}
	t := Trouble{Group: groups[0], Code: codeOf(known, &holdfast.Failure{Code: groups[0].Code, Category: groups[0].Category, Message: groups[0].Message})}
	if t.Jobs, err = s.sample(ctx, fingerprint); err != nil {
		return Trouble{}, err
	}
	if t.Dead, err = s.store.Count(ctx, holdfast.Filter{Fingerprint: fingerprint, DeadLetters: true}, MostCounted); err != nil {
		return Trouble{}, err
	}
	t.Varies, t.Same = compare(t.Jobs)
	t.Story, err = s.store.Events(ctx, "error/"+fingerprint, 50)
	return t, err
}

// sample lists jobs of an error group. Those that failed for good are found by key; others only as far as it is worth looking.
func (s *Service) sample(ctx context.Context, fingerprint string) ([]holdfast.Job, error) {
	jobs, cursor, err := s.store.Jobs(ctx, holdfast.Filter{Fingerprint: fingerprint, Limit: samples, Look: mostLooked})
	if err != nil || cursor == "" || len(jobs) == samples {
		return jobs, err
	}
	failed, _, err := s.store.Jobs(ctx, holdfast.Filter{Fingerprint: fingerprint, State: holdfast.Failed, Limit: samples, Look: mostLooked})
	for _, job := range failed { // what was looked through is newer than where looking stopped
		if len(jobs) < samples && !slices.ContainsFunc(jobs, func(j holdfast.Job) bool { return j.ID == job.ID }) {
			jobs = append(jobs, job)
		}
	}
	return jobs, err
}

// mostLooked is how many jobs a page of a console looks at where no index leads to them.
const mostLooked = 10_000

// mostListed is the longest page a store gives.
const mostListed = 200

// compare finds what differs between failed jobs and what is the same in all of them. A key that only some have differs too.
func compare(jobs []holdfast.Job) (varies []Variation, same map[string]string) {
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
			varies = append(varies, Variation{Name: name, Distinct: len(values), Values: most(values)})
			continue
		}
		for value := range values {
			same[name] = value
		}
	}
	slices.SortStableFunc(varies, func(a, b Variation) int { return cmp.Compare(b.Distinct, a.Distinct) })
	return varies, same
}

// features are what may differ between jobs with one and the same trouble.
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

// most are the five most frequent values.
func most(values map[string]int) (list []Value) {
	for value, jobs := range values {
		list = append(list, Value{value, jobs})
	}
	slices.SortFunc(list, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Value, b.Value))
	})
	return list[:min(len(list), 5)]
}
