package service

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Job returns a shot of an organisation, with its result and its place in the queue; of any organisation if owner is empty.
func (s *Service) Job(ctx context.Context, owner string, id holdfast.ID) (Job, error) {
	job, err := s.own(ctx, owner, id)
	if err != nil {
		return Job{}, err
	}
	return s.full(ctx, &job)
}

func (s *Service) full(ctx context.Context, job *holdfast.Job) (Job, error) {
	v, err := s.view(job)
	if err != nil {
		return v, err
	}
	if v.Stored != nil {
		v.Result = s.result(&v)
	}
	if v.Status == Queued && v.NextRetryAt == nil {
		ahead, err := s.jobs.Ahead(ctx, job.ID)
		if err != nil {
			return v, explain(err)
		}
		ahead++
		v.QueuePosition = &ahead
	}
	return v, nil
}

// A Query selects shots.
type Query struct {
	Owner  string // empty: of all organisations
	Status string // in the words of the API; empty: any
	Type   JobType
	Limit  int
	Cursor string
}

// Jobs lists shots, the newest first. The cursor is for the next page and empty on the last.
func (s *Service) Jobs(ctx context.Context, q Query) (list []Job, cursor string, err error) {
	f := store.Filter{Owner: q.Owner, Queue: Queue, Limit: q.Limit, Cursor: q.Cursor}
	if q.Status != "" {
		if f.State = stateOf(q.Status); f.State == "" {
			return nil, "", invalid("status", "%.20q: use QUEUED, PROCESSING, COMPLETED, FAILED or CANCELLED", q.Status)
		}
	}
	if q.Type != "" {
		if q.Type != TypeScreenshot && q.Type != TypePDF {
			return nil, "", invalid("jobType", "%.20q: use SCREENSHOT or PDF_GENERATION", string(q.Type))
		}
		f.Kind = kindOf(q.Type)
	}
	jobs, cursor, err := s.jobs.Jobs(ctx, f)
	if err != nil {
		return nil, "", explain(err)
	}
	list = make([]Job, 0, len(jobs))
	for i := range jobs {
		v, err := s.full(ctx, &jobs[i])
		if err != nil {
			return nil, "", err
		}
		list = append(list, v)
	}
	return list, cursor, nil
}

// Story returns what happened to a shot of an organisation, the oldest first.
func (s *Service) Story(ctx context.Context, owner string, id holdfast.ID) ([]ops.StoryLine, error) {
	if _, err := s.own(ctx, owner, id); err != nil {
		return nil, err
	}
	lines, err := s.cfg.Operator.Story(ctx, id)
	return lines, explain(err)
}

// Counts are what a service in this process did since its start.
type Counts struct {
	Submitted, Cached, Manual, Automatic, Stuck, Final, Released int64
}

type counts struct {
	submitted, cached, manual, automatic, stuck, final, released atomic.Int64
}

// Counts returns what was done so far.
func (s *Service) Counts() Counts {
	c := &s.counts
	return Counts{c.submitted.Load(), c.cached.Load(), c.manual.Load(), c.automatic.Load(), c.stuck.Load(), c.final.Load(), c.released.Load()}
}

// Codes returns what each code means.
func (s *Service) Codes() any { return code.All() }
