package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A RedriveReport is the result of a redrive during which workers were killed. It is clean when every count after Kills is zero.
type RedriveReport struct {
	Store    string  `json:"store"`
	Jobs     int     `json:"jobs"`
	Seconds  float64 `json:"seconds"`
	Kills    int     `json:"kills"`    // workers killed during the redrive
	Lost     int     `json:"lost"`     // jobs that the redrive did not send, or that are not complete
	Twice    int     `json:"twice"`    // jobs that were sent more than once
	Findings int     `json:"findings"` // of the integrity check

	Troubles []string `json:"-"`
}

// Clean reports whether every dead letter was redriven exactly once.
func (r RedriveReport) Clean() bool { return r.Lost+r.Twice+r.Findings == 0 && len(r.Troubles) == 0 }

// Redrive creates dead letters, starts a redrive of all of them, and repeatedly kills the workers that carry it out.
func Redrive(ctx context.Context, c Config, jobs int) (report RedriveReport, err error) {
	err = c.withDatabase(ctx, func(dir string, db *database, s store.Store) error {
		report = RedriveReport{Store: db.name, Jobs: jobs}
		first := holdfast.NewID()
		if err := makeDeadLetters(ctx, s, jobs); err != nil {
			return err
		}
		c.logf("%s: %d dead letters", db.name, jobs)
		f := &fleet{command: c.Command, spec: childSpec{Store: db.address, Dir: dir, Seed: c.Seed, Lease: c.Lease, First: first}}
		defer f.killAll("")
		began := time.Now()
		id, err := ops.New(s, ops.Config{}).StartRedrive(ctx, redrive.Spec{
			Filter: store.Filter{Kind: script{}.Kind()}, Canary: min(10, jobs), PerSecond: redrive.MaxPerSecond, InFlight: 5000, Actor: "chaos", Reason: "chaos test",
		})
		if err != nil {
			return err
		}
		if report.Kills, err = c.killWorkersDuring(ctx, s, f, id); err != nil {
			return err
		}
		report.Seconds = time.Since(began).Seconds()
		f.stop(roleWorker, time.Minute)
		return report.verify(ctx, s, id, first)
	})
	return report, err
}

// makeDeadLetters creates dead letters.
func makeDeadLetters(ctx context.Context, s store.Store, jobs int) error {
	for left := jobs; left > 0; {
		drafts := make([]holdfast.Draft, min(left, 500))
		for i := range drafts {
			drafts[i], _ = holdfast.NewDraft(script{Do: doNothing})
		}
		if _, err := s.Enqueue(ctx, drafts); err != nil {
			return err
		}
		leases, err := s.Claim(ctx, store.Claim{Worker: "setup", Queues: []string{holdfast.DefaultQueue}, Limit: len(drafts), Start: len(drafts), Lease: time.Minute})
		if err != nil {
			return err
		}
		ends := make([]store.Settlement, len(leases))
		for i, l := range leases {
			ends[i] = store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 1, Took: time.Millisecond,
				Failure: &holdfast.Failure{Code: "HTTP_5XX", Category: "dependency", Message: "created for this run", Fingerprint: "chaos-redrive"}}
		}
		if _, err := s.Settle(ctx, ends); err != nil {
			return err
		}
		left -= len(leases)
	}
	return nil
}

// killWorkersDuring kills workers at random times until the redrive and every job that it sent have ended.
func (c *Config) killWorkersDuring(ctx context.Context, s store.Store, f *fleet, id holdfast.ID) (kills int, err error) {
	random := rand.New(rand.NewPCG(c.Seed, 1))
	inj := &injector{fleet: f, random: random, faults: map[string]int{}}
	if err := f.start(roleWorker, c.Workers); err != nil {
		return 0, err
	}
	operator, before, since := ops.New(s, ops.Config{}), "", time.Now()
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(100+random.IntN(300))*time.Millisecond)
		r, err := operator.Redrive(ctx, id)
		if err != nil {
			return kills, err
		}
		switch {
		case r.State.Ended() && r.Counts.InFlight == 0:
			return kills, nil
		case r.State != redrive.Running && !r.State.Ended():
			return kills, fmt.Errorf("the redrive is %s: %s", r.State, r.Why)
		case !r.State.Ended():
			if p := inj.pick(roleWorker); p != nil {
				inj.kill(p, "sigkill")
				kills++
			}
		}
		if now := fmt.Sprint(r.State, r.Counts); now != before {
			before, since = now, time.Now()
			c.logf("%s", before)
		} else if time.Since(since) > stuckAfter {
			return kills, nil // the check reports what is stuck
		}
		if err := f.refill(); err != nil {
			return kills, err
		}
	}
	return kills, ctx.Err()
}

// verify checks that every job is complete in its second generation and was sent once, and runs the integrity check.
func (r *RedriveReport) verify(ctx context.Context, s store.Store, id, first holdfast.ID) error {
	record := func(count *int, format string, args ...any) {
		if *count++; len(r.Troubles) < 50 {
			r.Troubles = append(r.Troubles, fmt.Sprintf(format, args...))
		}
	}
	seen := 0
	for filter := (store.Filter{Limit: 200}); ; {
		page, cursor, err := s.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		for _, job := range page {
			if !belongsToRun(job, first) {
				continue
			}
			seen++
			if job.State != holdfast.Complete || job.Generation < 2 {
				record(&r.Lost, "job %s is %s in generation %d", job.ID, job.State, job.Generation)
			}
			if job.Generation > 2 {
				record(&r.Twice, "job %s is in generation %d", job.ID, job.Generation)
			}
		}
		if filter.Cursor = cursor; cursor == "" {
			break
		}
	}
	counts, err := s.Redriven(ctx, id)
	if err != nil {
		return err
	}
	if seen != r.Jobs || counts.Taken != r.Jobs || counts.Complete != r.Jobs {
		record(&r.Lost, "of %d jobs %d are in the store, and the redrive counts %+v", r.Jobs, seen, counts)
	}
	findings, err := s.CheckIntegrity(ctx)
	for _, f := range findings {
		record(&r.Findings, "integrity check: %s: %s %s", f.Rule, f.Job, f.Detail)
	}
	if r.Kills == 0 {
		return errors.Join(err, errTooShort)
	}
	return err
}
