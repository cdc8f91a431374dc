package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Difference is what a set of policies would have made of the jobs of one kind whose last failure had one code.
type Difference struct {
	Kind string `json:"kind"`
	Code string `json:"code"`
	Jobs int    `json:"jobs"` // that failed at least once; a manual retry makes another of the same job

	AttemptsThen int `json:"attempts_then"`
	AttemptsNow  int `json:"attempts_now"`
	Saved        int `json:"saved"`   // retries that would not have been made
	Further      int `json:"further"` // retries that would have been made besides

	Earlier int `json:"earlier"` // failed then; would have been given up sooner
	Later   int `json:"later"`   // failed then; would have been tried longer
	Lost    int `json:"lost"`    // completed then; would have been given up before that

	// From its beginning to its end, of the jobs that ended then, on average.
	EndThen time.Duration `json:"end_then"`
	EndNow  time.Duration `json:"end_now"`
}

// A Review is what a set of policies would have made of the past.
type Review struct {
	Jobs        int          `json:"jobs"`   // looked at
	Failed      int          `json:"failed"` // of those, with at least one failure
	Differences []Difference `json:"differences"`
	Assumptions []string     `json:"assumptions"`
	Warnings    []string     `json:"warnings,omitempty"` // why the figures may be wrong, such as a code that nothing defines
}

// WhatIf puts recorded jobs before a set of policies. Every verdict is failure.Decide's own; what it assumes is in the answer.
func WhatIf(s *Set, history []holdfast.History) Review {
	review := Review{Jobs: len(history), Assumptions: []string{
		"what is written in the application's code is not known here: only the file speaks",
		"the n-th attempt ends as the n-th attempt did, however much sooner or later it starts",
		"where a job would be tried longer than it was, it goes on failing as it last failed",
		"what the handler said then it says again: never to retry, or to wait so long",
		"what was throttled then is throttled again, unless the file says throttle: attempt",
		"handed-back attempts cost nothing then and now, holds and waiting for a worker are left out of the new times",
		"delays are in the middle of their jitter, and nothing was learned",
	}}
	found, undefined := map[[2]string]*sum{}, map[string]int{}
	for _, h := range history {
		failed, strange := false, map[string]bool{}
		for _, life := range lives(h) {
			if len(life.failures) == 0 {
				continue
			}
			failed = true
			life.undefined(s, strange)
			at := [2]string{h.Job.Kind, life.code()}
			if found[at] == nil {
				found[at] = &sum{Difference: Difference{Kind: at[0], Code: at[1]}}
			}
			found[at].add(life, life.under(s))
		}
		if failed {
			review.Failed++
		}
		for code := range strange {
			undefined[code]++
		}
	}
	for _, one := range found {
		review.Differences = append(review.Differences, one.difference())
	}
	for _, code := range slices.Sorted(maps.Keys(undefined)) {
		review.Warnings = append(review.Warnings, undefinedCode(code, fmt.Sprintf("jobs that failed with it: %d", undefined[code])))
	}
	slices.SortFunc(review.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code))
	})
	return review
}

// A sum gathers what became of several lives.
type sum struct {
	Difference
	ended     int
	then, now time.Duration
}

func (s *sum) add(l life, e ending) {
	s.Jobs++
	s.AttemptsThen += l.attempts()
	s.AttemptsNow += e.attempts
	if fewer := l.attempts() - e.attempts; fewer > 0 {
		s.Saved += fewer
	} else {
		s.Further -= fewer
	}
	switch {
	case l.end == holdfast.Failed && e.attempts < l.attempts():
		s.Earlier++
	case l.end == holdfast.Failed && e.attempts > l.attempts():
		s.Later++
	case l.end == holdfast.Complete && e.state == holdfast.Failed:
		s.Lost++
	}
	if l.end == holdfast.Failed || l.end == holdfast.Complete {
		s.ended++
		s.then += l.until.Sub(l.since)
		s.now += e.after
	}
}

func (s *sum) difference() Difference {
	if s.ended > 0 {
		s.EndThen, s.EndNow = s.then/time.Duration(s.ended), s.now/time.Duration(s.ended)
	}
	return s.Difference
}
