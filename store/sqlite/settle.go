package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// Settle ends leases, each on its own account, all in one transaction.
func (s *Store) Settle(ctx context.Context, settlements []holdfast.Settlement) ([]error, error) {
	if len(settlements) == 0 {
		return nil, nil
	}
	refused := make([]error, len(settlements))
	for i := range settlements {
		refused[i] = checkSettlement(&settlements[i])
	}
	answers := make([]error, len(settlements))
	err := s.writer.write(ctx, func(t *tx) error { return settleAll(t, settlements, refused, answers, false) })
	if contradicts(err) {
		// One of them cannot be stored. Find out which by giving each a savepoint of its own: the others are not to suffer.
		err = s.writer.write(ctx, func(t *tx) error { return settleAll(t, settlements, refused, answers, true) })
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func checkSettlement(s *holdfast.Settlement) error {
	if err := s.Check(); err != nil {
		return err
	}
	switch s.Charge {
	case holdfast.ChargeNothing, holdfast.ChargeFailure, holdfast.ChargeCrash, holdfast.ChargeInterrupt:
		return nil
	}
	return invalid("a charge of %q: use failure, crash, interrupt or nothing", s.Charge)
}

func settleAll(t *tx, settlements []holdfast.Settlement, refused, answers []error, carefully bool) error {
	s := &settler{tx: t, batches: map[holdfast.ID]*batch{}}
	if _, err := t.one("settle-any", nil, &s.cancels, &s.uniques); err != nil {
		return err
	}
	for i := range settlements {
		if answers[i] = refused[i]; answers[i] != nil {
			continue
		}
		settle := func() (err error) {
			answers[i], err = s.settle(&settlements[i])
			return err
		}
		if !carefully {
			if err := settle(); err != nil {
				return err
			}
			continue
		}
		if err := t.guarded(settle); contradicts(err) {
			s.forget(settlements[i].Batch)
			answers[i] = &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("the settlement of job %s cannot be stored beside what is there: run the doctor", settlements[i].Job), Cause: err}
		} else if err != nil {
			return err
		}
	}
	return s.shrink()
}

// A settler carries what the settlements of one call share.
type settler struct {
	*tx
	batches          map[holdfast.ID]*batch
	cancels, uniques bool // whether there are any at all
}

// A batch is the lease that settlements of one call belong to.
type batch struct {
	worker, lost string
	claimed      int64
	left         int // members that left it in this call
}

// A member is a job as it stood in its lease.
type member struct {
	failures, crashes, interrupts, generation int
	started                                   bool
}

// settle applies one settlement if its lease is held. The answer is for the caller; the error is the database's.
func (s *settler) settle(x *holdfast.Settlement) (answer, err error) {
	b, err := s.batch(x.Batch)
	if err != nil {
		return nil, err
	}
	var m member
	held, plain := false, x.To == holdfast.Complete && !s.cancels
	if plain {
		held, err = s.complete(x, b)
	} else {
		held, err = s.one("settle-held", []any{x.Job, x.Token, x.Batch}, &m.failures, &m.crashes, &m.interrupts, &m.generation, &m.started)
	}
	if err != nil {
		return nil, err
	}
	if !held {
		return s.late(x)
	}
	if _, err := s.exec("settle-leave", x.Job); err != nil {
		return nil, err
	}
	b.left++
	if plain {
		return nil, nil
	}
	return nil, s.apply(x, b, m)
}

// complete ends a job well that nobody asked to cancel, if its lease is held.
func (s *settler) complete(x *holdfast.Settlement, b *batch) (held bool, err error) {
	var result any
	if len(x.Result) > 0 {
		result = x.Result
	}
	done, err := s.exec("settle-complete", x.Job, x.Token, x.Batch, x.Took.Microseconds(), s.now, b.worker, result, b.claimed)
	if err == nil && done > 0 && s.uniques {
		_, err = s.exec("unique-free", x.Job, true)
	}
	return done > 0, err
}

func (s *settler) apply(x *holdfast.Settlement, b *batch, m member) error {
	switch x.Charge {
	case holdfast.ChargeFailure:
		m.failures++
	case holdfast.ChargeCrash:
		m.crashes++
	case holdfast.ChargeInterrupt:
		m.interrupts++
	}
	to, said := x.To, any(nil)
	if s.cancels {
		asked, err := s.exec("settle-cancel", x.Job)
		if err != nil {
			return err
		}
		if asked > 0 {
			to, said = holdfast.Cancelled, x.To
		}
	}
	if to != holdfast.Complete {
		if err := s.record(x, b, m, to, said); err != nil {
			return err
		}
	}
	if to == holdfast.Queued {
		return s.again(x, m)
	}
	return s.finish(x, b, m, to)
}

// began is when an attempt started: as long ago as it took, by its worker's clock, but never before it was claimed.
func (s *settler) began(x *holdfast.Settlement, b *batch) int64 {
	if x.Took == 0 {
		return s.now
	}
	return max(s.at(-x.Took), b.claimed)
}

// again sends the job round once more, at once or when its delay has passed.
func (s *settler) again(x *holdfast.Settlement, m member) error {
	place := "later-again"
	if x.Delay <= 0 {
		place, s.news.all = "ready-again", true
	}
	_, err := s.exec(place, x.Job, x.Token, m.failures, m.crashes, m.interrupts, m.generation, s.at(x.Delay))
	return err
}

// finish ends the job's generation, and gives its unique key back.
func (s *settler) finish(x *holdfast.Settlement, b *batch, m member, to holdfast.State) error {
	var started, code, fingerprint any
	if x.Took > 0 || m.started {
		started = s.began(x, b)
	}
	if to == holdfast.Failed {
		code, fingerprint = clean(x.Failure.Code), orNull(clean(x.Failure.Fingerprint))
	}
	var result any
	if to == holdfast.Complete && len(x.Result) > 0 {
		result = x.Result
	}
	_, err := s.exec("settle-finish", x.Job, x.Token, m.failures, m.crashes, m.interrupts, m.generation, started, s.now, to, b.worker, code, fingerprint, result)
	if err == nil && s.uniques {
		_, err = s.exec("unique-free", x.Job, to == holdfast.Complete)
	}
	return err
}

// record writes the attempt's own line.
func (s *settler) record(x *holdfast.Settlement, b *batch, m member, to holdfast.State, said any) error {
	var count int
	var due any
	switch x.Charge {
	case holdfast.ChargeFailure:
		count = m.failures
	case holdfast.ChargeCrash:
		count = m.crashes
	}
	if to == holdfast.Queued {
		due = s.at(x.Delay)
	}
	worker := b.worker
	if b.lost != "" {
		worker = b.lost
	}
	args := []any{x.Job, x.Token, m.generation, worker, s.began(x, b), s.now, to, orNull(string(x.Charge)), count, x.Limit, due}
	_, err := s.exec("settle-attempt", append(append(args, failureColumns(x.Failure)...), orNull(clean(x.Why)), said)...)
	return err
}

// failureColumns are code, category, message, detail, context, dependency, fingerprint and benign, storable whatever they say.
func failureColumns(f *holdfast.Failure) []any {
	if f == nil {
		return []any{nil, nil, nil, nil, nil, nil, nil, false}
	}
	var about any
	if len(f.Context) > 0 {
		cleaned := make(map[string]string, len(f.Context))
		for name, value := range f.Context {
			cleaned[clean(name)] = clean(value)
		}
		text, _ := json.Marshal(cleaned) // texts always marshal
		about = string(text)
	}
	return []any{clean(f.Code), orNull(clean(f.Category)), orNull(clean(f.Message)), orNull(clean(f.Detail)), about, orNull(clean(f.Dependency)),
		orNull(clean(f.Fingerprint)), f.Benign}
}

// late answers a settlement whose lease is not held: with nil if it was applied before, or else as lost, and keeps it as
// evidence.
func (s *settler) late(x *holdfast.Settlement) (answer, err error) {
	if said, err := s.one("settle-said", []any{x.Job, x.Token, x.To}); said || err != nil {
		return nil, err
	}
	args := []any{x.Job, x.Token, x.To, s.now, x.Took.Microseconds(), orNull(string(x.Charge))}
	if _, err := s.exec("settle-late", append(append(args, failureColumns(x.Failure)...), orNull(clean(x.Why)))...); err != nil {
		return nil, err
	}
	return leaseLost(x.Job), nil
}

func leaseLost(job holdfast.ID) error {
	return &holdfast.Error{Kind: holdfast.ErrLeaseLost, Message: fmt.Sprintf("the lease on job %s is no longer held: stop working on it; what was reported is kept as evidence and changes nothing", job)}
}

// batch reads whose lease it is, once per call.
func (s *settler) batch(id holdfast.ID) (*batch, error) {
	if b := s.batches[id]; b != nil {
		return b, nil
	}
	b := &batch{}
	if _, err := s.one("settle-lease", []any{id}, &b.worker, &b.lost, &b.claimed); err != nil {
		return nil, err
	}
	s.batches[id] = b
	return b, nil
}

// forget takes back that a member left, when that was undone.
func (s *settler) forget(id holdfast.ID) {
	if b := s.batches[id]; b != nil && b.left > 0 {
		b.left--
	}
}

// shrink lets each lease go with its last member.
func (s *settler) shrink() error {
	for id, b := range s.batches {
		if err := s.release(id, b.left); err != nil {
			return err
		}
	}
	return nil
}

// release takes members off a lease's count; the lease goes with the last of them.
func (t *tx) release(lease holdfast.ID, members int) error {
	if members == 0 {
		return nil
	}
	shrunk, err := t.exec("lease-shrink", lease, members)
	if err == nil && shrunk == 0 {
		_, err = t.exec("lease-drop", lease)
	}
	return err
}
