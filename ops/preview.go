package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/store"
)

// A Preview says what a redrive would do. It changes nothing. Counts stop at 10,000.
type Preview struct {
	Spec       redrive.Spec   `json:"spec"`
	Looked     int            `json:"looked"`     // matching dead letters
	Eligible   int            `json:"eligible"`   // dead letters that would be taken
	Ineligible []Ineligible   `json:"ineligible"` // matching jobs that would not be taken, by reason
	Sample     []holdfast.Job `json:"sample"`     // at most ten eligible jobs, in the order in which they are taken
	Takes      time.Duration  `json:"takes"`      // minimum duration at the order's rate
	Workers    int            `json:"workers"`    // live workers: without one the redrive does not start
	Notes      []string       `json:"notes,omitempty"`
	AsOf       time.Time      `json:"as_of"`
}

// Ineligible counts jobs that match the selection and would not be taken, for one reason.
type Ineligible struct {
	// Reason is one of: not failed, discarded, expired, unique key held by another, source gone, another generation.
	Reason string `json:"reason"`
	Jobs   int    `json:"jobs"`
}

const (
	sampleSize = 10
	maxSources = 1000 // jobs whose source is checked with the application
	maxKeys    = 2000 // jobs of one kind and owner among which unique keys are searched
)

var ineligible = []string{"not failed", "discarded", "expired", "unique key held by another", "source gone", "another generation"}

// PreviewRedrive says what a redrive would do. It is a forecast: the store decides about each job when it is taken. If the
// order's filter limits how many jobs may be examined (Look), only the newest dead letters are checked and the others that
// match are counted as eligible; a note says so.
func (s *Service) PreviewRedrive(ctx context.Context, o redrive.Spec) (Preview, error) {
	return s.previewRedrive(ctx, o, true)
}

// previewRedrive checks dead letters and, with others, counts matching jobs that are no dead letters.
func (s *Service) previewRedrive(ctx context.Context, o redrive.Spec, others bool) (Preview, error) {
	if err := o.Check(); err != nil {
		return Preview{}, err
	}
	v := &previewer{service: s, order: o, counts: map[string]int{}, takers: map[uniqueKey]bool{}, held: map[uniqueKey]map[string]bool{}}
	v.Spec, v.AsOf, v.Sample = o, time.Now(), []holdfast.Job{}
	f := o.Filter
	f.State, f.Generation, f.DeadLetters = "", 0, true
	more, err := s.eachJob(ctx, f, v.addDeadLetter)
	if err != nil {
		return Preview{}, err
	}
	if err := v.countUnchecked(ctx, f, more); err != nil {
		return Preview{}, err
	}
	f.DeadLetters = false
	if more = false; others {
		more, err = s.eachJob(ctx, f, v.addOther)
	}
	if err != nil {
		return Preview{}, err
	}
	if more {
		v.note("jobs that are not failed or were discarded are counted only among the newest %d jobs that match", scanLimit(f))
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Preview{}, err
	}
	v.Workers = len(workers)
	return v.finish(), nil
}

// countUnchecked counts dead letters that were not checked one by one.
func (v *previewer) countUnchecked(ctx context.Context, f store.Filter, more bool) error {
	switch {
	case !more:
		return nil
	case f.MaxScan == 0:
		v.note("there are more than %d dead letters: the counts stop there", MaxCounted)
		return nil
	}
	f.MaxScan = max(f.MaxScan, minUncheckedScan)
	checked, counted := v.Looked, v.Looked
	if v.order.Filter.Generation > 0 { // those of another generation were checked and are not counted again
		f.Generation, counted = v.order.Filter.Generation, v.Eligible
	}
	matching, err := v.service.store.Count(ctx, f, MaxCounted)
	if unchecked := matching - counted; unchecked > 0 {
		v.Looked, v.Eligible = v.Looked+unchecked, v.Eligible+unchecked
	}
	v.note("only the newest %d matching dead letters were checked; the others are counted as eligible and are checked when they are taken", checked)
	return err
}

// minUncheckedScan is how many dead letters are read at least to count those that are not checked one by one.
const minUncheckedScan = 1000

// scanLimit returns how many jobs are examined for a preview.
func scanLimit(f store.Filter) int {
	if f.MaxScan > 0 {
		return min(f.MaxScan, MaxCounted)
	}
	return MaxCounted
}

// eachJob calls look for the matching jobs, newest first. It stops at 10,000, or at the limit of the filter, and
// reports whether there are more.
func (s *Service) eachJob(ctx context.Context, f store.Filter, look func(ctx context.Context, job holdfast.Job) error) (more bool, err error) {
	f.Limit = min(maxPage, scanLimit(f))
	for looked := 0; looked < scanLimit(f); {
		jobs, cursor, err := s.store.Jobs(ctx, f)
		if err != nil {
			return false, err
		}
		for _, job := range jobs {
			if err := look(ctx, job); err != nil {
				return false, err
			}
		}
		looked += len(jobs)
		if f.Cursor = cursor; cursor == "" {
			return false, nil
		}
		if f.MaxScan > 0 && len(jobs) < f.Limit {
			return true, nil // the limit of the filter was reached
		}
	}
	return true, nil
}

