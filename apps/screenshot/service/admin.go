package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// The duties of the retry scheduler, with their names in the API.
const (
	StuckJobs   = "STUCK_JOBS"
	FailedJobs  = "FAILED_JOBS"
	DelayedJobs = "DELAYED_JOBS"
)

// Types are the duties in the order of the API.
var Types = []string{StuckJobs, FailedJobs, DelayedJobs}

// What each type is in the engine: the duties that are paused with it. Failed shots are retried by the engine itself; pausing them is a hold on the retries of the
// queue, which costs them nothing. STUCK_JOBS is the duty of this service and the one that takes over the jobs of lost workers.
var dutiesOf = map[string][]string{StuckJobs: {"stuck-jobs", "reclaim"}, FailedJobs: nil, DelayedJobs: {"promote"}}

const (
	stuckEvery = 5 * time.Minute
	roundLimit = 100
	maxPause   = 30 * 24 * time.Hour
)

// Stuck returns shots that have been processed for more than 30 minutes, at most 100.
func (s *Service) Stuck(ctx context.Context) (list []Job, err error) {
	cursor := ""
	for len(list) < roundLimit {
		jobs, next, err := s.jobs.Jobs(ctx, store.Filter{Queue: Queue, State: holdfast.Processing, Limit: 200, Cursor: cursor})
		if err != nil {
			return nil, explain(err)
		}
		for i := range jobs {
			v, err := s.view(&jobs[i])
			if err != nil {
				return nil, err
			}
			if v.Stuck && len(list) < roundLimit {
				list = append(list, v)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	return list, nil
}

// retryStuck is a duty: it takes stuck shots away from their workers and queues them again, up to 100 in a round.
func (s *Service) retryStuck(ctx context.Context) error {
	_, err := s.ProcessStuck(ctx, Caller{Name: "retry scheduler"})
	return err
}

// ProcessStuck queues stuck shots again and returns how many. A shot that was retried so often already stays with its worker until an operator decides.
func (s *Service) ProcessStuck(ctx context.Context, c Caller) (int, error) {
	list, err := s.Stuck(ctx)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	s.log.Warn("Found stuck jobs", "event", "stuck_jobs", "jobs", len(list))
	n, all := 0, []error(nil)
	for _, v := range list {
		if v.Generation > v.MaxRetries+1 && c.User == "" {
			continue
		}
		_, err := s.cfg.Operator.Retry(ctx, store.Intervention{Job: v.ID, Actor: c.Name, Reason: "processed for more than 30 minutes", Request: c.Request, StuckAfter: s.cfg.StuckAfter})
		switch {
		case err == nil:
			n++
			s.counts.stuck.Add(1)
		case !errors.Is(err, holdfast.ErrConflict): // otherwise it ended meanwhile
			all = append(all, err)
		}
	}
	return n, errors.Join(all...)
}

// A DutyStatus is how one duty of the retry scheduler runs.
type DutyStatus struct {
	Type        string     `json:"type"`
	Paused      bool       `json:"paused"`
	PausedUntil *time.Time `json:"pausedUntil"`
	PausedBy    string     `json:"pausedBy,omitempty"`
	LastRun     *time.Time `json:"lastRun"`
	NextRun     *time.Time `json:"nextRun"`
	Error       string     `json:"error,omitempty"`
}

// Scheduler returns how the duties of the retry scheduler run.
func (s *Service) Scheduler(ctx context.Context) ([]DutyStatus, error) {
	duties, err := s.cfg.Operator.Duties(ctx)
	if err != nil {
		return nil, explain(err)
	}
	holds, err := s.jobs.Holds(ctx)
	if err != nil {
		return nil, explain(err)
	}
	list := make([]DutyStatus, 0, len(Types))
	for _, t := range Types {
		d := DutyStatus{Type: t}
		for _, one := range duties {
			if !slices.Contains(dutiesOf[t], one.Name) || one.Name != dutiesOf[t][0] {
				continue
			}
			d.Paused, d.PausedUntil, d.PausedBy = one.Paused, moment(one.Until), one.Actor
			d.LastRun, d.NextRun, d.Error = moment(one.Last), moment(one.Next), one.Error
		}
		for _, h := range holds {
			if t == FailedJobs && h.Queue == Queue && h.Retries && h.Source == store.SourceOperator {
				d.Paused, d.PausedUntil, d.PausedBy = true, moment(h.Until), h.Actor
			}
		}
		if !d.Paused {
			d.PausedUntil, d.PausedBy = nil, ""
		}
		list = append(list, d)
	}
	return list, nil
}

func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// Pause pauses duties of the retry scheduler for a time; 0: until they are resumed. No types are all.
func (s *Service) Pause(ctx context.Context, c Caller, types []string, lasting time.Duration) error {
	types, err := checkTypes(types)
	if err != nil {
		return err
	}
	if lasting < 0 || lasting > maxPause {
		return invalid("duration", "%v: use a duration such as 30m, up to 720h, or leave it out", lasting)
	}
	by := ops.Actor{Name: c.Name, Reason: "pause of the retry scheduler", Request: c.Request}
	for _, t := range types {
		for _, name := range dutiesOf[t] {
			if err := s.cfg.Operator.PauseDuty(ctx, name, lasting, by); err != nil {
				return explain(err)
			}
		}
		if t != FailedJobs {
			continue
		}
		if err := s.cfg.Operator.Pause(ctx, store.Hold{Queue: Queue, Retries: true, For: lasting, Actor: c.Name, Reason: by.Reason}); err != nil {
			return explain(err)
		}
	}
	return nil
}

// Resume resumes duties of the retry scheduler before their time. No types are all.
func (s *Service) Resume(ctx context.Context, c Caller, types []string) error {
	types, err := checkTypes(types)
	if err != nil {
		return err
	}
	by := ops.Actor{Name: c.Name, Reason: "the retry scheduler is resumed", Request: c.Request}
	for _, t := range types {
		for _, name := range dutiesOf[t] {
			if err := s.cfg.Operator.ResumeDuty(ctx, name, by); err != nil && !errors.Is(err, holdfast.ErrConflict) { // a conflict: it is not paused
				return explain(err)
			}
		}
		if t != FailedJobs {
			continue
		}
		if err := s.cfg.Operator.Resume(ctx, store.Hold{Queue: Queue, Retries: true, Actor: c.Name, Reason: by.Reason}); err != nil {
			return explain(err)
		}
	}
	return nil
}

func checkTypes(types []string) ([]string, error) {
	if len(types) == 0 {
		return Types, nil
	}
	for _, t := range types {
		if !slices.Contains(Types, t) {
			return nil, invalid("types", "%.40q: use %s", t, strings.Join(Types, ", "))
		}
	}
	return types, nil
}

// Workers is what workers and browsers do.
type Workers struct {
	Workers   []store.WorkerInfo `json:"workers"`
	Browsers  browser.Status     `json:"browsers"` // of this process
	Queue     store.Depth        `json:"queue"`
	Stuck     int                `json:"stuckJobs"`
	Scheduler []DutyStatus       `json:"scheduler"`
}

// WorkersStatus returns what workers and browsers do.
func (s *Service) WorkersStatus(ctx context.Context) (w Workers, err error) {
	if w.Workers, err = s.jobs.Workers(ctx); err != nil {
		return w, explain(err)
	}
	if w.Queue, err = s.Depth(ctx); err != nil {
		return w, err
	}
	stuck, err := s.Stuck(ctx)
	if err != nil {
		return w, err
	}
	w.Stuck, w.Browsers = len(stuck), s.cfg.Camera.Status()
	w.Scheduler, err = s.Scheduler(ctx)
	return w, err
}

// Depth returns how many shots there are by state.
func (s *Service) Depth(ctx context.Context) (store.Depth, error) {
	all, err := s.cfg.Operator.Depths(ctx)
	for _, d := range all {
		if d.Queue == Queue {
			return d, nil
		}
	}
	return store.Depth{Queue: Queue}, explain(err)
}
