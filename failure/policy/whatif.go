package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Difference compares what happened to the jobs of one kind, whose last failure had one code, with what would have
// happened under another policy.
type Difference struct {
	Kind string `json:"kind"`
	Code string `json:"code"`
	Jobs int    `json:"jobs"` // with at least one failure; each generation of a job counts

	AttemptsThen int `json:"attempts_then"`
	AttemptsNow  int `json:"attempts_now"`
	Saved        int `json:"saved"`   // retries that would not have been made
	Further      int `json:"further"` // additional retries that would have been made

	Earlier int `json:"earlier"` // failed then; would have been given up after fewer attempts
	Later   int `json:"later"`   // failed then; would have had more attempts
	Lost    int `json:"lost"`    // completed then; would have been given up before

	// Average time from start to end, of the jobs that ended.
	EndThen time.Duration `json:"end_then"`
	EndNow  time.Duration `json:"end_now"`
}

// A WhatIfReport is the result of WhatIf.
type WhatIfReport struct {
	Jobs        int          `json:"jobs"`   // examined
	Failed      int          `json:"failed"` // of those, with at least one failure
	Differences []Difference `json:"differences"`
	Assumptions []string     `json:"assumptions"`
	Warnings    []string     `json:"warnings,omitempty"` // why the figures may be wrong, such as a code that nothing defines
}

// WhatIf applies a policy to recorded jobs. failure.Decide makes every decision; the assumptions are part of the result.
func WhatIf(s *Set, history []store.History) WhatIfReport {
	review := WhatIfReport{Jobs: len(history), Assumptions: []string{
		"settings in the application's Go code are not known: only those of the file apply",
		"the n-th attempt ends as the recorded n-th attempt did, even if it starts earlier or later",
		"if a job would have more attempts than were recorded, the further ones fail as the last one did",
		"the handler gives the same instructions again: never to retry, or how long to wait",
		"attempts that were throttled are throttled again, unless the file sets throttle: attempt",
		"released attempts cost nothing, then and now; holds and waiting for a worker are left out of the new times",
		"delays are in the middle of their jitter, and there is no experience from earlier retries",
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

// A sum adds up several lives.
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
