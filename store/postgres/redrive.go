package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Redrive takes dead letters on their way, each on its own account, all in one transaction. Who was taken before by this redrive
// is passed over, so that it may be repeated.
func (s *Store) Redrive(ctx context.Context, r holdfast.Redrive) ([]error, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	answers := make([]error, len(r.Jobs))
	var back returned
	err := s.ask(ctx, "redrive", true, func(ctx context.Context) error {
		lanes, err := s.lanesFor(ctx, &r)
		if err != nil {
			return err
		}
		back = returned{}
		return s.transact(ctx, s.work, func(p *pipe) error {
			d := &redriving{s: s, p: p, r: &r, lanes: lanes, letters: map[holdfast.ID]*letter{}}
			if err := d.look(ctx); err != nil {
				return err
			}
			for i, job := range r.Jobs {
				answers[i] = d.judge(job)
			}
			if err := d.retake(ctx, answers); err != nil {
				return err
			}
			return d.write(ctx, &back)
		})
	})
	if err != nil {
		return nil, err
	}
	if !r.Discard {
		s.marks.lower(r.Jobs...)
	}
	s.announce(&back)
	return answers, nil
}

// A letter is a job that a redrive asks for.
type letter struct {
	member                                 // as it ended, and then as it begins anew
	kind, queue, owner, dependency, unique string
	expire                                 *time.Time
	args                                   *string

	dead    bool // it is a dead letter
	before  bool // this redrive took it in an earlier step
	chosen  bool // this step takes it
	refused error
	revised rule.Revision
}

// lanesFor makes the lanes of the queue that jobs are to be moved to, before anything is locked.
func (s *Store) lanesFor(ctx context.Context, r *holdfast.Redrive) (map[path]int32, error) {
	lanes := map[path]int32{}
	if r.Queue == "" {
		return lanes, nil
	}
	rows, err := s.work.Query(ctx, s.sql["redrive_facts"], ids(r.Jobs), r.ID.String(), false)
	if err != nil {
		return nil, err
	}
	letters, err := pgx.CollectRows(rows, scanLetter)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(letters))
	for i, l := range letters {
		entries[i].Draft = &holdfast.Draft{Queue: r.Queue, Kind: l.kind, Owner: l.owner, Dependency: l.dependency}
	}
	if err := s.findLanes(ctx, entries); err != nil {
		return nil, err
	}
	for i := range entries {
		lanes[entries[i].path()] = entries[i].lane
	}
	return lanes, nil
}

func scanLetter(row pgx.CollectableRow) (*letter, error) {
	var l letter
	err := row.Scan((*[16]byte)(&l.job), &l.kind, &l.queue, &l.owner, &l.dependency, &l.unique, &l.expire, &l.args, &l.before)
	return &l, err
}

// A redriving is one step of a redrive under way.
type redriving struct {
	s       *Store
	p       *pipe
	r       *holdfast.Redrive
	lanes   map[path]int32
	now     time.Time
	letters map[holdfast.ID]*letter
}

// look locks the dead letters among the jobs, and reads what is known of all of them after that.
func (d *redriving) look(ctx context.Context) error {
	ended := map[holdfast.ID]letter{}
	var one letter
	d.p.each(d.s.sql["redrive_lock"], []any{ids(d.r.Jobs)}, []any{(*[16]byte)(&one.job), &one.token, &one.generation, &one.dead}, func() error {
		ended[one.job] = one
		return nil
	})
	d.p.Queue(d.s.sql["redrive_facts"], ids(d.r.Jobs), d.r.ID.String(), d.r.Patch != nil).Query(func(rows pgx.Rows) error {
		letters, err := pgx.CollectRows(rows, scanLetter)
		for _, l := range letters {
			l.token, l.generation, l.dead = ended[l.job].token, ended[l.job].generation, ended[l.job].dead
			d.letters[l.job] = l
		}
		return err
	})
	d.p.one(d.s.sql["now"], nil, &d.now)
	return d.p.flush(ctx)
}

