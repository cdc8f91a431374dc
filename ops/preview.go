package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
)

// A Preview says what a redrive would do, and changes nothing. Counts stop at MostCounted.
type Preview struct {
	Order      redrive.Order  `json:"order"`
	Looked     int            `json:"looked"`     // dead letters that match
	Eligible   int            `json:"eligible"`   // of those, so many would be taken
	Ineligible []Ineligible   `json:"ineligible"` // what matches and would not be taken, by reason
	Sample     []holdfast.Job `json:"sample"`     // of the eligible, at most ten, in the order in which they are taken
	Takes      time.Duration  `json:"takes"`      // at the order's pace, at least
	Workers    int            `json:"workers"`    // alive: without one nothing moves
	Notes      []string       `json:"notes,omitempty"`
	AsOf       time.Time      `json:"as_of"`
}

// Ineligible counts jobs that match a redrive's selection and would not be taken.
type Ineligible struct {
	// Reason is one of: not failed, discarded, expired, unique key held by another, source gone, another generation.
	Reason string `json:"reason"`
	Jobs   int    `json:"jobs"`
}

const (
	sampled     = 10
	mostSources = 1000 // so many jobs are asked about at the application
	mostKeys    = 2000 // among so many jobs of one kind and owner the holder of a unique key is looked for
)

var ineligible = []string{"not failed", "discarded", "expired", "unique key held by another", "source gone", "another generation"}

// PreviewRedrive says what a redrive would do. It is a forecast: the store judges each job when it is taken. Where the order's filter says how
// many jobs may be looked at, so many dead letters are judged, and others that are found to match are counted as eligible; a note says so.
func (s *Service) PreviewRedrive(ctx context.Context, o redrive.Order) (Preview, error) {
	return s.previewRedrive(ctx, o, true)
}

// previewRedrive looks at dead letters, and at what matches and is none if that is wanted.
func (s *Service) previewRedrive(ctx context.Context, o redrive.Order, others bool) (Preview, error) {
	if err := o.Check(); err != nil {
		return Preview{}, err
	}
	v := &viewer{service: s, order: o, counts: map[string]int{}, takers: map[uniqueKey]bool{}, held: map[uniqueKey]map[string]bool{}}
	v.Order, v.AsOf, v.Sample = o, time.Now(), []holdfast.Job{}
	f := o.Filter
	f.State, f.Generation, f.DeadLetters = "", 0, true
	more, err := s.walk(ctx, f, v.letter)
	if err != nil {
		return Preview{}, err
	}
	if err := v.beyond(ctx, f, more); err != nil {
		return Preview{}, err
	}
	f.DeadLetters = false
	if more = false; others {
		more, err = s.walk(ctx, f, v.other)
	}
	if err != nil {
		return Preview{}, err
	}
	if more {
		v.note("what is not failed or was discarded was counted among the newest %d jobs that match", furthest(f))
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Preview{}, err
	}
	v.Workers = len(workers)
	return v.finish(), nil
}

// beyond counts dead letters that were not judged one by one.
func (v *viewer) beyond(ctx context.Context, f holdfast.Filter, more bool) error {
	switch {
	case !more:
		return nil
	case f.Look == 0:
		v.note("there are more than %d dead letters: the counts stop there", MostCounted)
		return nil
	}
	f.Look = max(f.Look, mostUnjudged)
	judged, counted := v.Looked, v.Looked
	if v.order.Filter.Generation > 0 { // those of another generation were judged, and are not counted again
		f.Generation, counted = v.order.Filter.Generation, v.Eligible
	}
	matching, err := v.service.store.Count(ctx, f, MostCounted)
	if unjudged := matching - counted; unjudged > 0 {
		v.Looked, v.Eligible = v.Looked+unjudged, v.Eligible+unjudged
	}
	v.note("the newest %d of the dead letters that match were judged; the others are counted as eligible, and are judged when they are taken", judged)
	return err
}

// mostUnjudged is how many dead letters are gone through to count those that are not judged one by one.
const mostUnjudged = 1000

// furthest is how many jobs are looked at for a preview.
func furthest(f holdfast.Filter) int {
	if f.Look > 0 {
		return min(f.Look, MostCounted)
	}
	return MostCounted
}

// walk looks at what matches, newest first, and stops at MostCounted, or where the filter says; it reports whether there is more.
func (s *Service) walk(ctx context.Context, f holdfast.Filter, look func(ctx context.Context, job holdfast.Job) error) (more bool, err error) {
	f.Limit = min(mostListed, furthest(f))
	for looked := 0; looked < furthest(f); {
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
		if f.Look > 0 && len(jobs) < f.Limit {
			return true, nil // it went as far as it may
		}
	}
	return true, nil
}

// A viewer judges jobs one by one as a redrive would.
type viewer struct {
	Preview
	service *Service
	order   redrive.Order
	counts  map[string]int
	asked   int                           // sources
	takers  map[uniqueKey]bool            // keys that an eligible dead letter would take
	held    map[uniqueKey]map[string]bool // by kind and owner: keys of jobs that have not ended
}

type uniqueKey struct{ kind, owner, key string }

// letter judges a dead letter.
func (v *viewer) letter(ctx context.Context, job holdfast.Job) error {
	v.Looked++
	v.AsOf = job.AsOf
	reason, err := v.judge(ctx, job)
	if err != nil {
		return err
	}
	if reason != "" {
		v.counts[reason]++
		return nil
	}
	v.Eligible++
	if len(v.Sample) < sampled {
		v.Sample = append(v.Sample, job)
	}
	return nil
}

// other counts what matches and is no dead letter.
func (v *viewer) other(_ context.Context, job holdfast.Job) error {
	switch {
	case job.State != holdfast.Failed:
		v.counts["not failed"]++
	case job.Discarded:
		v.counts["discarded"]++
	}
	return nil
}

// judge answers why a dead letter would not be taken, or with nothing.
func (v *viewer) judge(ctx context.Context, job holdfast.Job) (string, error) {
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
	if source := v.service.cfg.Sources[job.Kind]; source != nil && v.asked < mostSources {
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

// keyTaken reports whether a dead letter's unique key is in other hands: of a job that has not ended, or of another dead letter
// that is taken before it.
func (v *viewer) keyTaken(ctx context.Context, job holdfast.Job) (bool, error) {
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

// keysOf gathers the unique keys of jobs that have not ended, of one kind and owner.
func (v *viewer) keysOf(ctx context.Context, among uniqueKey) (map[string]bool, error) {
	keys := map[string]bool{}
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing} {
		f := holdfast.Filter{State: state, Kind: among.kind, Owner: among.owner, Limit: mostListed}
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
			if looked += len(jobs); looked >= mostKeys {
				v.note("more than %d jobs of kind %s are %s: some of them may hold unique keys that this preview does not know of", mostKeys, among.kind, state)
				break
			}
		}
	}
	return keys, nil
}

func (v *viewer) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

func (v *viewer) finish() Preview {
	for _, reason := range ineligible {
		if n := v.counts[reason]; n > 0 {
			v.Ineligible = append(v.Ineligible, Ineligible{reason, n})
		}
	}
	jobs := v.Eligible
	if v.order.Limit > 0 {
		jobs = min(jobs, v.order.Limit)
	}
	v.Takes = pace(v.order, jobs)
	if v.asked >= mostSources {
		v.note("the sources of %d jobs were asked for; the others were not", mostSources)
	}
	if v.Workers == 0 {
		v.note("no worker is alive: nothing will move until one is started")
	}
	return v.Preview
}
