package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Redrive sends dead letters to their queues again, or discards them, in one transaction. Each job has its own answer. A job that this redrive has
// already taken is skipped without an error, so the call is safe to repeat.
func (s *Store) Redrive(ctx context.Context, r store.Redrive) ([]error, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	answers := make([]error, len(r.Jobs))
	var back startedLines
	err := s.withRetries(ctx, "redrive", true, func(ctx context.Context) error {
		lanes, err := s.lanesFor(ctx, &r)
		if err != nil {
			return err
		}
		back = startedLines{}
		return s.transact(ctx, s.work, func(p *pipeline) error {
			d := &redriveCall{s: s, p: p, r: &r, lanes: lanes, candidates: map[holdfast.ID]*candidate{}}
			if err := d.lockAndRead(ctx); err != nil {
				return err
			}
			for i, job := range r.Jobs {
				answers[i] = d.check(job)
			}
			if err := d.retakeKeys(ctx, answers); err != nil {
				return err
			}
			return d.write(ctx, &back)
		})
	})
	if err != nil {
		return nil, err
	}
	if !r.Discard {
		s.planner.noteJobs(r.Jobs...)
	}
	s.announceLines(&back)
	return answers, nil
}

// A candidate is a job that a redrive asks for.
type candidate struct {
	member                                 // as it ended; later, as its new generation starts
	kind, queue, owner, dependency, unique string
	expire                                 *time.Time
	args                                   *string

	dead        bool // the job is a dead letter
	ordered     bool // the job has an order key
	takenBefore bool // an earlier call of this redrive took it
	chosen      bool // this call takes it
	refused     error
	revised     rule.Revision
}

// lanesFor finds or creates the lanes of the queue that jobs are moved to, before anything is locked.
func (s *Store) lanesFor(ctx context.Context, r *store.Redrive) (map[path]int32, error) {
	lanes := map[path]int32{}
	if r.Queue == "" {
		return lanes, nil
	}
	var candidates []*candidate
	err := s.work.lend(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.sql["redrive_facts"], ids(r.Jobs), r.ID.String(), false)
		if err == nil {
			candidates, err = pgx.CollectRows(rows, scanCandidate)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(candidates))
	for i, l := range candidates {
		entries[i].Draft = &holdfast.Draft{Queue: r.Queue, Kind: l.kind, Owner: l.owner, Dependency: l.dependency}
	}
	if err := s.lanes.find(ctx, s.work, entries); err != nil {
		return nil, err
	}
	for i := range entries {
		lanes[entries[i].path()] = entries[i].lane
	}
	return lanes, nil
}

func scanCandidate(row pgx.CollectableRow) (*candidate, error) {
	var l candidate
	err := row.Scan((*[16]byte)(&l.job), &l.kind, &l.queue, &l.owner, &l.dependency, &l.unique, &l.expire, &l.args, &l.takenBefore, &l.ordered)
	return &l, err
}

// A redriveCall is one call of Redrive in progress.
type redriveCall struct {
	s          *Store
	p          *pipeline
	r          *store.Redrive
	lanes      map[path]int32
	now        time.Time
	candidates map[holdfast.ID]*candidate
}

// lockAndRead locks the dead letters among the jobs, and then reads the facts of all of them.
func (d *redriveCall) lockAndRead(ctx context.Context) error {
	ended := map[holdfast.ID]candidate{}
	var one candidate
	d.p.queueRows(d.s.sql["redrive_lock"], []any{ids(d.r.Jobs)}, []any{(*[16]byte)(&one.job), &one.token, &one.generation, &one.dead}, func() error {
		ended[one.job] = one
		return nil
	})
	d.p.Queue(d.s.sql["redrive_facts"], ids(d.r.Jobs), d.r.ID.String(), d.r.Patch != nil).Query(func(rows pgx.Rows) error {
		candidates, err := pgx.CollectRows(rows, scanCandidate)
		for _, l := range candidates {
			l.token, l.generation, l.dead = ended[l.job].token, ended[l.job].generation, ended[l.job].dead
			d.candidates[l.job] = l
		}
		return err
	})
	d.p.queueRow(d.s.sql["now"], nil, &d.now)
	return d.p.flush(ctx)
}

// check decides whether a job is taken, and returns why not.
func (d *redriveCall) check(job holdfast.ID) error {
	l := d.candidates[job]
	switch {
	case l == nil:
		return rule.NoJob(job)
	case l.takenBefore || l.chosen:
		return nil
	}
	j := rule.Job{ID: job}
	if l.dead {
		j.State = holdfast.Failed
	}
	if l.expire != nil {
		j.ExpireAt = *l.expire
	}
	var args json.RawMessage
	if l.args != nil {
		args = json.RawMessage(*l.args)
	}
	revised, err := rule.Redrive(j, l.queue, args, d.r, d.now)
	if err != nil {
		return err
	}
	l.chosen, l.revised = true, revised
	return nil
}