// judge chooses a job, or says what stands against it.
func (d *redriving) judge(job holdfast.ID) error {
	l := d.letters[job]
	switch {
	case l == nil:
		return rule.NoJob(job)
	case l.before || l.chosen:
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

// retake takes the unique keys again. Who does not get its own stays where it is.
func (d *redriving) retake(ctx context.Context, answers []error) error {
	if d.r.Discard {
		return nil
	}
	for _, job := range d.r.Jobs {
		l := d.letters[job]
		if l == nil || !l.chosen || l.unique == "" {
			continue
		}
		err := d.s.retake(ctx, d.p, &standing{owner: l.owner, kind: l.kind, unique: l.unique, member: l.member})
		if err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
		l.refused, l.chosen = err, err == nil
	}
	for i, job := range d.r.Jobs { // who asks for a job twice is answered twice
		if l := d.letters[job]; l != nil && l.refused != nil {
			answers[i] = l.refused
		}
	}
	return nil
}

// write queues all that becomes of the chosen ones.
func (d *redriving) write(ctx context.Context, back *returned) error {
	var chosen []*letter
	for _, job := range d.r.Jobs {
		if l := d.letters[job]; l != nil && l.chosen && !slices.Contains(chosen, l) {
			chosen = append(chosen, l)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	if d.r.Discard {
		d.p.Queue(d.s.sql["redrive_discard"], ids(jobsOf(chosen)), stamp(d.now))
		d.note(chosen, "discard", "discarded")
		return nil
	}
	d.p.Queue(d.s.sql["delete_finished_jobs"], ids(jobsOf(chosen)))
	d.change(chosen)
	var ready narrow
	for _, l := range chosen {
		l.generation++
		ready.add(&l.member)
	}
	ready.queue(d.p, d.s.sql["ready_add gently"], stamp(d.now), back)
	d.p.Queue(d.s.sql["redrive_begin"], ids(jobsOf(chosen)), stamp(d.now))
	d.note(chosen, "redrive", "")
	return d.s.reopen(ctx, d.p, jobsOf(chosen), d.now, holdfast.Intervention{Actor: d.r.Actor, Reason: rule.RedriveReason(d.r)})
}

func jobsOf(letters []*letter) []holdfast.ID {
	jobs := make([]holdfast.ID, len(letters))
	for i, l := range letters {
		jobs[i] = l.job
	}
	return jobs
}

// change queues what the redrive changes in the jobs' facts.
func (d *redriving) change(chosen []*letter) {
	var id, args, queue, lane column
	for _, l := range chosen {
		moved := l.revised.Queue != l.queue
		if l.revised.Args == nil && !moved {
			continue
		}
		id.id(l.job)
		args.some(string(l.revised.Args))
		if !moved {
			queue.null()
			lane.null()
			continue
		}
		queue.quote(d.r.Queue)
		lane.int(int(d.lanes[path{d.r.Queue, l.kind, l.owner, l.dependency}]))
	}
	if len(id.text) > 0 {
		d.p.Queue(d.s.sql["redrive_change"], literals([]column{id, args, queue, lane})...)
	}
}

// note queues the rows that say which jobs were taken, and the lines of their stories.
func (d *redriving) note(chosen []*letter, name, outcome string) {
	var job, token, generation, reason, was column
	for _, l := range chosen {
		job.id(l.job)
		token.int(l.token)
		generation.int(l.generation)
		reason.quote(clean(l.revised.Reason))
		was.some(string(l.revised.Was))
	}
	args := append([]any{d.r.ID.String(), stamp(d.now), outcome}, literals([]column{job, token, generation, reason})...)
	d.p.Queue(d.s.sql["record_redrive"], append(args, name, d.r.Actor, was.String())...)
}

// Redriven counts what has become of the jobs a redrive took.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (tally holdfast.Tally, err error) {
	err = s.ask(ctx, "count what was redriven", true, func(ctx context.Context) error {
		tally = holdfast.Tally{}
		return s.transact(ctx, s.work, func(p *pipe) error {
			p.Queue(s.sql["update_redriven"], redrive.String())
			var outcome string
			var n int
			p.each(s.sql["count_redriven"], []any{redrive.String()}, []any{&outcome, &n}, func() error {
				tally.Taken += n
				*tallied(&tally, outcome) += n
				return nil
			})
			return nil
		})
	})
	return tally, err
}

// tallied is where jobs of one outcome are counted.
func tallied(t *holdfast.Tally, outcome string) *int {
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