// A previewer checks jobs one by one as a redrive would.
type previewer struct {
	Preview
	service *Service
	order   redrive.Spec
	counts  map[string]int
	members int                           // number of eligible jobs that are members of groups
	asked   int                           // number of sources that were checked
	takers  map[uniqueKey]bool            // unique keys that eligible dead letters would take
	held    map[uniqueKey]map[string]bool // by kind and owner: unique keys of jobs that have not ended
}

type uniqueKey struct{ kind, owner, key string }

// addDeadLetter checks and counts a dead letter.
func (v *previewer) addDeadLetter(ctx context.Context, job holdfast.Job) error {
	v.Looked++
	v.AsOf = job.AsOf
	reason, err := v.ineligibleReason(ctx, job)
	if err != nil {
		return err
	}
	if reason != "" {
		v.counts[reason]++
		return nil
	}
	v.Eligible++
	if !job.Group.IsZero() {
		v.members++
	}
	if len(v.Sample) < sampleSize {
		v.Sample = append(v.Sample, job)
	}
	return nil
}

// addOther counts a matching job that is no dead letter.
func (v *previewer) addOther(_ context.Context, job holdfast.Job) error {
	switch {
	case job.State != holdfast.Failed:
		v.counts["not failed"]++
	case job.Discarded:
		v.counts["discarded"]++
	}
	return nil
}

// ineligibleReason says why a dead letter would not be taken; empty: it would.
func (v *previewer) ineligibleReason(ctx context.Context, job holdfast.Job) (string, error) {
	if wanted := v.order.Filter.Generation; wanted > 0 && job.Generation != wanted {
		return "another generation", nil
	}
	if v.order.Discard {
		return "", nil
	}
	if !job.ExpireAt.IsZero() && !job.ExpireAt.After(job.AsOf) {
		return "expired", nil
	}
	taken, err := v.keyTaken(ctx, job)
	if err != nil {
		return "", err
	}
	if taken {
		return "unique key held by another", nil
	}
	if source := v.service.cfg.Sources[job.Kind]; source != nil && v.asked < maxSources {
		v.asked++
		if source(ctx, job) != nil {
			return "source gone", nil
		}
	}
	if job.UniqueKey != "" {
		v.takers[uniqueKey{job.Kind, job.Owner, job.UniqueKey}] = true
	}
	return "", nil
}

// keyTaken reports whether another job has the dead letter's unique key: a job that has not ended, or another dead letter
// that is taken before it.
func (v *previewer) keyTaken(ctx context.Context, job holdfast.Job) (bool, error) {
	if job.UniqueKey == "" {
		return false, nil
	}
	if v.takers[uniqueKey{job.Kind, job.Owner, job.UniqueKey}] {
		return true, nil
	}
	among := uniqueKey{kind: job.Kind, owner: job.Owner}
	if v.held[among] == nil {
		keys, err := v.keysOf(ctx, among)
		if err != nil {
			return false, err
		}
		v.held[among] = keys
	}
	return v.held[among][job.UniqueKey], nil
}

// keysOf returns the unique keys of jobs of one kind and owner that have not ended.
func (v *previewer) keysOf(ctx context.Context, among uniqueKey) (map[string]bool, error) {
	keys := map[string]bool{}
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing} {
		f := store.Filter{State: state, Kind: among.kind, Owner: among.owner, Limit: maxPage}
		for looked := 0; ; {
			jobs, cursor, err := v.service.store.Jobs(ctx, f)
			if err != nil {
				return nil, err
			}
			for _, job := range jobs {
				if job.UniqueKey != "" && job.Owner == among.owner {
					keys[job.UniqueKey] = true
				}
			}
			if f.Cursor = cursor; cursor == "" {
				break
			}
			if looked += len(jobs); looked >= maxKeys {
				v.note("more than %d jobs of kind %s are %s: some of them may have unique keys that this preview does not know", maxKeys, among.kind, state)
				break
			}
		}
	}
	return keys, nil
}

func (v *previewer) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

func (v *previewer) finish() Preview {
	for _, reason := range ineligible {
		if n := v.counts[reason]; n > 0 {
			v.Ineligible = append(v.Ineligible, Ineligible{reason, n})
		}
	}
	jobs := v.Eligible
	if v.order.Limit > 0 {
		jobs = min(jobs, v.order.Limit)
	}
	v.Takes = timeFor(v.order, jobs)
	if v.members > 0 && !v.order.Discard {
		v.note("%d of the jobs are members of groups: members that were cancelled because of them stay cancelled; to retry those too, retry the groups instead (holdfast groups retry)", v.members)
	}
	if v.asked >= maxSources {
		v.note("the sources of %d jobs were checked; the others were not", maxSources)
	}
	if v.Workers == 0 {
		v.note("no worker is alive: no job will run until one is started")
	}
	return v.Preview
}