// retakeKeys takes the unique keys again. A job whose key is held by another job stays a dead letter.
func (d *redriveCall) retakeKeys(ctx context.Context, answers []error) error {
	if d.r.Discard {
		return nil
	}
	for _, job := range d.r.Jobs {
		l := d.candidates[job]
		if l == nil || !l.chosen || l.unique == "" {
			continue
		}
		err := d.s.retakeKey(ctx, d.p, &lockedJob{owner: l.owner, kind: l.kind, unique: l.unique, member: l.member})
		if err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
		l.refused, l.chosen = err, err == nil
	}
	for i, job := range d.r.Jobs { // a job that is listed twice gets the same answer twice
		if l := d.candidates[job]; l != nil && l.refused != nil {
			answers[i] = l.refused
		}
	}
	return nil
}

// write queues all changes of the chosen jobs.
func (d *redriveCall) write(ctx context.Context, back *startedLines) error {
	var chosen []*candidate
	for _, job := range d.r.Jobs {
		if l := d.candidates[job]; l != nil && l.chosen && !slices.Contains(chosen, l) {
			chosen = append(chosen, l)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	if d.r.Discard {
		d.p.Queue(d.s.sql["redrive_discard"], ids(jobsOf(chosen)), timestamp(d.now))
		if slices.ContainsFunc(chosen, func(l *candidate) bool { return l.ordered }) {
			d.s.leaveLines(d.p, jobsOf(chosen), back)
		}
		d.queueRecord(chosen, "discard", "discarded")
		return nil
	}
	d.p.Queue(d.s.sql["delete_finished_jobs"], ids(jobsOf(chosen)))
	d.queueChanges(chosen)
	var ready, ordered moveRows
	for _, l := range chosen {
		if l.generation++; l.ordered {
			ordered.add(&l.member)
		} else {
			ready.add(&l.member)
		}
	}
	ready.queue(d.p, d.s.sql["ready_add gently"], timestamp(d.now), &back.readyPlaces)
	if len(ordered.job) > 0 {
		d.s.returnToLines(d.p, &ordered, d.now, back)
	}
	d.p.Queue(d.s.sql["redrive_begin"], ids(jobsOf(chosen)), timestamp(d.now))
	d.queueRecord(chosen, "redrive", "")
	return d.s.reopen(ctx, d.p, jobsOf(chosen), d.now, store.Intervention{Actor: d.r.Actor, Reason: rule.RedriveReason(d.r)})
}

func jobsOf(candidates []*candidate) []holdfast.ID {
	jobs := make([]holdfast.ID, len(candidates))
	for i, l := range candidates {
		jobs[i] = l.job
	}
	return jobs
}

// queueChanges queues changes of arguments, queue and lane.
func (d *redriveCall) queueChanges(chosen []*candidate) {
	var id, args, queue, lane column
	for _, l := range chosen {
		moved := l.revised.Queue != l.queue
		if l.revised.Args == nil && !moved {
			continue
		}
		id.id(l.job)
		args.textOrNull(string(l.revised.Args))
		if !moved {
			queue.null()
			lane.null()
			continue
		}
		queue.quote(d.r.Queue)
		lane.int(int(d.lanes[path{d.r.Queue, l.kind, l.owner, l.dependency}]))
	}
	if len(id.text) > 0 {
		d.p.Queue(d.s.sql["redrive_change"], arrayArgs([]column{id, args, queue, lane})...)
	}
}

// queueRecord queues the rows that record which jobs this redrive took, and their events.
func (d *redriveCall) queueRecord(chosen []*candidate, name, outcome string) {
	var job, token, generation, reason, was column
	for _, l := range chosen {
		job.id(l.job)
		token.int(l.token)
		generation.int(l.generation)
		reason.quote(cleanText(l.revised.Reason))
		was.textOrNull(string(l.revised.Was))
	}
	args := append([]any{d.r.ID.String(), timestamp(d.now), outcome}, arrayArgs([]column{job, token, generation, reason})...)
	d.p.Queue(d.s.sql["record_redrive"], append(args, name, d.r.Actor, was.String())...)
}

// Redriven counts the jobs that a redrive took, by what has become of them.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (counts store.RedriveCounts, err error) {
	err = s.withRetries(ctx, "count redriven jobs", true, func(ctx context.Context) error {
		counts = store.RedriveCounts{}
		return s.transact(ctx, s.work, func(p *pipeline) error {
			p.Queue(s.sql["update_redriven"], redrive.String())
			var outcome string
			var n int
			p.queueRows(s.sql["count_redriven"], []any{redrive.String()}, []any{&outcome, &n}, func() error {
				counts.Taken += n
				*countOf(&counts, outcome) += n
				return nil
			})
			return nil
		})
	})
	return counts, err
}

// countOf returns the counter of an outcome.
func countOf(t *store.RedriveCounts, outcome string) *int {
	switch outcome {
	case "complete":
		return &t.Complete
	case "failed":
		return &t.Failed
	case "cancelled":
		return &t.Cancelled
	case "discarded":
		return &t.Discarded
	}
	return &t.InFlight
}
